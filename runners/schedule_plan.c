#include "runners/schedule_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/pipeline/schedule_text.h"
#include "core/train/correction.h"
#include "core/train/stage.h"
#include "runners/say.h"
#include "runners/schedule_model.h"

/* Corrections keep arrays of the weights' size, as many as the stage's delay asks for. */
static void add_corrections(const pl_run_config *c, const pl_schedule_facts *facts, size_t stages,
                            pl_stage_sizes *sizes) {
  for (size_t i = 0; i < c->correction_count; i++) {
    const pl_correction_type *type = (const pl_correction_type *)c->corrections[i].type;
    for (size_t p = 0; p < stages; p++)
      if (pl_correction_active(c, i, facts->delay[p]))
        sizes[p].optimizer += (double)type->state_arrays(c->corrections[i].config, facts->delay[p]) * sizes[p].weights;
  }
}

/* What one row needs while it is made. */
typedef struct work {
  pl_schedule schedule;
  pl_schedule_facts facts;
  pl_stage_costs times[PL_SCHEDULE_STAGES];
  pl_stage_sizes sizes[PL_SCHEDULE_STAGES];
} work;

static pl_status plan_row(pl_plan_table *t, work *w, pl_err *e) {
  pl_status st = PL_OK;
  const pl_schedule *s = &w->schedule;
  const pl_pieces *pieces = t->pieces;
  pl_plan_row *row = NULL;
  PL_TRY(pl_pieces_cut(pieces, s->stages, pl_schedule_chunks(s), w->times, w->sizes, e));
  if (pieces->config) add_corrections(pieces->config, &w->facts, s->stages, w->sizes);
  const pl_costs costs = {.each = w->times, .latency = pieces->latency, .transfer = pieces->transfer};
  PL_TRY(pl_alloc(1, sizeof *row, "the plan", &row, e));
  snprintf(row->name, sizeof row->name, "%s", s->name);
  PL_TRY(pl_pipeline_plan_make(s, &w->facts, &costs, pieces->sized ? w->sizes : NULL, &row->plan, e));
  t->rows[t->count++] = row;
  row = NULL;
out:
  pl_free(row);
  return st;
}

/* The facts of a schedule in the library are read off its lists, as those of all are in tests; of others they are
 * derived, and what is wrong with them is found. */
static pl_status add_row(pl_plan_table *t, const pl_schedule_type *type, const pl_options *o, pl_err *e) {
  pl_status st = PL_OK;
  work *w = NULL;
  PL_TRY(pl_alloc(1, sizeof *w, "the plan", &w, e));
  if (type) {
    const pl_schedule_args args = {.stages = t->stages,
                                   .microbatches = t->microbatches,
                                   .chunks = type->chunks > 1 ? o->schedule.chunks : 0,
                                   .allow_min_microbatches = o->schedule.allow_min_microbatches};
    PL_TRY(pl_schedule_make(type, &args, &w->schedule, e));
    pl_schedule_read_facts(&w->schedule, &w->facts);
  } else {
    PL_TRY(pl_schedule_read(o->schedule.file, &w->schedule, e));
    PL_TRY(pl_schedule_check(&w->schedule, &w->facts, e));
  }
  PL_TRY(plan_row(t, w, e));
out:
  if (w) pl_schedule_free(&w->schedule);
  pl_free(w);
  return st;
}

static const pl_plan_row *find_row(const pl_plan_table *t, const char *name) {
  for (size_t i = 0; i < t->count; i++)
    if (strcmp(t->rows[i]->name, name) == 0) return t->rows[i];
  return NULL;
}

/* The row of that schedule, made if it is not there. A file's schedule may have any name. */
static pl_status need_row(pl_plan_table *t, const char *name, const pl_options *o, const pl_plan_row **out, pl_err *e) {
  *out = o->schedule.file ? NULL : find_row(t, name);
  if (*out) return PL_OK;
  const pl_schedule_type *type = pl_schedule_find(name, e);
  pl_status st = type ? add_row(t, type, o, e) : PL_BAD;
  if (st == PL_OK) *out = t->rows[t->count - 1];
  return st;
}

static pl_status add_named(pl_plan_table *t, const pl_options *o, pl_err *e) {
  const pl_schedule_type *type = NULL;
  t->named = true;
  if (o->schedule.file) return add_row(t, NULL, o, e);
  type = pl_schedule_find(o->args[0], e);
  if (!type) return PL_BAD;
  if (type->one_process)
    return pl_fail(e, PL_BAD,
                   "schedule %s: runs in one process, so there is nothing to plan; allowed with --plan: schedules of "
                   "several stages",
                   type->name);
  return add_row(t, type, o, e);
}

static pl_status add_all(pl_plan_table *t, const pl_options *o, pl_err *e) {
  size_t count = 0;
  const pl_schedule_type *const *types = pl_schedule_types(&count);
  for (size_t i = 0; i < count && t->count + 2 < PL_PLAN_ROWS; i++) {
    pl_err refused = {0};
    if (types[i]->one_process) continue;
    pl_status st = add_row(t, types[i], o, &refused);
    if (st == PL_BAD) pl_str_printf(&t->left_out, "%s\n", refused.text);
    if (st != PL_OK && st != PL_BAD) return pl_fail(e, st, "%s", refused.text);
  }
  return PL_OK;
}

pl_status pl_plan_table_make(const pl_options *o, const pl_pieces *pieces, pl_plan_table *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_plan_table){.pieces = pieces, .stages = o->schedule.stages, .microbatches = o->schedule.microbatches};
  PL_TRY(o->arg_count > 0 || o->schedule.file ? add_named(out, o, e) : add_all(out, o, e));
  PL_TRY(need_row(out, "1f1b", o, &out->one_f_one_b, e));
  PL_TRY(need_row(out, "gpipe", o, &out->gpipe, e));
out:
  return st;
}

void pl_plan_table_free(pl_plan_table *t) {
  for (size_t i = 0; i < t->count; i++) pl_free(t->rows[i]);
  pl_str_free(&t->left_out);
  *t = (pl_plan_table){0};
}

static bool gives_times(const pl_schedule_options *s) {
  return s->forward != 1 || s->backward != 2 || s->weight >= 0 || s->transfer > 0;
}

static pl_status check_sources(const pl_options *o, pl_err *e) {
  const pl_schedule_options *s = &o->schedule;
  if (s->costs && (s->model || gives_times(s) || s->latency > 0 || s->bandwidth > 0 || s->flops_per_second > 0))
    return pl_fail(e, PL_BAD,
                   "schedule: --costs is given with other costs (--model, --forward, --latency, ...); allowed: the "
                   "file alone, it says them");
  if (s->model && gives_times(s))
    return pl_fail(e, PL_BAD,
                   "schedule: --model is given with --forward, --backward, --backward-weight or --transfer; allowed: "
                   "--flops-per-second, --bandwidth and --latency");
  if (s->model && !(s->flops_per_second > 0))
    return pl_fail(e, PL_BAD, "schedule: --flops-per-second is missing; allowed with --plan --model: a number above 0");
  if (!s->model && (s->flops_per_second > 0 || s->bandwidth > 0))
    return pl_fail(e, PL_BAD, "schedule: --flops-per-second or --bandwidth is given without --model; allowed: with it");
  if (s->weight > s->backward)
    return pl_fail(e, PL_BAD, "--backward-weight: saw %g; allowed: at most the %g of --backward", s->weight,
                   s->backward);
  return PL_OK;
}

static pl_status check_use(const pl_options *o, pl_err *e) {
  const pl_schedule_options *s = &o->schedule;
  if (s->text || s->svg || s->delay)
    return pl_fail(e, PL_BAD, "schedule: --%s is given with --plan or --model; allowed: --json, or none",
                   s->text  ? "text"
                   : s->svg ? "svg"
                            : "delay");
  if (s->file && (o->arg_count > 0 || s->stages > 0 || s->microbatches > 0 || s->chunks > 0))
    return pl_fail(e, PL_BAD,
                   "schedule: --file is given with a name, --stages, --microbatches or --chunks; allowed: the file "
                   "alone, it says them");
  if (!s->plan && (o->arg_count > 0 || s->file || s->costs))
    return pl_fail(e, PL_BAD,
                   "schedule: --model is given with a schedule or --costs; allowed: --model alone, which shows the "
                   "run's stages, or --plan too");
  return s->plan ? check_sources(o, e) : PL_OK;
}

/* Equal stages of --forward, --backward, ..., in any unit. */
static pl_status pieces_of_options(const pl_schedule_options *s, pl_pieces *out, pl_err *e) {
  *out = (pl_pieces){.count = 1, .latency = s->latency, .transfer = s->transfer, .tokens = (double)NAN};
  pl_status st = pl_alloc(1, sizeof *out->items, "the costs", &out->items, e);
  if (st != PL_OK) return st;
  out->items[0].time = (pl_stage_costs){
      .forward = s->forward, .backward = s->backward, .weight = s->weight >= 0 ? s->weight : s->backward / 2};
  return PL_OK;
}

static void take(size_t *number, int64_t otherwise) {
  if (*number == 0) *number = (size_t)otherwise;
}

/* The costs, and those of the schedule's numbers that were not given and are known with them. */
static pl_status make_pieces(pl_schedule_options *s, const pl_options *o, pl_schedule_model *m, pl_pieces *out,
                             pl_err *e) {
  pl_status st = PL_OK;
  if (s->costs) return pl_pieces_read(s->costs, &s->stages, out, e);
  if (!s->model) return pieces_of_options(s, out, e);
  PL_TRY(pl_schedule_model_open(o, false, m, e));
  take(&s->stages, m->config->pipeline.stages);
  take(&s->microbatches, m->config->pipeline.microbatches);
  take(&s->chunks, m->config->pipeline.chunks);
  PL_TRY(pl_schedule_model_times(m, s, out, e));
out:
  return st;
}

/* A file says its own numbers, and the costs depend on them. */
static pl_status read_numbers(pl_schedule_options *o, pl_err *e) {
  pl_schedule *s = NULL;
  if (!o->file) return PL_OK;
  pl_status st = pl_alloc(1, sizeof *s, "the schedule", &s, e);
  if (st != PL_OK) return st;
  st = pl_schedule_read(o->file, s, e);
  o->stages = s->stages;
  o->microbatches = s->microbatches;
  pl_schedule_free(s);
  pl_free(s);
  return st;
}

static pl_status print_table(const pl_options *o, const pl_plan_table *t, pl_err *e) {
  pl_str out = {0};
  pl_json *json = NULL;
  if (!o->json) {
    pl_plan_table_text(t, &out);
    return pl_print(&out, e);
  }
  json = pl_plan_table_json(t);
  if (!json) return pl_fail(e, PL_FAIL, "out of memory for the plan");
  pl_json_write_pretty(json, &out);
  pl_json_release(json);
  return pl_print(&out, e);
}

static pl_status plan(const pl_options *given, pl_err *e) {
  pl_status st = PL_OK;
  pl_options o = *given;
  pl_schedule_model m = {0};
  pl_pieces pieces = {0};
  pl_plan_table table = {0};
  PL_TRY(read_numbers(&o.schedule, e));
  PL_TRY(make_pieces(&o.schedule, given, &m, &pieces, e));
  if (o.schedule.stages == 0 || o.schedule.microbatches == 0)
    PL_TRY(pl_fail(e, PL_BAD, "schedule: --%s is missing; allowed: a whole number from 1",
                   o.schedule.stages == 0 ? "stages" : "microbatches"));
  PL_TRY(pl_plan_table_make(&o, &pieces, &table, e));
  PL_TRY(print_table(&o, &table, e));
out:
  pl_plan_table_free(&table);
  pl_pieces_free(&pieces);
  pl_schedule_model_close(&m);
  return st;
}

pl_status pl_schedule_plan(const pl_options *o, pl_err *e) {
  pl_status st = check_use(o, e);
  if (st != PL_OK) return st;
  return o->schedule.plan ? plan(o, e) : pl_schedule_partition(o, e);
}
