#include "core/train/training.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"

/* Measures what the engine really read, then makes the update once the last stage is there. */
static pl_update_verdict on_update(void *self, size_t stage, int64_t update) {
  pl_training *t = self;
  if (t->counters.step > update) return PL_UPDATE_DONE;
  t->arrived[stage] = true;
  double largest = 0, sum = 0, parameters = 0;
  for (size_t p = 0; p < t->stages; p++) {
    if (!t->arrived[p]) return PL_UPDATE_WAIT;
    double delay = (double)pl_engine_delay(t->engine, p), own = (double)t->stage[p].parameters;
    largest = fmax(largest, delay);
    sum += delay * own;
    parameters += own;
  }
  t->delay = largest;
  t->delay_mean = sum / parameters;
  t->update = (pl_update){.loss = pl_engine_loss(t->engine) / (double)t->config->train.batch_tokens};
  pl_step_apply(&t->step, t->measure, &t->update);
  if (t->counters.step == update) return PL_UPDATE_HALT;
  for (size_t p = 0; p < t->stages; p++) t->arrived[p] = false;
  return t->counters.skipped_in_row < PL_SKIPS_IN_A_ROW ? PL_UPDATE_DONE : PL_UPDATE_HALT;
}

static const pl_batch *on_batch(void *self, int64_t update, size_t microbatch) {
  pl_training *t = self;
  return pl_batches_get(&t->batches, update, microbatch);
}

static size_t largest_microbatch(const pl_training *t) {
  const pl_run_config *c = t->config;
  return pl_microbatch_sequences((size_t)c->train.batch_tokens / t->shape.context, (size_t)c->pipeline.microbatches, 0);
}

static pl_status open_model(pl_training *t, pl_err *e) {
  const pl_trainer_args *a = t->args;
  t->model_type->shape(t->config->model.config, &t->shape);
  size_t vocab = t->shape.reads_tokens ? a->dataset_type->vocab(a->dataset) : 0;
  if (t->shape.vocab > 0 && vocab > t->shape.vocab)
    return pl_fail(e, PL_BAD,
                   "model.vocab: %zu is less than the %zu tokens of the dataset; allowed: at least that many",
                   t->shape.vocab, vocab);
  for (size_t p = 0; p <= t->stages; p++) t->first_layer[p] = t->shape.layers * p / t->stages;
  const pl_model_env env = {.device = a->device,
                            .stages = t->stages,
                            .first_layer = t->first_layer,
                            .vocab = vocab,
                            .max_sequences = largest_microbatch(t),
                            .seed = (uint64_t)t->config->root.seed};
  return t->model_type->create(t->config->model.config, &env, &t->model, e);
}

static pl_status open_stages(pl_training *t, pl_err *e) {
  pl_status st = PL_OK;
  int64_t delay[PL_MAX_STAGES];
  size_t largest = 0;
  pl_run_config_delays(t->config, delay);
  PL_TRY(pl_schedule_lagged(t->stages, (size_t)t->config->pipeline.microbatches, delay, &t->schedule, e));
  PL_TRY(pl_schedule_check(&t->schedule, &t->facts, e));
  for (size_t p = 0; p < t->stages; p++) {
    const pl_layout *layout = t->model_type->layout(t->model, p);
    PL_TRY(pl_stage_create(t->config, t->args->device, layout, t->facts.delay[p], t->facts.depth[p], &t->stage[p], e));
    if (layout->size > largest) largest = layout->size;
  }
  PL_TRY(pl_alloc(largest, sizeof *t->host, "a stage's weights", &t->host, e));
  t->step = (pl_step){.config = t->config, .device = t->args->device, .stages = t->stage, .counters = &t->counters};
  t->step.tied = t->model_type->tie && t->model_type->tie(t->model, &t->step.tie);
out:
  return st;
}

static pl_status open_engine(pl_training *t, pl_err *e) {
  pl_status st = PL_OK;
  pl_engine_args args = {.device = t->args->device,
                         .model_type = t->model_type,
                         .model = t->model,
                         .schedule = &t->schedule,
                         .facts = &t->facts,
                         .self = t,
                         .batch = on_batch,
                         .update = on_update};
  size_t message = t->stages > 1 ? t->model_type->boundary_size(t->model) : 0;
  PL_TRY(pl_transport_local(t->args->device, &t->schedule, &t->facts, message, &t->transport, e));
  args.transport = t->transport;
  for (size_t p = 0; p < t->stages; p++)
    args.stage[p] = (pl_engine_stage){.ring = &t->stage[p].ring, .grad = t->stage[p].grad};
  PL_TRY(pl_engine_create(&args, &t->engine, e));
out:
  return st;
}

pl_status pl_training_open(const pl_trainer_args *args, pl_training *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_training *t = out;
  *t = (pl_training){.args = args, .config = args->config};
  t->model_type = (const pl_model_type *)t->config->model.type;
  t->stages = (size_t)t->config->pipeline.stages;
  PL_TRY(open_model(t, e));
  PL_TRY(open_stages(t, e));
  PL_TRY(open_engine(t, e));
  PL_TRY(pl_batches_create(t->config, &t->shape, args->device, args->dataset_type, args->dataset, t->facts.updates_open,
                           &t->batches, e));
  PL_TRY(pl_evaluation_create(&t->shape, t->model_type, t->model, t->stages, largest_microbatch(t), args->device,
                              args->dataset_type, args->dataset, &t->evaluation, e));
  PL_TRY(
      pl_checkpoints_open(t->config, args->device, t->stage, t->stages, args->checkpoint_folder, &t->checkpoints, e));
  t->checkpoints.owned = args->owned;
  t->checkpoints.owned_self = args->owned_self;
out:
  return st;
}

void pl_training_close(pl_training *t) {
  pl_checkpoints_close(&t->checkpoints);
  pl_evaluation_free(&t->evaluation);
  pl_batches_free(&t->batches);
  pl_engine_destroy(t->engine);
  if (t->transport) t->transport->type->destroy(t->transport);
  for (size_t p = 0; p < t->stages; p++)
    if (t->stage[p].device) pl_stage_free(&t->stage[p]);
  pl_schedule_free(&t->schedule);
  if (t->model) t->model_type->destroy(t->model);
  pl_free(t->host);
}

void pl_training_start(pl_training *t) {
  t->counters = pl_counters_new();
  for (size_t p = 0; p < t->stages; p++) {
    const pl_layout *layout = t->stage[p].layout;
    if (t->args->init) {
      memset(t->host, 0, layout->size * sizeof *t->host);
      t->args->init(t->args->init_self, p, layout, t->host);
    } else {
      pl_layout_init(layout, (uint64_t)t->config->root.seed, t->host);
    }
    pl_stage_start(&t->stage[p], t->host);
  }
}

double pl_training_validate(const pl_training *t) {
  const pl_real *weights[PL_MAX_STAGES];
  for (size_t p = 0; p < t->stages; p++) weights[p] = pl_ring_newest(&t->stage[p].ring);
  return pl_evaluate(&t->evaluation, weights);
}

double pl_training_validate_y(const pl_training *t) {
  const pl_real *weights[PL_MAX_STAGES];
  bool defined = false;
  for (size_t p = 0; p < t->stages; p++) {
    defined = pl_step_y(&t->step, p) || defined;
    weights[p] = t->stage[p].u;
  }
  return defined ? pl_evaluate(&t->evaluation, weights) : (double)NAN;
}

double pl_training_weight_norm(const pl_training *t) {
  double squares = 0;
  for (size_t p = 0; p < t->stages; p++)
    pl_stage_add_squares(&t->stage[p], pl_ring_newest(&t->stage[p].ring), &squares);
  return sqrt(squares);
}
