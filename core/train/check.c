#include <inttypes.h>

#include "core/train/learning_rate.h"
#include "core/train/trainer.h"

static pl_status check_data(const pl_run_config *c, const pl_model_shape *shape, pl_err *e) {
  const pl_dataset_type *data = (const pl_dataset_type *)c->data.type;
  if (shape->reads_tokens && !data->has_tokens)
    return pl_fail(e, PL_BAD, "data: %s has no tokens, which model %s reads; allowed: a dataset with tokens",
                   c->data.type->name, c->model.type->name);
  if (!shape->reads_tokens && data->has_tokens)
    return pl_fail(e, PL_BAD, "data: model %s draws its own data and does not read %s; allowed: \"none\"",
                   c->model.type->name, c->data.type->name);
  if (shape->reads_tokens && c->train.val_tokens < (int64_t)shape->context)
    return pl_fail(e, PL_BAD,
                   "train.val_tokens: %" PRId64
                   " is less than one sequence; allowed: at least the model's context, %zu",
                   c->train.val_tokens, shape->context);
  return PL_OK;
}

static pl_status check_batch(const pl_run_config *c, const pl_model_shape *shape, pl_err *e) {
  int64_t context = (int64_t)shape->context, sequences = c->train.batch_tokens / context;
  if (c->train.batch_tokens % context != 0 || sequences == 0)
    return pl_fail(e, PL_BAD,
                   "train.batch_tokens: %" PRId64 " is no multiple of the model's context; allowed: multiples "
                   "of %" PRId64,
                   c->train.batch_tokens, context);
  if (c->pipeline.microbatches > sequences)
    return pl_fail(e, PL_BAD,
                   "pipeline.microbatches: %" PRId64 " is more than the sequences of a batch, "
                   "train.batch_tokens / context; allowed: 1 to %" PRId64,
                   c->pipeline.microbatches, sequences);
  if (c->pipeline.replicas > sequences / c->pipeline.microbatches)
    return pl_fail(e, PL_BAD,
                   "pipeline.replicas: %" PRId64 " copies of %" PRId64
                   " microbatches each are more than the sequences of a batch, "
                   "train.batch_tokens / context; allowed: 1 to %" PRId64,
                   c->pipeline.replicas, c->pipeline.microbatches, sequences / c->pipeline.microbatches);
  return PL_OK;
}

static pl_status check_steps(const pl_run_config *c, pl_err *e) {
  int64_t warmup = pl_warmup_updates(c);
  if (warmup >= c->train.steps)
    return pl_fail(e, PL_BAD,
                   "train.warmup: %g leaves no update after the warm-up of train.steps %" PRId64
                   "; allowed: fewer updates than the steps, or a share below 1",
                   c->train.warmup, c->train.steps);
  if (c->root.delay_start > c->train.steps)
    return pl_fail(e, PL_BAD, "delay_start: %" PRId64 " is after the last update; allowed: 0 to train.steps, %" PRId64,
                   c->root.delay_start, c->train.steps);
  return PL_OK;
}

static pl_status check_stages(const pl_run_config *c, const pl_model_shape *shape, pl_err *e) {
  const pl_int_list *delay = &c->root.delay;
  if ((size_t)c->pipeline.stages > shape->layers)
    return pl_fail(e, PL_BAD, "pipeline.stages: %" PRId64 " is more than the model has layers; allowed: 1 to %zu",
                   c->pipeline.stages, shape->layers);
  if ((delay->is_list || delay->count > 1) && delay->count != (size_t)c->pipeline.stages)
    return pl_fail(e, PL_BAD,
                   "delay: the list has %zu values but pipeline.stages is %" PRId64
                   "; allowed: one value for each stage, or one number for all",
                   delay->count, c->pipeline.stages);
  return PL_OK;
}

static pl_status check_chunks(const pl_run_config *c, const pl_model_shape *shape, pl_err *e) {
  const pl_schedule_type *type = pl_run_config_schedule_type(c);
  size_t chunks = pl_run_config_chunks(c), stages = (size_t)c->pipeline.stages;
  size_t groups = shape->layers < PL_MAX_STAGES ? shape->layers : PL_MAX_STAGES;
  if (type && type->chunks == 1 && chunks > 1)
    return pl_fail(e, PL_BAD,
                   "pipeline.chunks: saw %zu, but schedule %s has one group of layers in a stage; allowed: 0 or 1",
                   chunks, type->name);
  if (chunks > groups / stages)
    return pl_fail(e, PL_BAD, "pipeline.chunks: %zu in each of %zu stages; allowed: a product of at most %zu, %s",
                   chunks, stages, groups,
                   groups == shape->layers ? "the model's layers" : "the most that there may be");
  return PL_OK;
}

static pl_status check_partition(const pl_run_config *c, const pl_model_shape *shape, pl_err *e) {
  const pl_int_list *layers = &c->pipeline.partition;
  size_t groups = (size_t)c->pipeline.stages * pl_run_config_chunks(c);
  int64_t sum = 0;
  if (layers->count == 0) return PL_OK;
  if (layers->count != groups)
    return pl_fail(e, PL_BAD,
                   "pipeline.partition: %zu values for %zu groups of layers (stages * chunks); allowed: one value for "
                   "each, \"flops\" or \"even\"",
                   layers->count, groups);
  for (size_t i = 0; i < groups; i++) sum += layers->values[i];
  if (sum != (int64_t)shape->layers)
    return pl_fail(e, PL_BAD,
                   "pipeline.partition: the values add up to %" PRId64
                   " layers, but the model has %zu; allowed: values "
                   "that add up to these",
                   sum, shape->layers);
  return PL_OK;
}

/* Keys that mean something for some schedules only. */
static pl_status check_keys(const pl_run_config *c, pl_err *e) {
  const char *name = pl_run_config_schedule_name(c);
  const pl_pipeline_config *p = &c->pipeline;
  bool custom = pl_run_config_schedule_type(c) == NULL, simulated = pl_run_config_in_one_process(c);
  if (custom && !p->schedule_file)
    return pl_fail(e, PL_BAD,
                   "pipeline.schedule_file: missing; pipeline.schedule \"custom\" needs the path of a schedule's text "
                   "form");
  if (!custom && p->schedule_file)
    return pl_fail(e, PL_BAD,
                   "pipeline.schedule_file: saw \"%.200s\" with pipeline.schedule %s; allowed: null, or the schedule "
                   "\"custom\"",
                   p->schedule_file, name);
  if (!simulated && c->root.simulate_only)
    return pl_fail(
        e, PL_BAD,
        "simulate_only: true, but pipeline.schedule %s is a real pipeline's; allowed: false, or the schedule "
        "\"lagged\"",
        name);
  if (!simulated && c->root.delay_start > 0)
    return pl_fail(e, PL_BAD,
                   "delay_start: %" PRId64
                   ", but pipeline.schedule %s has its delay from the start; allowed: 0, or the "
                   "schedule \"lagged\"",
                   c->root.delay_start, name);
  return PL_OK;
}

/* What of a run needs every stage between two updates, as messages name it, and how to do without; NULL: nothing. */
static const char *needs_every_stage(const pl_run_config *c, const pl_model_shape *shape, const char **instead) {
  *instead = "clip_scope \"stage\", clip 0";
  if (c->train.clip > 0 && c->train.clip_scope == PL_CLIP_GLOBAL) return "train.clip_scope: a global clip";
  *instead = "an untied head";
  if (shape->tied_head) return "model: a tied head";
  *instead = "nonfinite \"stop\"";
  return c->train.nonfinite == PL_NONFINITE_SKIP ? "train.nonfinite: skip" : NULL;
}

/* On a per-stage profile a stage with a smaller delay makes update t before the others have their gradient of batch t:
 * such stages are `least` and `most`. False when all delays are equal. */
static bool has_profile(const pl_run_config *c, size_t *least, size_t *most) {
  int64_t delay[PL_MAX_STAGES];
  *least = *most = 0;
  pl_run_config_delays(c, delay);
  for (size_t p = 1; p < (size_t)c->pipeline.stages; p++) {
    if (delay[p] > delay[*most]) *most = p;
    if (delay[p] <= delay[*least]) *least = p;
  }
  return delay[*most] != delay[*least];
}

static pl_status check_profile(const pl_run_config *c, const pl_model_shape *shape, pl_err *e) {
  size_t least, most;
  const char *instead, *needs = needs_every_stage(c, shape, &instead);
  if (c->root.simulate_only || !needs || !has_profile(c, &least, &most)) return PL_OK;
  pl_str name = {0};
  pl_run_config_delay_name(c, &name);
  pl_status st = pl_fail(e, PL_BAD,
                         "%s needs gradients of every stage, but with the delays %s update t of stage %zu needs data "
                         "of stage %zu that does not exist yet; allowed: %s, the same delay for every stage, or "
                         "simulate_only true",
                         needs, pl_str_text(&name), least, most, instead);
  pl_str_free(&name);
  return st;
}

static pl_status check_slack(const pl_run_config *c, const pl_model_shape *shape, const pl_run_facts *facts,
                             pl_err *e) {
  const char *instead, *needs = needs_every_stage(c, shape, &instead);
  if (facts->slack.exists || !needs) return PL_OK;
  return pl_fail(e, PL_BAD,
                 "%s needs gradients of every stage, but in schedule %s update t of stage %zu needs data of stage %zu "
                 "that does not exist yet; allowed: %s, or a schedule that leaves time for it",
                 needs, facts->name, facts->slack.stage, facts->slack.other, instead);
}

/* What only the schedule itself says. */
static pl_status check_schedule(const pl_run_config *c, const char *root, pl_run_memo *memo,
                                const pl_model_shape *shape, pl_err *e) {
  pl_status st = PL_OK;
  pl_run_facts facts;
  PL_TRY(pl_run_config_facts(c, root, memo, &facts, e));
  PL_TRY(pl_run_config_check_delays(c, facts.name, facts.delay, e));
  st = check_slack(c, shape, &facts, e);
out:
  return st;
}

static pl_model_shape shape_of(const pl_run_config *c) {
  pl_model_shape shape = {0};
  ((const pl_model_type *)c->model.type)->shape(c->model.config, &shape);
  return shape;
}

/* The model of an imported run is a name alone. */
bool pl_run_config_is_simulated(const pl_run_config *c) {
  if (c->tables) return c->root.simulate_only;
  const pl_model_shape shape = shape_of(c);
  const char *instead;
  size_t least, most;
  return c->root.simulate_only && needs_every_stage(c, &shape, &instead) && has_profile(c, &least, &most);
}

pl_status pl_run_config_check_with(const pl_run_config *c, pl_run_memo *memo, pl_err *e) {
  pl_status st = PL_OK;
  const pl_model_shape shape = shape_of(c);
  const pl_schedule_type *type = pl_run_config_schedule_type(c);
  PL_TRY(check_data(c, &shape, e));
  PL_TRY(check_batch(c, &shape, e));
  PL_TRY(check_steps(c, e));
  PL_TRY(check_stages(c, &shape, e));
  PL_TRY(check_chunks(c, &shape, e));
  PL_TRY(check_partition(c, &shape, e));
  PL_TRY(check_keys(c, e));
  if (type && !type->takes_delay) PL_TRY(check_schedule(c, NULL, memo, &shape, e));
  if (type && type->one_process) PL_TRY(check_profile(c, &shape, e));
out:
  return st;
}

pl_status pl_run_config_check(const pl_run_config *c, pl_err *e) { return pl_run_config_check_with(c, NULL, e); }

pl_status pl_run_config_check_file(const pl_run_config *c, const char *root, pl_err *e) {
  const pl_model_shape shape = shape_of(c);
  return pl_run_config_schedule_type(c) ? PL_OK : check_schedule(c, root, NULL, &shape, e);
}
