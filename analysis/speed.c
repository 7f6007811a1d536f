#include "analysis/speed.h"

#include <math.h>

#include "core/base/memory.h"
#include "results/times.h"

static const double least_overlap = 1.05; /* stages at once: more than rounding makes of those that take turns */

bool pl_speed_is_measured(const pl_speed_row *r) { return r->at_once > least_overlap; }

/* Sums, of which the means are made. */
static pl_status add_run(const pl_arm_run *r, pl_speed_row *row, pl_err *e) {
  pl_times times;
  const double speed = r->run->result.outcome.tokens_per_second;
  if (!r->run->has_result || !(speed > 0 && isfinite(speed))) return PL_OK;
  pl_status st = pl_catalog_times(r->run, &times, e);
  if (st != PL_OK) return st;
  const pl_stage_times total = pl_times_total(&times);
  const double bubble = pl_stage_times_bubble(&total);
  if (!isnan(bubble)) {
    row->runs++;
    row->bubble += bubble;
    row->communication += total.communication / (total.busy + total.communication + total.idle);
    row->at_once += (double)times.stages * (1 - bubble);
    row->tokens_per_second += speed;
    row->seconds_per_update += (double)r->run->config->train.batch_tokens / speed;
  }
  pl_times_free(&times);
  return PL_OK;
}

static pl_status add_arm(const pl_arm *a, pl_speed_table *out, pl_err *e) {
  pl_speed_row row = {.arm = a, .gain = NAN};
  if (a->config->pipeline.stages < 2) return PL_OK;
  for (size_t i = 0; i < a->cell_count; i++)
    for (size_t k = 0; k < a->cells[i].count; k++) {
      pl_status st = add_run(&a->cells[i].runs[k], &row, e);
      if (st != PL_OK) return st;
    }
  if (row.runs == 0) return PL_OK;
  double *means[] = {&row.bubble, &row.communication, &row.at_once, &row.tokens_per_second, &row.seconds_per_update};
  for (size_t i = 0; i < sizeof means / sizeof means[0]; i++) *means[i] /= (double)row.runs;
  out->rows[out->count++] = row;
  return PL_OK;
}

static const pl_speed_row *row_of(const pl_speed_table *t, const pl_arm *a) {
  for (size_t i = 0; i < t->count; i++)
    if (t->rows[i].arm == a) return &t->rows[i];
  return NULL;
}

static void fill_gain(const pl_speed_table *t, pl_speed_row *row) {
  const pl_speed_row *sync = row->arm->sync || !row->arm->baseline ? NULL : row_of(t, row->arm->baseline);
  if (sync && pl_speed_is_measured(sync) && pl_speed_is_measured(row))
    row->gain = row->tokens_per_second / sync->tokens_per_second;
}

pl_status pl_speed_compute(const pl_arms *arms, pl_speed_table *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_speed_table){0};
  PL_TRY(pl_alloc(arms->count, sizeof out->rows[0], "the table of speeds", &out->rows, e));
  for (size_t i = 0; i < arms->count; i++) PL_TRY(add_arm(&arms->arms[i], out, e));
  for (size_t i = 0; i < out->count; i++) fill_gain(out, &out->rows[i]);
out:
  if (st != PL_OK) pl_speed_free(out);
  return st;
}

void pl_speed_free(pl_speed_table *t) {
  pl_free(t->rows);
  *t = (pl_speed_table){0};
}

double pl_speed_gain(const pl_speed_table *t, const pl_arm *a) {
  const pl_speed_row *row = row_of(t, a);
  return row ? row->gain : (double)NAN;
}
