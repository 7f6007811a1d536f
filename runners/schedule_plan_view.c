/* A plan as a table for people, and as JSON. */
#include <math.h>
#include <stdio.h>

#include "runners/progress.h"
#include "runners/schedule_plan.h"

enum { STAGES_SHOWN = 64 };

static bool is_asynchronous(const pl_plan_row *r) { return r->plan.delay > 0; }

static double tokens_per_second(const pl_plan_table *t, const pl_plan_row *r) {
  return t->pieces->tokens * (double)t->microbatches / r->plan.step;
}

/* "12.3 ms"; a bare number where times have no unit. */
static char *format_time(const pl_plan_table *t, double time, char out[32]) {
  static const struct {
    double size;
    const char *name;
  } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  size_t i = 0;
  while (i < 3 && time < units[i].size) i++;
  double value = time / units[i].size;
  if (t->pieces->seconds)
    snprintf(out, 32, "%.*f %s", value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, units[i].name);
  else
    snprintf(out, 32, "%.6g", time);
  return out;
}

static char *format_bytes(double bytes, char out[32]) {
  char count[16];
  snprintf(out, 32, "%sB", pl_format_count(bytes, count));
  return out;
}

static void write_row(const pl_plan_table *t, const pl_plan_row *r, pl_str *out) {
  const pl_pipeline_plan *p = &r->plan;
  char time[32], count[16], bytes[32], largest[64];
  pl_str_printf(out, "%-19.40s %5lld %10s %6.1f%%", r->name, (long long)p->delay, format_time(t, p->step, time),
                100 * p->bubble);
  if (isfinite(t->pieces->tokens)) pl_str_printf(out, " %9s", pl_format_count(tokens_per_second(t, r), count));
  if (t->pieces->sized) {
    snprintf(largest, sizeof largest, "%s (%zu)", format_bytes(p->stage[p->largest].memory, bytes), p->largest);
    pl_str_printf(out, " %14s", largest);
    pl_str_printf(out, " %10s", format_bytes(p->memory, bytes));
  }
  if (t->pieces->transfer > 0) pl_str_printf(out, " %6.1f%%", 100 * p->link);
  if (is_asynchronous(r))
    pl_str_printf(out, " %+9.1f%% %+7.1f%%", 100 * pl_pipeline_overhead(p, &t->one_f_one_b->plan),
                  100 * pl_pipeline_overhead(p, &t->gpipe->plan));
  pl_str_append(out, "\n");
}

static void write_head(const pl_plan_table *t, pl_str *out) {
  pl_str_printf(out, "%zu stage%s, %zu microbatch%s an update\n\n", t->stages, t->stages == 1 ? "" : "s",
                t->microbatches, t->microbatches == 1 ? "" : "es");
  pl_str_printf(out, "%-19s %5s %10s %7s", "schedule", "delay", "step", "bubble");
  if (isfinite(t->pieces->tokens)) pl_str_printf(out, " %9s", "tokens/s");
  if (t->pieces->sized) pl_str_printf(out, " %14s %10s", "memory (stage)", "all stages");
  if (t->pieces->transfer > 0) pl_str_printf(out, " %7s", "links");
  pl_str_printf(out, " %10s %8s\n", "pays: 1f1b", "gpipe");
}

static void write_legend(const pl_plan_table *t, pl_str *out) {
  pl_str_printf(out,
                "\nstep: an update while the pipeline runs%s; bubble: share of all stages' time in it that computes "
                "nothing\n",
                t->pieces->seconds ? "" : ", in the unit of --forward");
  if (t->pieces->sized) pl_str_append(out, "memory: of the stage with most, and of all together\n");
  if (t->pieces->transfer > 0)
    pl_str_append(out, "links: share of the step in which a link between stages is taken, in each direction\n");
  pl_str_append(out, "pays: up to that many more tokens to the same loss than 1f1b, than gpipe\n");
}

static void write_stages(const pl_plan_table *t, const pl_plan_row *r, pl_str *out) {
  const pl_pipeline_plan *p = &r->plan;
  char bytes[32];
  pl_str_printf(out, "\nslowest stage of %.40s: %zu, which computes %.1f%% of the step\n", r->name, p->slowest,
                100 * p->stage[p->slowest].busy);
  if (t->stages > STAGES_SHOWN) return;
  pl_str_printf(out, "\n%-6s %6s%s\n", "stage", "busy", t->pieces->sized ? "     memory" : "");
  for (size_t i = 0; i < t->stages; i++) {
    pl_str_printf(out, "%-6zu %5.1f%%", i, 100 * p->stage[i].busy);
    if (t->pieces->sized) pl_str_printf(out, " %10s", format_bytes(p->stage[i].memory, bytes));
    pl_str_append(out, "\n");
  }
}

/* The shortest step of the asynchronous or of the synchronous rows; of equal ones the one with the smallest delay. */
static const pl_plan_row *fastest(const pl_plan_table *t, bool asynchronous) {
  const pl_plan_row *best = NULL;
  for (size_t i = 0; i < t->count; i++) {
    const pl_plan_row *r = t->rows[i];
    if (is_asynchronous(r) != asynchronous) continue;
    bool shorter = best && r->plan.step < best->plan.step * (1 - 1e-9);
    bool equal = best && !shorter && r->plan.step <= best->plan.step * (1 + 1e-9);
    if (!best || shorter || (equal && r->plan.delay < best->plan.delay)) best = r;
  }
  return best;
}

static void conclude_synchronous(const pl_plan_row *r, pl_str *out) {
  pl_str_printf(out,
                "%.40s is synchronous: it needs no more tokens than one process, and %.1f%% of its stages' time is "
                "bubble.\n",
                r->name, 100 * r->plan.bubble);
}

static void conclude_asynchronous(const pl_plan_row *r, const pl_plan_row *synchronous, pl_str *out) {
  double overhead = pl_pipeline_overhead(&r->plan, &synchronous->plan);
  if (overhead > 0)
    pl_str_printf(out, "%.40s pays as long as it needs less than %.1f%% more tokens than %.40s to the same loss.\n",
                  r->name, 100 * overhead, synchronous->name);
  else
    pl_str_printf(out, "%.40s does not pay: its step is not shorter than that of %.40s.\n", r->name, synchronous->name);
}

static void conclude(const pl_plan_table *t, pl_str *out) {
  const pl_plan_row *r = t->named ? t->rows[0] : fastest(t, true);
  pl_str_append(out, "\n");
  if (!r) {
    pl_str_append(out, "No asynchronous schedule takes these numbers.\n");
  } else if (!is_asynchronous(r)) {
    conclude_synchronous(r, out);
  } else {
    conclude_asynchronous(r, t->one_f_one_b, out);
    const pl_plan_row *best = fastest(t, false);
    if (best->plan.step < t->one_f_one_b->plan.step * (1 - 1e-9)) conclude_asynchronous(r, best, out);
  }
}

void pl_plan_table_text(const pl_plan_table *t, pl_str *out) {
  write_head(t, out);
  for (size_t i = 0; i < t->count; i++) write_row(t, t->rows[i], out);
  if (t->left_out.length > 0) pl_str_printf(out, "\nleft out:\n%s", pl_str_text(&t->left_out));
  out->failed |= t->left_out.failed;
  write_legend(t, out);
  if (t->named) write_stages(t, t->rows[0], out);
  conclude(t, out);
}

static pl_json *number_or_null(double value) {
  return isfinite(value) ? pl_json_new_number(value) : pl_json_new_null();
}

static pl_json *stages_json(const pl_plan_table *t, const pl_plan_row *r) {
  pl_json *out = pl_json_new_array();
  bool whole = true;
  for (size_t i = 0; i < t->stages && whole; i++) {
    pl_json *stage = pl_json_new_object();
    bool ok = pl_json_set(stage, "busy", pl_json_new_number(r->plan.stage[i].busy)) &&
              pl_json_set(stage, "memory", number_or_null(r->plan.stage[i].memory));
    whole = pl_json_append(out, pl_json_keep(stage, ok));
  }
  return pl_json_keep(out, whole);
}

static pl_json *row_json(const pl_plan_table *t, const pl_plan_row *r) {
  const pl_pipeline_plan *p = &r->plan;
  const bool async = is_asynchronous(r);
  const double nothing = (double)NAN;
  pl_json *out = pl_json_new_object();
  bool whole =
      pl_json_set(out, "schedule", pl_json_new_string(r->name)) &&
      pl_json_set(out, "delay", pl_json_new_int(p->delay)) && pl_json_set(out, "step", pl_json_new_number(p->step)) &&
      pl_json_set(out, "bubble", pl_json_new_number(p->bubble)) &&
      pl_json_set(out, "tokens_per_second", number_or_null(tokens_per_second(t, r))) &&
      pl_json_set(out, "link_use", pl_json_new_number(p->link)) &&
      pl_json_set(out, "memory", number_or_null(p->memory)) &&
      pl_json_set(out, "largest_stage_memory", number_or_null(p->stage[p->largest].memory)) &&
      pl_json_set(out, "largest_stage", p->memory > 0 ? pl_json_new_int((int64_t)p->largest) : pl_json_new_null()) &&
      pl_json_set(out, "slowest_stage", pl_json_new_int((int64_t)p->slowest)) &&
      pl_json_set(out, "token_overhead_against_1f1b",
                  number_or_null(async ? pl_pipeline_overhead(p, &t->one_f_one_b->plan) : nothing)) &&
      pl_json_set(out, "token_overhead_against_gpipe",
                  number_or_null(async ? pl_pipeline_overhead(p, &t->gpipe->plan) : nothing)) &&
      pl_json_set(out, "by_stage", stages_json(t, r));
  return pl_json_keep(out, whole);
}

pl_json *pl_plan_table_json(const pl_plan_table *t) {
  pl_json *out = pl_json_new_object(), *rows = pl_json_new_array();
  bool whole = !t->left_out.failed;
  for (size_t i = 0; i < t->count && whole; i++) whole = pl_json_append(rows, row_json(t, t->rows[i]));
  whole = pl_json_set(out, "stages", pl_json_new_int((int64_t)t->stages)) && whole;
  whole = pl_json_set(out, "microbatches", pl_json_new_int((int64_t)t->microbatches)) && whole;
  whole = pl_json_set(out, "seconds", pl_json_new_bool(t->pieces->seconds)) && whole;
  whole = pl_json_set(out, "schedules", rows) && whole;
  whole = pl_json_set(out, "left_out", pl_json_new_string(pl_str_text(&t->left_out))) && whole;
  return pl_json_keep(out, whole);
}
