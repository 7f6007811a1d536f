/* Submitting a small sweep to the Slurm of shell scripts, and what became of its runs. */
#ifndef SLURM_SUBMIT_HELP_H
#define SLURM_SUBMIT_HELP_H

#include "fake_slurm.h"

#include "runners/launchers/slurm/submission.h"
#include "runners/launchers/slurm/submit.h"

/* A sweep of a quadratic over seeds, with a section slurm. */
static inline void write_sweep(void **state, const char *seeds, const char *delays, const char *slurm) {
  char text[2048];
  snprintf(text, sizeof text,
           "{\"name\": \"s\", \"base\": {\"model\": {\"type\": \"quadratic\", \"dim\": 8}, \"optimizer\": \"sgd\", "
           "\"train\": {\"steps\": 20}}, \"grid\": {\"delay\": %s}, \"seeds\": %s, \"slurm\": {%s}}",
           delays, seeds, slurm);
  fake_write(state, "sweep.json", text);
}

static inline pl_status submit_with(void **state, bool dry_run, const bool *chosen, pl_submit_result *r, pl_err *e) {
  char sweep[256], dir[256];
  const pl_options o = {.output = in_temp(state, "out", dir), .max_runs = 1000};
  pl_plan plan;
  *r = (pl_submit_result){0};
  *e = (pl_err){0};
  pl_status st = pl_plan_make(&o, in_temp(state, "sweep.json", sweep), &plan, e);
  if (st != PL_OK) return st;
  const pl_submit_args args = {.plan = &plan, .quiet = true, .dry_run = dry_run, .chosen = chosen};
  st = pl_submit(&args, r, e);
  fflush(stdout);
  pl_plan_free(&plan);
  return st;
}

static inline pl_status submit(void **state, pl_submit_result *r, pl_err *e) {
  return submit_with(state, false, NULL, r, e);
}

static inline pl_submit_result submit_ok(void **state) {
  pl_submit_result r;
  pl_err e;
  if (submit(state, &r, &e) != PL_OK) fail_msg("%s", e.text);
  return r;
}

static inline pl_submissions read_all(void **state) {
  char dir[256];
  pl_submissions all;
  pl_err e = {0};
  if (pl_submissions_read(in_temp(state, "out", dir), &all, &e) != PL_OK) fail_msg("%s", e.text);
  return all;
}

/* Every run is in exactly one submission that Slurm took. */
static inline void each_run_once(void **state, size_t runs) {
  pl_submissions all = read_all(state);
  size_t rows = 0;
  for (size_t i = 0; i < all.count; i++) {
    if (all.items[i].sent != PL_SENT_YES) continue;
    for (size_t k = 0; k < all.items[i].count; k++, rows++)
      for (size_t j = i; j < all.count; j++)
        for (size_t m = j == i ? k + 1 : 0; m < all.items[j].count; m++)
          if (all.items[j].sent == PL_SENT_YES) assert_true(all.items[i].rows[k].id != all.items[j].rows[m].id);
  }
  assert_int_equal(rows, runs);
  pl_submissions_free(&all);
}

static inline bool call_has(void **state, int call, const char *words) {
  char *argv = fake_call(state, "sbatch", call, "argv");
  bool found = strstr(argv, words) != NULL;
  pl_free(argv);
  return found;
}

#endif
