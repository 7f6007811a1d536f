/* Checkpoints made into those of another number of stages: going on gives the bits of a run that never had another
 * number. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/train/checkpoint.h"
#include "core/train/repartition.h"
#include "tests/conform/train_rig.h"

enum { STEPS = 8, HALF = 5, PATH = 512 };

static char folder[2][64]; /* of the run, and of the converted one */
static void empty_folder(const char *name) {
  DIR *d = opendir(name);
  assert_non_null(d);
  for (struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", name, entry->d_name);
    if (entry->d_name[0] != '.') assert_int_equal(unlink(path), 0);
  }
  closedir(d);
}

static int make_folders(void **state) {
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    snprintf(folder[i], sizeof folder[i], "/tmp/pl_repartition_test.XXXXXX");
    if (!mkdtemp(folder[i])) return -1;
  }
  return 0;
}

static int remove_folders(void **state) {
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    empty_folder(folder[i]);
    if (rmdir(folder[i]) != 0) return -1;
  }
  return 0;
}

/* What a run is made of; the number of stages is put in. */
typedef struct recipe {
  const char *pipeline, *optimizer, *correction, *train, *root; /* the rest of a section, from its comma on */
  bool tied;
  size_t layers;
} recipe;

static void open_run(rig *r, const recipe *c, size_t stages) {
  char json[RIG_TEXT];
  snprintf(json, sizeof json,
           "{'model': {'type': 'transformer', 'layers': %zu, 'd_model': 8, 'heads': 2, 'context': 4, 'ff': 8, 'tied': "
           "%s}, 'data': {'type': 'synthetic', 'vocab': 8}, 'optimizer': '%s', 'correction': %s, 'train': {'steps': "
           "%d, 'batch_tokens': 16, 'val_tokens': 16, 'val_every': 3, 'warmup': 3, 'checkpoint_every': %d%s}, "
           "'pipeline': {'stages': %zu, "
           "'microbatches': %d%s}%s}",
           c->layers, c->tied ? "true" : "false", c->optimizer, c->correction, STEPS, HALF, c->train, stages,
           strstr(c->pipeline, "pipedream") ? 1 : 4, c->pipeline, c->root);
  rig_open(r, NULL, json);
}

/* Leaves a checkpoint of step HALF. */
static void leave(rig *r) {
  empty_folder(folder[0]);
  r->args.checkpoint_folder = folder[0];
  r->log_length = 0;
  rig_train(r);
  assert_int_equal(pl_checkpoints_newest(folder[0]), HALF);
}

static pl_saved *open_saved(const rig *r) {
  pl_err e = {0};
  pl_saved *s = NULL;
  rig_must(pl_alloc(1, sizeof *s, "test", &s, &e), &e);
  const pl_saved_args args = {
      .config = &r->config, .vocab = r->args.dataset_type->vocab(r->dataset), .device = r->device};
  rig_must(pl_saved_open(&args, s, &e), &e);
  return s;
}

static pl_saved *read_saved(const rig *r, const char *from) {
  pl_err e = {0};
  bool found = false;
  pl_saved *s = open_saved(r);
  rig_must(pl_saved_read(s, from, NULL, NULL, &found, &e), &e);
  assert_true(found);
  return s;
}

static void close_saved(pl_saved *s) {
  pl_saved_close(s);
  pl_free(s);
}

static pl_status convert(const rig *from, const rig *to, bool restart_ring, pl_err *e) {
  pl_saved *a = read_saved(from, folder[0]), *b = open_saved(to);
  const pl_repartition r = {.from = a, .to = b, .restart_ring = restart_ring};
  pl_status st = pl_repartition_check(&r, e);
  empty_folder(folder[1]);
  if (st == PL_OK) st = pl_repartition_write(&r, folder[1], e);
  close_saved(b);
  close_saved(a);
  return st;
}

static void go_on(rig *r) {
  r->args.checkpoint_folder = folder[1];
  r->log_length = 0; /* the log begins anew */
  rig_train(r);
  assert_int_equal(r->outcome.resumed_from, HALF);
  assert_int_equal(r->outcome.steps, STEPS);
}

/* Weights, and points after HALF but for the clock. */
static bool same_end(const rig *whole, const rig *part) {
  bool same = rig_same_weights(whole, part);
  assert_true(isfinite(whole->outcome.final_val_loss));
  assert_int_equal(part->point_count, STEPS - HALF);
  for (size_t i = 0; i < part->point_count; i++) {
    const pl_point *a = &whole->points[HALF + 1 + i], *b = &part->points[i];
    assert_int_equal(a->step, b->step);
    same = same && rig_same(a->values, b->values, PL_SERIES_seconds * sizeof(double));
  }
  return same && rig_same(&whole->outcome.initial_val_loss, &part->outcome.initial_val_loss, 4 * sizeof(double));
}

static void from_each_to_each(const recipe *c, const size_t *stages, size_t count) {
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < count; j++) {
      rig before, whole, part;
      pl_err e = {0};
      if (i == j) continue;
      open_run(&whole, c, stages[j]);
      rig_train(&whole);
      open_run(&before, c, stages[i]);
      leave(&before);
      open_run(&part, c, stages[j]);
      rig_must(convert(&before, &part, false, &e), &e);
      go_on(&part);
      if (!same_end(&whole, &part)) fail_msg("%s, %zu to %zu stages", c->pipeline, stages[i], stages[j]);
      rig_close(&part);
      rig_close(&before);
      rig_close(&whole);
    }
}

static void every_number_of_stages(void **state) {
  (void)state;
  static const size_t stages[] = {1, 2, 4}, of_chunks[] = {2, 4};
  static const recipe recipes[] = {
      {", 'schedule': 'gpipe'", "adamw", "'none'", "", "", true, 4},
      {", 'schedule': '1f1b'", "muon", "'none'", "", "", false, 5},
      {", 'schedule': '1f1b'", "sgd", "{'type': 'lookahead', 'at_zero': true}", ", 'weight_decay': 0.1", "", true, 4},
      {", 'schedule': '2bw'", "adamw", "'ef'", "", "", true, 4},
      {", 'schedule': '2bw'", "muon", "['ef', 'lookahead']", "", "", false, 5},
      {", 'schedule': '2bw', 'partition': 'even'", "sgd", "{'type': 'ef', 'form': 'block'}", ", 'clip': 0.1", "", true,
       6},
      {", 'schedule': 'zb-h1'", "adamw", "'none'", "", "", true, 4},
      {"", "adamw", "{'type': 'ef', 'form': 'block'}", "", ", 'delay': 3", true, 4},
      {"", "muon", "'ef'", "", ", 'delay': 7, 'delay_start': 2", false, 4},
  };
  static const recipe chunks = {", 'schedule': 'interleaved-1f1b'", "adamw", "'none'", "", "", true, 8};
  for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) from_each_to_each(&recipes[i], stages, 3);
  from_each_to_each(&chunks, of_chunks, 2);
}

static const recipe two_bw = {", 'schedule': '2bw'", "adamw", "'ef'", "", "", true, 4};
static const recipe pipedream = {", 'schedule': 'pipedream'", "adamw", "'ef'", ", 'clip_scope': 'stage'", "", false, 4};

/* Writes the converted checkpoint again, with two layers' matrices swapped in one of its arrays. */
static void swap_layers(const rig *r, size_t array) {
  pl_err e = {0};
  pl_saved *s = read_saved(r, folder[1]);
  uint64_t checksums[PL_MAX_STAGES];
  pl_checkpoints c;
  size_t p = 0, q = 0;
  const pl_segment *a = pl_saved_find(s, "layers.0.attention.q", &p), *b = pl_saved_find(s, "layers.3.attention.q", &q);
  pl_real *x = s->stage[p].kept[array] + a->offset, *y = s->stage[q].kept[array] + b->offset;
  for (size_t i = 0; i < a->rows * a->cols; i++) {
    pl_real keep = x[i];
    x[i] = y[i];
    y[i] = keep;
  }
  rig_must(pl_checkpoints_open(&r->config, s->stage, s->stages, folder[1], &c, &e), &e);
  for (size_t i = 0; i < s->stages; i++) rig_must(pl_checkpoints_write(&c, i, &checksums[i], &e), &e);
  rig_must(pl_checkpoints_publish(&c, &s->counters, checksums, NULL, &e), &e);
  pl_checkpoints_close(&c);
  close_saved(s);
}

/* Every array that is kept counts: both weight versions, AdamW's two moments, both displacements of error feedback. */
static void a_swapped_segment_is_seen(void **state) {
  (void)state;
  rig before, whole, part;
  pl_err e = {0};
  open_run(&whole, &two_bw, 4);
  rig_train(&whole);
  open_run(&before, &two_bw, 2);
  leave(&before);
  open_run(&part, &two_bw, 4);
  for (size_t array = 0; array < 6; array++) {
    rig_must(convert(&before, &part, false, &e), &e);
    swap_layers(&part, array);
    go_on(&part);
    /* Error feedback overwrites the older one of its displacements before it looks. */
    assert_int_equal(same_end(&whole, &part), array == 4 + HALF % 2);
  }
  rig_close(&part);
  rig_close(&before);
  rig_close(&whole);
}

static void refused(const recipe *a, size_t p, const recipe *b, size_t q, const char *sentence) {
  rig before, after;
  pl_err e = {0};
  open_run(&before, a, p);
  leave(&before);
  open_run(&after, b, q);
  assert_int_equal(convert(&before, &after, false, &e), PL_BAD);
  if (!strstr(e.text, sentence)) fail_msg("no \"%s\" in: %s", sentence, e.text);
  assert_int_equal(pl_checkpoints_newest(folder[1]), -1);
  rig_close(&after);
  rig_close(&before);
}

static void other_delays_are_refused(void **state) {
  (void)state;
  static const recipe vertical = {", 'schedule': 'pipedream-vertical'", "adamw", "'none'", "", "", false, 4};
  static const recipe mixed = {
      ", 'schedule': 'accumulate-newest'", "adamw", "'none'", ", 'clip_scope': 'stage'", "", false, 4};
  static const recipe wpipe = {", 'schedule': 'wpipe'", "adamw", "'none'", ", 'clip_scope': 'stage'", "", false, 4};
  static const recipe longer = {"", "adamw", "'none'", "", ", 'delay': 2", false, 4};
  static const recipe deeper = {"", "adamw", "'none'", "", ", 'delay': 3", false, 4};
  static const recipe wider = {", 'schedule': 'gpipe'", "adamw", "'ef'", "", "", false, 4};
  refused(&pipedream, 2, &pipedream, 4,
          "2 stages of pipedream have the delays [1,0] and 4 of pipedream have [3,2,1,0]");
  refused(&pipedream, 4, &pipedream, 1, "4 stages of pipedream have the delays [3,2,1,0] and 1 of pipedream have 0");
  refused(&vertical, 2, &vertical, 4,
          "2 stages of pipedream-vertical have the delays 1 and 4 of pipedream-vertical have 3");
  refused(&mixed, 2, &mixed, 4, "--restart-ring");
  refused(&wpipe, 2, &wpipe, 4, "2 stages of wpipe have the delays [1,0] and 4 of wpipe have [1,1,0,0]");
  refused(&longer, 1, &deeper, 2, "1 stages of lagged have the delays 2 and 2 of lagged have 3");
  refused(&two_bw, 2, &wider, 4, "the checkpoint has no segment head");
}

/* PipeDream from 2 to 4 stages: delays [1,0] become [3,2,1,0]. */
static void rings_restart(void **state) {
  (void)state;
  rig before, after;
  pl_err e = {0};
  open_run(&before, &pipedream, 2);
  leave(&before);
  open_run(&after, &pipedream, 4);
  rig_must(convert(&before, &after, true, &e), &e);
  pl_saved *a = read_saved(&before, folder[0]), *b = read_saved(&after, folder[1]);
  const pl_repartition r = {.from = a, .to = b, .restart_ring = true};
  for (size_t q = 0; q < 4; q++) {
    const pl_stage *s = &b->stage[q];
    assert_int_equal(s->ring.newest, HALF);
    assert_int_equal(s->ring.depth, 4 - q);
    /* Stage 2 takes over what had no delay and so no correction; stage 3 has none now. */
    assert_int_equal(pl_repartition_drops_state(&r, q), q == 2);
    assert_int_equal(s->delayed, q < 2 ? HALF : q == 2 ? 0 : s->delayed);
    for (size_t i = 0; i < b->layout[q]->count; i++) {
      const pl_segment *g = &b->layout[q]->segments[i];
      size_t p = 0, bytes = g->rows * g->cols * sizeof(pl_real);
      const pl_segment *h = pl_saved_find(a, g->name, &p);
      const pl_stage *t = &a->stage[p];
      for (size_t k = 0; k < s->ring.depth; k++)
        assert_memory_equal(s->ring.slots[k] + g->offset, pl_ring_newest(&t->ring) + h->offset, bytes);
      for (size_t k = 0; k < 2; k++) /* of AdamW */
        assert_memory_equal(s->state[k] + g->offset, t->state[k] + h->offset, bytes);
      for (size_t k = 0; q < 2 && k < 2; k++)
        assert_memory_equal(s->correction_state[0][k] + g->offset, t->correction_state[0][k] + h->offset, bytes);
    }
  }
  close_saved(b);
  close_saved(a);
  go_on(&after);
  assert_true(isfinite(after.outcome.final_val_loss));
  /* The same bits again: nothing depends on what the memory held. */
  pl_real *weights = after.weights;
  after.weights = NULL;
  rig_must(convert(&before, &after, true, &e), &e);
  go_on(&after);
  assert_memory_equal(weights, after.weights, after.count * sizeof *weights);
  pl_free(weights);
  rig_close(&after);
  rig_close(&before);
}

static void restart_gives_other_numbers(void **state) {
  (void)state;
  rig before, whole, part;
  pl_err e = {0};
  open_run(&whole, &two_bw, 4);
  rig_train(&whole);
  open_run(&before, &two_bw, 2);
  leave(&before);
  open_run(&part, &two_bw, 4);
  rig_must(convert(&before, &part, true, &e), &e);
  go_on(&part);
  assert_false(same_end(&whole, &part));
  rig_close(&part);
  rig_close(&before);
  rig_close(&whole);
}

/* What is passed over is told, and the source folder stays as it is, temporary files too. */
static void reads_only(void **state) {
  (void)state;
  rig r;
  pl_err e = {0};
  char path[PATH], temporary[PATH];
  bool found = true;
  open_run(&r, &two_bw, 2);
  leave(&r);
  snprintf(temporary, sizeof temporary, "%s/step-%010d.ckpt.tmp", folder[0], HALF);
  FILE *f = fopen(temporary, "wb");
  assert_non_null(f);
  assert_int_equal(fclose(f), 0);
  snprintf(path, sizeof path, "%s/step-%010d.stage-001.ckpt", folder[0], HALF);
  assert_int_equal(truncate(path, 200), 0);
  pl_saved *s = open_saved(&r);
  r.said = 0;
  rig_must(pl_saved_read(s, folder[0], rig_say, &r, &found, &e), &e);
  assert_false(found);
  assert_int_equal(r.said, 1);
  assert_non_null(strstr(r.line, "stage-001.ckpt has 200 bytes instead of"));
  assert_int_equal(access(temporary, F_OK), 0);
  assert_int_equal(unlink(path), 0);
  rig_must(pl_saved_read(s, folder[0], rig_say, &r, &found, &e), &e);
  assert_false(found);
  assert_non_null(strstr(r.line, "cannot be read: No such file"));
  close_saved(s);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_number_of_stages),      cmocka_unit_test(a_swapped_segment_is_seen),
      cmocka_unit_test(other_delays_are_refused),    cmocka_unit_test(rings_restart),
      cmocka_unit_test(restart_gives_other_numbers), cmocka_unit_test(reads_only),
  };
  return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
