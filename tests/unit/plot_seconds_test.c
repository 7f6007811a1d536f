/* Loss against wall-clock time: what is drawn, of which runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "analysis/plots.h"
#include "fake_sweep.h"

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at) {
  (void)s;
  (void)kind;
  (void)at;
  return remove(path);
}

/* Validations every 10 of 200 updates, `pace` seconds an update; another attempt goes on after `stop` updates. */
static void add_run(pl_catalog *c, int delay, int seed, double pace, int64_t stop) {
  char *path = NULL, *folder = NULL;
  pl_journal *j = NULL;
  pl_catalog_run *r = fake_run(c, PL_RUN_DONE, 1.5 + delay,
                               "\"optimizer\": \"adamw\", \"delay\": %d, \"seed\": %d, \"train\": {\"steps\": 200, "
                               "\"val_every\": 10}",
                               delay, seed);
  assert_int_equal(pl_run_path(c->dir, r->id, "", &folder, NULL), PL_OK);
  assert_int_equal(pl_make_folders(folder, NULL), PL_OK);
  assert_int_equal(pl_run_path(c->dir, r->id, "journal", &path, NULL), PL_OK);
  assert_int_equal(pl_journal_open(path, &j, NULL), PL_OK);
  for (int64_t s = 0; s <= 200; s += 5) {
    pl_point p = {.step = s, .tokens = s};
    for (size_t i = 0; i < PL_SERIES_COUNT; i++) p.values[i] = (double)NAN;
    if (s % 10 == 0) p.values[PL_SERIES_val_loss] = 5 - 0.01 * (double)s + delay + 0.1 * seed;
    p.values[PL_SERIES_seconds] = pace * (double)(s > stop ? s - stop : s);
    if (s == stop + 5) {
      pl_journal_close(j);
      assert_int_equal(pl_journal_open(path, &j, NULL), PL_OK);
    }
    assert_int_equal(pl_journal_write(j, &p, NULL), PL_OK);
  }
  pl_journal_close(j);
  pl_free(path);
  pl_free(folder);
}

static void curves_run_against_mean_seconds(void **state) {
  (void)state;
  char dir[] = "/tmp/pl_seconds_XXXXXX";
  pl_err e = {0};
  pl_plot p = {.name = "loss_vs_seconds"};
  assert_non_null(mkdtemp(dir));
  pl_catalog c = fake_catalog(dir);
  add_run(&c, 0, 0, 0.5, 200);
  add_run(&c, 0, 1, 0.7, 200);
  add_run(&c, 0, 2, 9, 100); /* in two attempts: its losses count, its time does not */
  add_run(&c, 1, 0, 0.25, 200);
  add_run(&c, 2, 0, 0.25, 50); /* no time at all */
  const pl_gap_options o = {0};
  pl_analysis a;
  if (pl_analysis_run(&c, NULL, &o, &a, &e) != PL_OK) fail_msg("%s", e.text);
  const pl_plot_input in = {.catalog = &c, .arms = &a.arms, .table = &a.gap, .options = &o};
  assert_int_equal(pl_plot_loss_vs_seconds(&in, pl_arms_of_group(&a.arms, 0), &p, &e), PL_OK);
  assert_int_equal(p.blocks, 2);
  const char *script = pl_str_text(&p.script), *data = pl_str_text(&p.data);
  assert_non_null(strstr(script, "wall-clock time (s)"));
  assert_non_null(strstr(script, "'sync (lr 0.001, n=2)'"));
  assert_non_null(strstr(script, "'delay 1 (lr 0.001, n=1)'"));
  assert_null(strstr(script, "delay 2"));
  assert_non_null(strstr(script, "set xrange [0:120]"));
  double seconds = -1, loss = -1;
  for (int i = 0; i <= 20; i++) { /* 0.6 seconds an update, the mean of three losses */
    int used = 0;
    assert_int_equal(sscanf(data, "%lf %lf\n%n", &seconds, &loss, &used), 2);
    assert_true(fabs(seconds - 6 * i) < 1e-6 && fabs(loss - (5.1 - 0.1 * i)) < 1e-6);
    data += used;
  }
  pl_plot_free(&p);
  pl_analysis_free(&a);
  pl_catalog_free(&c);
  assert_int_equal(nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(curves_run_against_mean_seconds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
