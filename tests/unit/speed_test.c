#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "analysis_help.h"

/* A run of two stages; with `busy` seconds of computing in each second of a stage, or without times when that is 0. */
static void piped_run(pl_catalog *c, const char *schedule, const char *more, int seed, double loss, double busy,
                      double tokens_per_second) {
  char *path = NULL;
  pl_journal *j = NULL;
  pl_catalog_run *r = fake_run(c, PL_RUN_DONE, loss,
                               "\"optimizer\": \"adamw\", \"seed\": %d, \"pipeline\": {\"stages\": 2, "
                               "\"microbatches\": 4, \"schedule\": \"%s\"}, \"train\": {\"steps\": 1200, "
                               "\"batch_tokens\": 512, \"val_every\": 100}%s",
                               seed, schedule, more);
  r->result.outcome.tokens_per_second = tokens_per_second;
  fake_journal(c, r);
  if (busy <= 0) return;
  assert_int_equal(pl_run_path(c->dir, r->id, "times", &path, NULL), PL_OK);
  assert_int_equal(pl_times_open(path, 2, 1, &j, NULL), PL_OK);
  for (int step = 10; step <= 1200; step += 10) {
    const double shift = (step % 20 == 0 ? 0.1 : -0.1) * (1 - busy), rest = 1 - busy;
    const pl_stage_times times[] = {{busy + shift, 0.25 * rest, 0.75 * rest - shift},
                                    {busy - shift, 0.25 * rest, 0.75 * rest + shift}};
    assert_int_equal(pl_times_write(j, step, times, NULL), PL_OK);
  }
  pl_journal_close(j);
  pl_free(path);
}

static const pl_speed_row *speed(const pl_analysis *a, const char *delay) {
  for (size_t i = 0; i < a->speed.count; i++)
    if (strcmp(a->speed.rows[i].arm->delay, delay) == 0) return &a->speed.rows[i];
  return NULL;
}

static const pl_arm *arm(const pl_analysis *a, const char *delay) {
  for (size_t i = 0; i < a->arms.count; i++)
    if (strcmp(a->arms.arms[i].delay, delay) == 0) return &a->arms.arms[i];
  fail_msg("no arm with delay %s", delay);
  return NULL;
}

/* Synchronous schedules and 2BW are arms of one group; simulated delay is measured against simulated synchrony. */
static void schedules_are_delays_with_speeds(void **state) {
  (void)state;
  char dir[] = "/tmp/pl_speed_XXXXXX";
  assert_non_null(mkdtemp(dir));
  pl_catalog c = fake_catalog(dir);
  for (int seed = 0; seed < 3; seed++) {
    piped_run(&c, "lagged", ", \"delay\": 0", seed, 1.5 + 0.01 * seed, 0, 500);
    piped_run(&c, "1f1b", "", seed, 1.5 + 0.01 * seed, 0.8, 1000 + seed);
    piped_run(&c, "2bw", "", seed, 1.53 + 0.012 * seed, 0.95, 1290 + 10 * seed);
    piped_run(&c, "lagged", ", \"delay\": 1", seed, 1.53 + 0.012 * seed, 0.5, 500);
  }
  pl_analysis a = compute(&c, &(pl_gap_options){0});
  const pl_arm *sync = arm(&a, "0 1f1b"), *piped = arm(&a, "1 2bw"), *lagged = arm(&a, "1 lagged");
  assert_int_equal(a.arms.count, 4);
  assert_string_equal(piped->group, "");
  assert_string_equal(sync->name, "adamw sync 1f1b");
  assert_ptr_equal(piped->baseline, sync);
  assert_ptr_equal(lagged->baseline, arm(&a, "0 lagged"));
  assert_ptr_equal(sync->baseline, sync);
  near(row(&a, "adamw", "1 2bw", "none")->gap.mean, 0.032);
  assert_int_equal(a.speed.count, 3); /* one of them without times */
  near(speed(&a, "0 1f1b")->bubble, 0.2);
  near(speed(&a, "0 1f1b")->communication, 0.05);
  near(speed(&a, "0 1f1b")->at_once, 1.6);
  near(speed(&a, "0 1f1b")->tokens_per_second, 1001);
  near(speed(&a, "0 1f1b")->seconds_per_update, (512.0 / 1000 + 512.0 / 1001 + 512.0 / 1002) / 3);
  assert_true(isnan(speed(&a, "0 1f1b")->gain));
  near(speed(&a, "1 2bw")->gain, 1300.0 / 1001);
  near(reach(&a, "1 2bw", "none")->measured_gain, 1300.0 / 1001);
  near(reach(&a, "1 2bw", "none")->schedule_gain, 5.0 / 4);
  near(speed(&a, "1 lagged")->bubble, 0.5);
  assert_true(isnan(speed(&a, "1 lagged")->gain)); /* its stages take turns */
  assert_true(isnan(reach(&a, "1 lagged", "none")->measured_gain));
  char *text = sheet_text(&a, PL_SHEET_SPEED);
  assert_non_null(strstr(text, "  adamw      1 2bw     none           3    5.0%           1.3%"));
  assert_non_null(strstr(text, "1.299\n"));
  pl_str_free(&(pl_str){.text = text});
  text = sheet_csv(&a, PL_SHEET_SPEED); /* the group, which is empty, is a field too */
  assert_int_equal(strncmp(text, "group,optimizer,delay,correction,runs,bubble,", 45), 0);
  assert_non_null(strstr(text, "\n,adamw,1 2bw,none,3,0.05"));
  pl_str_free(&(pl_str){.text = text});
  text = sheet_text(&a, PL_SHEET_REACH);
  assert_non_null(strstr(text, "1.30 measured"));
  pl_str_free(&(pl_str){.text = text});
  pl_analysis_free(&a);
  pl_catalog_free(&c);
  remove_folder(dir);
}

/* Without a schedule that varies nothing is named, and without times there is no table. */
static void one_schedule_is_not_named(void **state) {
  (void)state;
  char dir[] = "/tmp/pl_speed_XXXXXX";
  assert_non_null(mkdtemp(dir));
  pl_catalog c = fake_catalog(dir);
  piped_run(&c, "lagged", ", \"delay\": 0", 0, 1.5, 0, 500);
  piped_run(&c, "lagged", ", \"delay\": 1", 0, 1.6, 0, 500);
  pl_analysis a = compute(&c, &(pl_gap_options){0});
  assert_ptr_equal(arm(&a, "1")->baseline, arm(&a, "0"));
  assert_int_equal(a.speed.count, 0);
  near(reach(&a, "1", "none")->schedule_gain, 5.0 / 4);
  pl_analysis_free(&a);
  pl_catalog_free(&c);
  remove_folder(dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(schedules_are_delays_with_speeds),
      cmocka_unit_test(one_schedule_is_not_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
