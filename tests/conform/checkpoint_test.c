/* Checkpoints: a run that was stopped and resumed has the bits of the one that was not, whatever happened to the files
 * in between. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "tests/conform/train_script.h"

enum { STEPS = 11, PATH = 512 };

static char folder[64];
static volatile sig_atomic_t stop;
static int64_t stop_after;

static void stop_there(void *self, int64_t step, int64_t steps, double train_loss, double val_loss) {
  (void)self;
  (void)steps;
  (void)train_loss;
  (void)val_loss;
  stop = step == stop_after;
}

static void empty_folder(void) {
  DIR *d = opendir(folder);
  assert_non_null(d);
  for (struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (entry->d_name[0] != '.') assert_int_equal(unlink(path), 0);
  }
  closedir(d);
}

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/pl_checkpoint_test.XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  empty_folder();
  return rmdir(folder);
}

static char *path_of(int64_t step, char *path) {
  snprintf(path, PATH, "%s/step-%010lld.ckpt", folder, (long long)step);
  return path;
}

static char *stage_path(int64_t step, size_t stage, char *path) {
  snprintf(path, PATH, "%s/step-%010lld.stage-%03zu.ckpt", folder, (long long)step, stage);
  return path;
}

/* The manifest with the files of both stages, or none of them. */
static bool has(int64_t step) {
  char path[PATH];
  bool manifest = access(path_of(step, path), F_OK) == 0;
  for (size_t p = 0; p < 2; p++) assert_int_equal(access(stage_path(step, p, path), F_OK) == 0, manifest);
  return manifest;
}

#define MLP                                                                                                            \
  "'model': {'type': 'mlp', 'layers': 2, 'hidden': 6, 'embedding': 4, 'window': 2, 'context': 4}, 'data': {'type': "   \
  "'synthetic', 'vocab': 8}"

static void open_mlp(rig *r, const char *optimizer, const char *correction, const char *rest) {
  char json[RIG_TEXT];
  snprintf(json, sizeof json,
           "{" MLP ", 'optimizer': '%s', 'correction': %s, 'train': {'steps': %d, 'batch_tokens': 8, 'val_tokens': 16, "
           "'val_every': 3, 'clip_scope': 'stage', 'warmup': 3, 'lr_schedule': 'cosine'%s}, 'delay': [3, 1], "
           "'simulate_only': true, 'delay_start': 2, 'pipeline': {'stages': 2, 'microbatches': 2}}",
           optimizer, correction, STEPS, rest);
  rig_open(r, NULL, json);
}

/* The same outcome, weights, and points from `first` on, but for the clock. */
static void expect_same(const rig *whole, const rig *resumed, size_t first) {
  assert_true(rig_same_weights(whole, resumed));
  assert_int_equal(resumed->point_count, whole->point_count - first);
  for (size_t i = 0; i < resumed->point_count; i++) {
    assert_int_equal(whole->points[first + i].step, resumed->points[i].step);
    assert_true(
        rig_same(whole->points[first + i].values, resumed->points[i].values, PL_SERIES_seconds * sizeof(double)));
  }
  assert_int_equal(whole->outcome.end, resumed->outcome.end);
  assert_int_equal(whole->outcome.steps, resumed->outcome.steps);
  assert_true(rig_same(&whole->outcome.initial_val_loss, &resumed->outcome.initial_val_loss, 4 * sizeof(double)));
}

static void stop_and_resume(rig *whole, rig *part, int64_t step) {
  empty_folder();
  part->args.checkpoint_folder = folder;
  part->args.stop = &stop;
  part->args.progress = stop_there;
  stop_after = step;
  stop = step == 0;
  part->log_length = 0;
  rig_train(part);
  assert_int_equal(part->outcome.end, PL_END_STOPPED);
  assert_int_equal(part->outcome.steps, step);
  assert_int_equal(part->outcome.resumed_from, -1);
  assert_true(has(step));
  stop = 0;
  stop_after = -1;
  part->log_length = 1000000;
  rig_train(part);
  assert_int_equal(part->outcome.resumed_from, step);
  expect_same(whole, part, (size_t)step + 1);
}

static void every_optimizer_and_correction(void **state) {
  (void)state;
  static const char *const optimizers[] = {"sgd", "adamw", "muon"};
  static const char *const corrections[] = {"'none'", "'ef'", "{'type': 'ef', 'form': 'block', 'init': 'zero'}",
                                            "{'type': 'lookahead', 'at_zero': true}", "['ef', 'lookahead']"};
  for (size_t o = 0; o < 3; o++)
    for (size_t c = 0; c < 5; c++) {
      rig whole, part;
      open_mlp(&whole, optimizers[o], corrections[c], "");
      rig_train(&whole);
      open_mlp(&part, optimizers[o], corrections[c], "");
      for (int64_t step = 0; step < STEPS; step++) stop_and_resume(&whole, &part, step);
      rig_close(&part);
      rig_close(&whole);
    }
}

/* Trains with a checkpoint every 2 updates and stops after 9: leaves 8 and 9. */
static void leave_two(rig *r) {
  empty_folder();
  r->args.checkpoint_folder = folder;
  r->args.stop = &stop;
  r->args.progress = stop_there;
  stop_after = 9;
  stop = 0;
  r->log_length = 0;
  rig_train(r);
  assert_int_equal(r->outcome.end, PL_END_STOPPED);
  assert_true(has(8) && has(9) && !has(6) && !has(4) && !has(2));
  stop = 0;
  stop_after = -1;
  r->said = 0;
  r->log_length = 1000000;
}

static void change_byte(const char *path, long at, int whence) {
  FILE *f = fopen(path, "r+b");
  assert_non_null(f);
  assert_int_equal(fseek(f, at, whence), 0);
  int byte = fgetc(f);
  assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
  assert_int_equal(fputc(byte ^ 1, f), byte ^ 1);
  assert_int_equal(fclose(f), 0);
}

static void cut(const char *path, off_t by) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(truncate(path, info.st_size - by), 0);
}

static void falls_back(void **state) {
  (void)state;
  rig whole, part;
  open_mlp(&whole, "adamw", "'ef'", "");
  rig_train(&whole);
  open_mlp(&part, "adamw", "'ef'", ", 'checkpoint_every': 2");
  for (int damage = 0; damage < 12; damage++) {
    leave_two(&part);
    char manifest[PATH], stage[PATH], other[PATH];
    path_of(9, manifest);
    stage_path(9, damage % 2 == 0, stage);
    const char *path = damage < 6 ? manifest : stage;
    if (damage % 6 == 0) cut(path, 1);
    if (damage % 6 == 1) assert_int_equal(truncate(path, 0), 0);
    if (damage % 6 == 2) assert_int_equal(truncate(path, 40), 0);
    if (damage % 6 == 3) change_byte(path, -20, SEEK_END);
    if (damage % 6 == 4) change_byte(path, 64, SEEK_SET);
    if (damage == 5) change_byte(path, 4, SEEK_SET);
    /* A whole file, but of another step: both checksums fit, only not each other. */
    if (damage == 11) assert_int_equal(rename(stage_path(8, 1, other), stage_path(9, 1, stage)), 0);
    rig_train(&part);
    if (damage == 11) {
      assert_int_equal(part.outcome.resumed_from, -1);
      continue;
    }
    assert_int_equal(part.outcome.resumed_from, 8);
    assert_int_equal(part.said, 2);
    expect_same(&whole, &part, 9);
    assert_false(has(9)); /* removed when 10 was written */
    assert_true(has(8) && has(10));
  }
  leave_two(&part);
  char path[PATH];
  cut(path_of(8, path), 5);
  cut(stage_path(9, 1, path), 5);
  rig_train(&part);
  assert_int_equal(part.outcome.resumed_from, -1);
  expect_same(&whole, &part, 0);
  rig_close(&part);
  rig_close(&whole);
}

/* A log that lost what checkpoint 9 counts on: 8 is taken, and 9 may not come back once the log is long again. */
static void short_log(void **state) {
  (void)state;
  rig whole, part;
  open_mlp(&whole, "adamw", "'ef'", "");
  rig_train(&whole);
  open_mlp(&part, "adamw", "'ef'", ", 'checkpoint_every': 2");
  leave_two(&part); /* 10 points, of 100 bytes, when 9 was written */
  part.log_length = 999;
  rig_train(&part);
  assert_int_equal(part.outcome.resumed_from, 8);
  assert_non_null(strstr(part.line, "step 8"));
  expect_same(&whole, &part, 9);
  leave_two(&part);
  part.log_length = 1000;
  rig_train(&part);
  assert_int_equal(part.outcome.resumed_from, 9);
  rig_close(&part);
  rig_close(&whole);
}

static void break_log(void *self, int64_t step, int64_t steps, double train_loss, double val_loss) {
  (void)steps;
  (void)train_loss;
  (void)val_loss;
  ((rig *)self)->write_fails = step == 9;
}

/* The same, killed before it writes a checkpoint of its own: by then the log is long again, but 9 is gone. */
static void short_log_twice(void **state) {
  (void)state;
  rig whole, part;
  pl_err e = {0};
  open_mlp(&whole, "adamw", "'ef'", "");
  rig_train(&whole);
  open_mlp(&part, "adamw", "'ef'", ", 'checkpoint_every': 2");
  leave_two(&part);
  part.log_length = 999;
  part.args.progress = break_log;
  part.args.progress_self = &part;
  assert_int_equal(pl_train(&part.args, &part.outcome, &e), PL_FAIL);
  assert_int_equal(part.outcome.resumed_from, 8);
  part.write_fails = false;
  part.args.progress = NULL;
  part.log_length = 1000000;
  rig_train(&part);
  assert_int_equal(part.outcome.resumed_from, 8);
  expect_same(&whole, &part, 9);
  rig_close(&part);
  rig_close(&whole);
}

/* The newest two are kept, also when the stop falls on an update whose checkpoint was just written, or comes before any
 * update after a resume. The sink is told of each, and none is written at the end. */
static void newest_two(void **state) {
  (void)state;
  rig part;
  open_mlp(&part, "adamw", "'ef'", ", 'checkpoint_every': 2");
  empty_folder();
  part.args.checkpoint_folder = folder;
  part.args.stop = &stop;
  part.args.progress = stop_there;
  stop_after = 8;
  stop = 0;
  rig_train(&part);
  assert_true(has(8) && has(6) && !has(4));
  assert_int_equal(part.checkpointed, 4);
  part.log_length = 1000000;
  stop = 1;
  rig_train(&part);
  assert_int_equal(part.outcome.end, PL_END_STOPPED);
  assert_true(has(8) && has(6));
  assert_int_equal(part.checkpointed, 0);
  stop = 0;
  stop_after = -1;
  rig_train(&part);
  assert_int_equal(part.outcome.resumed_from, 8);
  assert_true(has(10) && has(8) && !has(6));
  assert_int_equal(part.checkpointed, 1);
  rig_close(&part);
  open_mlp(&part, "adamw", "'ef'", ", 'checkpoint_every': 11");
  empty_folder();
  part.args.checkpoint_folder = folder;
  rig_train(&part);
  assert_true(part.checkpointed == 0 && !has(STEPS));
  rig_close(&part);
}

static double peaks(int64_t step, size_t microbatch, size_t sequences) {
  (void)microbatch;
  return (double)sequences * (step < 0 ? 1 : step == 3 ? 0.5 : step >= 20 && step < 23 ? 1.625 : 1.375);
}

static double bad_for_20(int64_t step, size_t stage) {
  (void)stage;
  return step >= 5 && step < 25 ? (double)NAN : -1;
}

static double flat(int64_t step, size_t stage) {
  (void)step;
  (void)stage;
  return 1;
}

/* What counts towards divergence is counted through a resume: best loss and peaks, and skips in a row. */
static void verdicts_survive(void **state) {
  (void)state;
  const script scripts[] = {{.loss = peaks, .gradient = flat}, {.loss = peaks, .gradient = bad_for_20}};
  static const char *const reasons[] = {"3 of 50 updates", "20 updates in a row"};
  for (size_t i = 0; i < 2; i++)
    for (int64_t at = 1; at < 25; at += 7) {
      rig r;
      the_script = scripts[i];
      rig_open(&r, &script_models,
               "{'model': 'script', 'data': 'none', 'optimizer': 'sgd', 'train': {'steps': 50, 'batch_tokens': 1, "
               "'nonfinite': 'skip'}}");
      empty_folder();
      r.args.checkpoint_folder = folder;
      r.args.stop = &stop;
      r.args.progress = stop_there;
      stop_after = at;
      stop = 0;
      rig_train(&r);
      assert_int_equal(r.outcome.end, PL_END_STOPPED);
      assert_int_equal(r.outcome.steps, at);
      stop = 0;
      stop_after = -1;
      r.log_length = 1000000;
      rig_train(&r);
      assert_int_equal(r.outcome.resumed_from, at);
      assert_int_equal(r.outcome.end, PL_END_DIVERGED);
      assert_non_null(strstr(r.outcome.reason, reasons[i]));
      rig_close(&r);
    }
}

static void other_runs_and_leftovers(void **state) {
  (void)state;
  rig part, other;
  char path[PATH];
  open_mlp(&part, "adamw", "'ef'", ", 'checkpoint_every': 2");
  leave_two(&part);
  snprintf(path, sizeof path, "%s/step-0000000010.ckpt.tmp", folder);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fclose(f), 0);
  snprintf(path, sizeof path, "%s/step-9.ckpt", folder); /* no name of ours: left alone */
  f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fclose(f), 0);
  open_mlp(&other, "adamw", "'ef'", ", 'weight_decay': 0.2");
  other.args.checkpoint_folder = folder;
  rig_train(&other);
  assert_int_equal(other.outcome.resumed_from, -1);
  assert_int_equal(other.said, 2);
  assert_true(has(8) && has(9));
  rig_train(&part);
  assert_int_equal(part.outcome.resumed_from, 9);
  assert_int_equal(access(path, F_OK), 0);
  snprintf(path, sizeof path, "%s/step-0000000010.ckpt.tmp", folder);
  assert_int_not_equal(access(path, F_OK), 0);
  rig_close(&other);
  rig_close(&part);
}

static void skips_survive(void **state) {
  (void)state;
  rig whole, part;
  /* Rate 1e30 makes the second update's loss infinite or NaN; it and all later ones are skipped. */
  static const char rest[] = ", 'nonfinite': 'skip', 'clip': 0";
  open_mlp(&whole, "sgd", "'ef'", rest);
  double lr = 1e30;
  memcpy(whole.config.optimizer.config, &lr, sizeof lr);
  rig_train(&whole);
  assert_true(whole.outcome.skipped > 5);
  open_mlp(&part, "sgd", "'ef'", rest);
  memcpy(part.config.optimizer.config, &lr, sizeof lr);
  stop_and_resume(&whole, &part, 6);
  assert_int_equal(whole.outcome.skipped, part.outcome.skipped);
  assert_int_equal(whole.outcome.first_bad_step, part.outcome.first_bad_step);
  rig_close(&part);
  rig_close(&whole);
}

/* Updates go on until the disk is full at checkpoint 8: one sentence, PL_FAIL, and checkpoint 4 is still good. */
static void fill_disk(void *self, int64_t step, int64_t steps, double train_loss, double val_loss) {
  char path[PATH];
  (void)self;
  (void)steps;
  (void)train_loss;
  (void)val_loss;
  snprintf(path, sizeof path, "%s/step-%010d.stage-001.ckpt.tmp", folder, 8);
  if (step == 7) assert_int_equal(symlink("/dev/full", path), 0);
}

static void cannot_write(void **state) {
  (void)state;
  rig whole, part;
  pl_err e = {0};
  open_mlp(&whole, "adamw", "'none'", ", 'checkpoint_every': 4");
  rig_train(&whole);
  open_mlp(&part, "adamw", "'none'", ", 'checkpoint_every': 4");
  empty_folder();
  part.args.checkpoint_folder = "/proc/self/nothing";
  assert_int_equal(pl_train(&part.args, &part.outcome, &e), PL_FAIL);
  assert_non_null(strstr(e.text, "/proc/self/nothing"));
  e = (pl_err){0};
  part.args.checkpoint_folder = folder;
  part.args.progress = fill_disk;
  part.point_count = 0;
  assert_int_equal(pl_train(&part.args, &part.outcome, &e), PL_FAIL);
  assert_non_null(strstr(e.text, "No space left on device"));
  char path[PATH];
  assert_true(has(4));
  assert_int_not_equal(access(path_of(8, path), F_OK), 0); /* stage 0 has a file there, which counts for nothing */
  part.args.progress = NULL;
  part.log_length = 1000000;
  rig_train(&part);
  assert_int_equal(part.outcome.resumed_from, 4);
  expect_same(&whole, &part, 5);
  rig_close(&part);
  rig_close(&whole);
}

static int asked, owned_for;
static bool is_owned(void *self) {
  (void)self;
  return asked++ < owned_for;
}

/* Whoever lost the run publishes nothing more, whether it notices before or after writing, and removes nothing: the
 * file being written may be the other process's. */
static void a_lost_run_is_not_published(void **state) {
  (void)state;
  /* A checkpoint asks six times: before and after each stage's file, twice for the manifest. */
  for (owned_for = 6; owned_for < 12; owned_for++) {
    rig r;
    pl_err e = {0};
    char path[PATH];
    open_mlp(&r, "adamw", "'none'", ", 'checkpoint_every': 4");
    empty_folder();
    r.args.checkpoint_folder = folder;
    r.args.owned = is_owned;
    asked = 0;
    assert_int_equal(pl_train(&r.args, &r.outcome, &e), PL_FAIL);
    assert_non_null(strstr(e.text, "another process took the run over"));
    assert_true(has(4));
    assert_int_not_equal(access(path_of(8, path), F_OK), 0);
    for (size_t p = 0; p < 2; p++) {
      const int before = 6 + 2 * (int)p;
      assert_int_equal(access(stage_path(8, p, path), F_OK) == 0, owned_for > before + 1);
      snprintf(path + strlen(path), sizeof path - strlen(path), ".tmp");
      assert_int_equal(access(path, F_OK) == 0, owned_for == before + 1);
    }
    rig_close(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_optimizer_and_correction),
      cmocka_unit_test(falls_back),
      cmocka_unit_test(short_log),
      cmocka_unit_test(other_runs_and_leftovers),
      cmocka_unit_test(skips_survive),
      cmocka_unit_test(cannot_write),
      cmocka_unit_test(a_lost_run_is_not_published),
      cmocka_unit_test(short_log_twice),
      cmocka_unit_test(newest_two),
      cmocka_unit_test(verdicts_survive),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
