/* curves.h5 and the collected file, read back by other programs: h5dump and h5py. */
#include "results_help.h"

#include "results/curves.h"

static pl_curve make_curve(void **state, int64_t last) {
  char path[256];
  pl_journal *j;
  pl_curve c;
  in_temp(state, "journal", path);
  for (int64_t attempt = 1, from = 0; attempt <= 2; attempt++, from = last / 2) {
    assert_int_equal(pl_journal_open(path, &j, NULL), PL_OK);
    for (int64_t step = from; step <= last; step++) {
      const pl_point p = point_at(step, attempt);
      assert_int_equal(pl_journal_write(j, &p, NULL), PL_OK);
    }
    pl_journal_close(j);
  }
  assert_int_equal(pl_curve_read(path, &c, NULL), PL_OK);
  return c;
}

/* What a command prints, up to 64 KiB; the command must succeed. Released by free. */
static char *run_command(const char *command) {
  char *text = calloc(1, 65536);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  assert_non_null(text);
  size_t length = fread(text, 1, 65535, pipe);
  text[length] = '\0';
  if (pclose(pipe) != 0) fail_msg("%s: failed with %s", command, text);
  return text;
}

/* Runs a Python script over a file; skips the test when there is no h5py. */
static char *run_h5py(const char *path, const char *script) {
  char command[4096];
  if (system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") != 0) {
    print_message("no h5py for /usr/bin/python3: not read back by it\n");
    return NULL;
  }
  snprintf(command, sizeof command,
           "/usr/bin/python3 -c 'import h5py, numpy as np, sys\nf = h5py.File(sys.argv[1], \"r\")\n%s' '%s' 2>&1",
           script, path);
  return run_command(command);
}

static void assert_prints(char *text, const char *expected) {
  if (!text) return;
  assert_string_equal(text, expected);
  free(text);
}

static void h5py_reads_a_curve(void **state) {
  char path[256];
  pl_run_config config;
  pl_err e = {0};
  pl_json *document = toy_run("muon", 0.02, 7, &config);
  pl_curve c = make_curve(state, 40);
  in_temp(state, "curves.h5", path);
  assert_int_equal(pl_curves_write(path, &c, document, 0x0123456789abcdefu, &e), PL_OK);
  assert_prints(
      run_h5py(path, "names = []\nf.visititems(lambda n, o: names.append(n) if hasattr(o, \"shape\") else None)\n"
                     "print(\" \".join(names))\n"
                     "print(f[\"step\"].dtype, f[\"tokens\"].dtype, f[\"train/loss\"].dtype, f[\"train/loss\"].shape)\n"
                     "s = np.arange(41); a = np.where(s < 20, 1, 2)\n"
                     "assert (f[\"step\"][:] == s).all() and (f[\"tokens\"][:] == 1024 * s).all()\n"
                     "assert (f[\"attempt\"][:] == a).all()\n"
                     "assert (f[\"train/loss\"][:] == s + 0.001 * 1 + 0.0001 * a).all()\n"
                     "assert (f[\"val/loss\"][:] == s + 0.001 * 2 + 0.0001 * a).all()\n"
                     "assert (f[\"seconds\"][:] == s + 0.001 * 11 + 0.0001 * a).all()\n"
                     "assert (np.isnan(f[\"weight_norm\"][:]) == (s % 10 != 0)).all()\n"
                     "print(f.attrs[\"id\"], f.attrs[\"attempts\"], f.attrs[\"generator\"])\n"
                     "import json\nprint(json.loads(f.attrs[\"config\"])[\"name\"])\n"),
      "attempt bubble delay delay_mean displacement_ratio drift gradient_cos lr seconds step tokens train/clip_scale "
      "train/grad_norm train/loss update_norm "
      "val/loss "
      "val/loss_y weight_norm\n"
      "int64 int64 float64 (41,)\n0123456789abcdef 2 pipelag\nd\xc3\xa9lai\n");
  pl_curve_free(&c);
  pl_json_release(document);
}

static void drop_blanks(char *text) {
  char *to = text;
  for (const char *from = text; *from; from++)
    if (*from != ' ' && *from != '\n') *to++ = *from;
  *to = '\0';
}

static void h5dump_reads_a_curve(void **state) {
  char path[256], command[512];
  pl_run_config config;
  pl_json *document = toy_run("muon", 0.02, 7, &config);
  pl_curve c = make_curve(state, 5);
  in_temp(state, "curves.h5", path);
  assert_int_equal(pl_curves_write(path, &c, document, 1, NULL), PL_OK);
  if (system("h5dump --version >/dev/null 2>&1") != 0) {
    print_message("no h5dump: not read back by it\n");
  } else {
    snprintf(command, sizeof command, "h5dump -y -m '%%.4f' -d /val/loss '%s'", path);
    char *text = run_command(command);
    drop_blanks(text);
    assert_non_null(strstr(text, "H5T_IEEE_F64LE"));
    assert_non_null(strstr(text, "{0.0021,1.0021,2.0022,3.0022,4.0022,5.0022}"));
    free(text);
  }
  pl_curve_free(&c);
  pl_json_release(document);
}

/* Also a second later: nothing in the file depends on the time. */
static void the_same_curve_gives_the_same_bytes(void **state) {
  char path[256], *before, *after;
  pl_run_config config;
  pl_json *document = toy_run("muon", 0.02, 7, &config);
  pl_curve c = make_curve(state, 300), none = {0};
  in_temp(state, "curves.h5", path);
  for (int empty = 0; empty < 2; empty++) {
    const pl_curve *curve = empty ? &none : &c;
    assert_int_equal(pl_curves_write(path, curve, document, 1, NULL), PL_OK);
    size_t length = read_bytes(path, &before);
    usleep(1100000);
    assert_int_equal(pl_curves_write(path, curve, document, 1, NULL), PL_OK);
    assert_int_equal(read_bytes(path, &after), length);
    assert_memory_equal(before, after, length);
    pl_free(before);
    pl_free(after);
  }
  assert_prints(run_h5py(path, "print(f[\"train/loss\"].shape, f[\"step\"][:])"), "(0,) []\n");
  pl_curve_free(&c);
  pl_json_release(document);
}

static int write_without_room(void *self, int number) {
  const struct rlimit small = {20000, RLIM_INFINITY};
  pl_err e = {0};
  pl_run_config config;
  (void)number;
  pl_json *document = toy_run("muon", 0.02, 7, &config);
  pl_curve c = make_curve(&self, 300);
  char path[256];
  in_temp(&self, "curves.h5", path);
  signal(SIGXFSZ, SIG_IGN);
  for (int again = 0; again < 2; again++) {
    if (setrlimit(RLIMIT_FSIZE, &small) != 0) return 1;
    e = (pl_err){0};
    if (pl_curves_write(path, &c, document, 1, &e) != PL_FAIL) return 2;
    if (!strstr(e.text, path)) return 3;
  }
  const struct rlimit large = {1 << 20, RLIM_INFINITY};
  if (setrlimit(RLIMIT_FSIZE, &large) != 0 || pl_curves_write(path, &c, document, 1, NULL) != PL_OK) return 4;
  pl_curve_free(&c);
  pl_json_release(document);
  return 0;
}

static void a_full_disk_is_a_failure_and_no_crash(void **state) {
  char path[256];
  pl_err e = {0};
  pl_run_config config;
  pl_json *document = toy_run("muon", 0.02, 7, &config);
  const pl_curve none = {0};
  write_bytes(in_temp(state, "curves.h5", path), "old", 3);
  assert_int_equal(fork_all(1, write_without_room, *state), 0);
  assert_int_equal(pl_curves_write(in_temp(state, "curves.h5/below", path), &none, document, 1, &e), PL_FAIL);
  assert_says(&e, path);
  pl_json_release(document);
}

static void write_times(const char *path) {
  pl_journal *j;
  assert_int_equal(pl_times_open(path, 3, 1, &j, NULL), PL_OK);
  for (int step = 1; step < 12; step++) {
    const pl_stage_times times[] = {{step, 0.1, 0.2}, {step, 0.3, 0.4}, {step + 0.5, 0.5, 0.6}};
    assert_int_equal(pl_times_write(j, step, times, NULL), PL_OK);
  }
  pl_journal_close(j);
}

enum { RUNS = 6 };

/* Runs 0..3 are done, with curves of 10, 11, ... points, 2 with the times of its stages; 4 has only a config, 5 not
 * even a folder. */
static void make_sweep(const char *dir, uint64_t ids[RUNS]) {
  pl_freeze *f;
  pl_err e = {0};
  pl_json *document = NULL;
  assert_int_equal(pl_json_parse("{}", 2, "test", &document, NULL), PL_OK);
  assert_int_equal(pl_freeze_begin(dir, "swe\xc3\xa9p", document, "/tmp", &f, &e), PL_OK);
  pl_json_release(document);
  for (int i = 0; i < RUNS; i++) {
    pl_run_config config;
    char label[32], *path;
    uint64_t index;
    pl_journal *j;
    pl_curve c;
    pl_json *run = toy_run(i % 2 ? "adamw" : "muon", 0.01 * (i + 1), i, &config);
    ids[i] = pl_run_config_id(&config);
    snprintf(label, sizeof label, "lr=%g", 0.01 * (i + 1));
    assert_int_equal(pl_freeze_add(f, ids[i], label, &index, &e), PL_OK);
    if (i < 5) assert_int_equal(pl_run_create(dir, ids[i], &config, &e), PL_OK);
    if (i < 4) {
      pl_outcome o = {.end = PL_END_DONE, .final_val_loss = 1.5 + i, .steps = 100 + i, .val_loss_y = (double)NAN};
      assert_int_equal(pl_run_path(dir, ids[i], "journal", &path, &e), PL_OK);
      assert_int_equal(pl_journal_open(path, &j, &e), PL_OK);
      for (int step = 0; step < 10 + i; step++) {
        const pl_point p = point_at(step, 1);
        assert_int_equal(pl_journal_write(j, &p, &e), PL_OK);
      }
      pl_journal_close(j);
      assert_int_equal(pl_curve_read(path, &c, &e), PL_OK);
      pl_free(path);
      assert_int_equal(pl_run_path(dir, ids[i], "times", &path, &e), PL_OK);
      if (i == 2) write_times(path);
      assert_int_equal(pl_times_read(path, &c.times, &e), PL_OK);
      pl_free(path);
      assert_int_equal(pl_run_path(dir, ids[i], "curves.h5", &path, &e), PL_OK);
      pl_json *dump = pl_run_config_dump(&config);
      assert_int_equal(pl_curves_write(path, &c, dump, ids[i], &e), PL_OK);
      assert_int_equal(pl_run_write_result(dir, ids[i], PL_RUN_DONE, &o, NULL, &e), PL_OK);
      pl_json_release(dump);
      pl_curve_free(&c);
      pl_free(path);
    }
    pl_json_release(run);
  }
  assert_int_equal(pl_freeze_commit(f, &e), PL_OK);
  pl_freeze_end(f);
}

typedef struct lines {
  int count;
  char last[512];
} lines;

static void keep_line(void *self, const char *line) {
  lines *l = self;
  l->count++;
  snprintf(l->last, sizeof l->last, "%s", line);
}

static lines collect(const char *dir, const char *path) {
  lines said = {0};
  pl_catalog c;
  pl_err e = {0};
  if (pl_catalog_open(&toys, dir, true, keep_line, &said, &c, &e) != PL_OK) fail_msg("%s", e.text);
  if (pl_curves_collect(&c, path, keep_line, &said, &e) != PL_OK) fail_msg("%s", e.text);
  pl_catalog_free(&c);
  return said;
}

static void h5py_reads_a_collected_sweep(void **state) {
  char path[256];
  uint64_t ids[RUNS];
  make_sweep(*state, ids);
  in_temp(state, "all.h5", path);
  lines said = collect(*state, path);
  assert_string_equal(said.last, "");
  assert_prints(
      run_h5py(path, "t = f[\"table\"]\nprint(f.attrs[\"name\"], len(f[\"runs\"]))\n"
                     "print(t[\"index\"][:], t[\"seed\"][:], t[\"current\"][:], t[\"steps\"][:])\n"
                     "for n in \"label\", \"state\", \"optimizer\", \"delay\", \"correction\":\n"
                     "  print(\" \".join(t[n].asstr()[:]))\n"
                     "print(t[\"lr\"][:4], t[\"final_val_loss\"][:])\n"
                     "for i, id in enumerate(t[\"id\"].asstr()[:4]):\n"
                     "  g = f[\"runs\"][id]; s = np.arange(10 + i)\n"
                     "  assert (g[\"step\"][:] == s).all()\n"
                     "  assert (g[\"train/loss\"][:] == s + 0.001 + 0.0001).all()\n"
                     "  assert g.attrs[\"index\"] == i and g.attrs[\"final_val_loss\"] == 1.5 + i\n"
                     "a = f[\"runs\"][t[\"id\"].asstr()[1]].attrs\n"
                     "print(repr(a[\"optimizer.lr\"]), a[\"optimizer.type\"], repr(a[\"optimizer.nesterov\"]))\n"
                     "print(a[\"delay\"], a[\"train.steps\"], a[\"train.lr_schedule.type\"], a[\"correction.type\"])\n"
                     "print(a[\"name\"], \"notes\" in a, a[\"state\"], a[\"attempts\"], repr(a[\"error\"]))\n"
                     "p = f[\"runs\"][t[\"id\"].asstr()[5]]\nprint(p[\"step\"].shape, p.attrs[\"state\"])\n"
                     "print([i for i, id in enumerate(t[\"id\"].asstr()) if \"stages\" in f[\"runs\"][id]])\n"
                     "g = f[\"runs\"][t[\"id\"].asstr()[2]][\"stages\"]\n"
                     "print(g[\"step\"][:3], g[\"busy\"][2], g[\"idle\"].attrs[\"unit\"])\n"),
      "swe\xc3\xa9p 6\n"
      "[0 1 2 3 4 5] [ 0  1  2  3  4 -1] [1 1 1 1 1 1] [100 101 102 103   0   0]\n"
      "lr=0.01 lr=0.02 lr=0.03 lr=0.04 lr=0.05 lr=0.06\n"
      "done done done done pending pending\n"
      "muon adamw muon adamw muon \n"
      "[3,1,0] [3,1,0] [3,1,0] [3,1,0] [3,1,0] \n"
      "ef ef ef ef ef \n"
      "[0.01 0.02 0.03 0.04] [1.5 2.5 3.5 4.5 nan nan]\n"
      "0.02 adamw True\n"
      "[3 1 0] 100 cosine ef\n"
      "d\xc3\xa9lai False done 1 ''\n"
      "(0,) pending\n[2]\n[1 2 3] [3.  3.  3.5] s\n");
}

/* Named, rebuilt, and the other runs are there. */
static void damaged_and_missing_curves_are_rebuilt(void **state) {
  static const char *const words[] = {"missing", "did not match", "did not match"};
  char path[256], again[256], *whole, *mended, *first, *second;
  uint64_t ids[RUNS];
  make_sweep(*state, ids);
  in_temp(state, "all.h5", path);
  in_temp(state, "again.h5", again);
  assert_int_equal(collect(*state, path).count, 0);
  for (int damage = 0; damage < 3; damage++) {
    char *curves, hex[PL_ID_SIZE];
    assert_int_equal(pl_run_path(*state, ids[damage], "curves.h5", &curves, NULL), PL_OK);
    size_t length = read_bytes(curves, &whole);
    if (damage == 0) assert_int_equal(unlink(curves), 0);
    if (damage == 1) assert_int_equal(truncate(curves, (off_t)length / 2), 0);
    if (damage == 2) {
      whole[length - 9] ^= 4;
      write_bytes(curves, whole, length);
      whole[length - 9] ^= 4;
    }
    lines said = collect(*state, again);
    assert_int_equal(said.count, 1);
    pl_hash_hex(ids[damage], hex);
    assert_non_null(strstr(said.last, hex));
    assert_non_null(strstr(said.last, words[damage]));
    assert_int_equal(read_bytes(curves, &mended), length);
    assert_memory_equal(mended, whole, length);
    pl_free(mended);
    pl_free(whole);
    pl_free(curves);
  }
  size_t length = read_bytes(path, &first);
  assert_int_equal(read_bytes(again, &second), length);
  assert_memory_equal(first, second, length);
  pl_free(first);
  pl_free(second);
}

/* A journal that is none: its run is named and left empty. */
static void an_unreadable_journal_does_not_stop_the_others(void **state) {
  char path[256], *journal;
  uint64_t ids[RUNS];
  make_sweep(*state, ids);
  in_temp(state, "all.h5", path);
  assert_int_equal(pl_run_path(*state, ids[2], "journal", &journal, NULL), PL_OK);
  write_bytes(journal, "this is no journal, but it is longer than the header of one", 59);
  lines said = collect(*state, path);
  assert_int_equal(said.count, 1);
  assert_non_null(strstr(said.last, "is no journal"));
  assert_prints(run_h5py(path, "print([g[\"step\"].shape[0] for g in\n"
                               "       (f[\"runs\"][i] for i in f[\"table/id\"].asstr()[:])])"),
                "[10, 11, 0, 13, 0, 0]\n");
  pl_free(journal);
}

static void collecting_where_nothing_can_be_written_fails(void **state) {
  char path[256];
  uint64_t ids[RUNS];
  pl_catalog c;
  pl_err e = {0};
  make_sweep(*state, ids);
  assert_int_equal(pl_catalog_open(&toys, *state, true, NULL, NULL, &c, NULL), PL_OK);
  assert_int_equal(pl_curves_collect(&c, in_temp(state, "runs.tsv/all.h5", path), NULL, NULL, &e), PL_FAIL);
  assert_says(&e, path);
  pl_catalog_free(&c);
}

static int collect_without_room(void *self, int number) {
  char path[256], *bytes;
  pl_catalog c;
  (void)number;
  const size_t whole = read_bytes(in_temp(&self, "all.h5", path), &bytes);
  const rlim_t most[] = {0, 5000, whole / 2, whole - 1};
  pl_free(bytes);
  signal(SIGXFSZ, SIG_IGN);
  if (pl_catalog_open(&toys, self, true, NULL, NULL, &c, NULL) != PL_OK) return 1;
  for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
    const struct rlimit small = {most[i], RLIM_INFINITY};
    pl_err e = {0};
    if (setrlimit(RLIMIT_FSIZE, &small) != 0) return 2;
    if (pl_curves_collect(&c, path, NULL, NULL, &e) != PL_FAIL) return 3;
    if (!strstr(e.text, path) || !strstr(e.text, "File too large")) return 4;
  }
  const struct rlimit large = {RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_FSIZE, &large) != 0 || pl_curves_collect(&c, path, NULL, NULL, NULL) != PL_OK) return 5;
  pl_catalog_free(&c);
  return 0;
}

/* However much of it there was room for; the old file stays, and nothing else is left. */
static void a_disk_that_fills_while_collecting_is_a_failure_and_no_crash(void **state) {
  char path[256], command[512];
  uint64_t ids[RUNS];
  make_sweep(*state, ids);
  collect(*state, in_temp(state, "all.h5", path));
  assert_int_equal(fork_all(1, collect_without_room, *state), 0);
  snprintf(command, sizeof command, "! ls '%s' | grep -q tmp", (char *)*state);
  assert_int_equal(system(command), 0);
  assert_prints(run_h5py(path, "print(len(f[\"table/id\"]))"), "6\n");
}

/* Two writings of one sweep, to see that no byte depends on where memory or disk were. */
static void a_collected_file_has_the_same_bytes_again(void **state) {
  char one[256], other[256], *a, *b;
  uint64_t ids[RUNS];
  make_sweep(*state, ids);
  collect(*state, in_temp(state, "one.h5", one));
  collect(*state, in_temp(state, "other.h5", other));
  size_t length = read_bytes(one, &a);
  assert_int_equal(read_bytes(other, &b), length);
  assert_memory_equal(a, b, length);
  pl_free(a);
  pl_free(b);
}

#define IN_TEMP(test) cmocka_unit_test_setup_teardown(test, make_temp, remove_temp)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_TEMP(h5py_reads_a_curve),
      IN_TEMP(h5dump_reads_a_curve),
      IN_TEMP(the_same_curve_gives_the_same_bytes),
      IN_TEMP(a_full_disk_is_a_failure_and_no_crash),
      IN_TEMP(h5py_reads_a_collected_sweep),
      IN_TEMP(damaged_and_missing_curves_are_rebuilt),
      IN_TEMP(an_unreadable_journal_does_not_stop_the_others),
      IN_TEMP(collecting_where_nothing_can_be_written_fails),
      IN_TEMP(a_disk_that_fills_while_collecting_is_a_failure_and_no_crash),
      IN_TEMP(a_collected_file_has_the_same_bytes_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
