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

static bool clips_globally(const pl_run_config *c) {
  return c->train.clip > 0 && c->train.clip_scope == PL_CLIP_GLOBAL;
}

/* On a per-stage profile a stage with a smaller delay makes update t before the others have their gradient of batch t.
 * True when the run needs those nevertheless; then `least` and `most` are such stages. */
static bool lacks_slack(const pl_run_config *c, const pl_model_shape *shape, size_t *least, size_t *most) {
  int64_t delay[PL_MAX_STAGES];
  *least = *most = 0;
  pl_run_config_delays(c, delay);
  for (size_t p = 1; p < (size_t)c->pipeline.stages; p++) {
    if (delay[p] > delay[*most]) *most = p;
    if (delay[p] <= delay[*least]) *least = p;
  }
  return delay[*most] != delay[*least] && (clips_globally(c) || shape->tied_head);
}

static pl_status check_slack(const pl_run_config *c, const pl_model_shape *shape, pl_err *e) {
  size_t least, most;
  if (c->root.simulate_only || !lacks_slack(c, shape, &least, &most)) return PL_OK;
  bool clips = clips_globally(c);
  pl_str name = {0};
  pl_run_config_delay_name(c, &name);
  pl_status st = pl_fail(e, PL_BAD,
                         "%s needs gradients of every stage, but with the delays %s update t of stage %zu needs data "
                         "of stage %zu that does not exist yet; allowed: %s, the same delay for every stage, or "
                         "simulate_only true",
                         clips ? "train.clip_scope: a global clip" : "model: a tied head", pl_str_text(&name), least,
                         most, clips ? "clip_scope \"stage\", clip 0" : "an untied head");
  pl_str_free(&name);
  return st;
}

bool pl_run_config_is_simulated(const pl_run_config *c) {
  pl_model_shape shape = {0};
  size_t least, most;
  ((const pl_model_type *)c->model.type)->shape(c->model.config, &shape);
  return c->root.simulate_only && lacks_slack(c, &shape, &least, &most);
}

pl_status pl_run_config_check(const pl_run_config *c, pl_err *e) {
  pl_status st = PL_OK;
  pl_model_shape shape = {0};
  ((const pl_model_type *)c->model.type)->shape(c->model.config, &shape);
  PL_TRY(check_data(c, &shape, e));
  PL_TRY(check_batch(c, &shape, e));
  PL_TRY(check_steps(c, e));
  PL_TRY(check_stages(c, &shape, e));
  PL_TRY(check_slack(c, &shape, e));
out:
  return st;
}
