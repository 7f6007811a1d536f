#include "runners/schedule_model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/base/memory.h"
#include "core/train/model.h"
#include "core/train/optimizer.h"
#include "core/train/partition.h"
#include "runners/preflight.h"
#include "runners/registries.h"

enum { OVERRIDES = 3 };

static pl_status load(const pl_options *o, bool sets, pl_schedule_model *m, pl_err *e) {
  const struct {
    const char *key;
    size_t value;
  } given[OVERRIDES] = {
      {"stages", o->schedule.stages}, {"microbatches", o->schedule.microbatches}, {"chunks", o->schedule.chunks}};
  const char *texts[PL_MAX_SETS + OVERRIDES];
  char own[OVERRIDES][64];
  size_t count = 0;
  for (; count < o->set_count; count++) texts[count] = o->set_texts[count];
  for (size_t i = 0; i < OVERRIDES && sets; i++) {
    if (given[i].value == 0) continue;
    snprintf(own[i], sizeof own[i], "pipeline.%s=%zu", given[i].key, given[i].value);
    texts[count++] = own[i];
  }
  m->registries = pl_registries_all();
  return pl_sweep_load(&m->registries, o->schedule.model, (pl_sets){.texts = texts, .count = count}, &m->sweep, e);
}

static pl_status read_vocab(pl_schedule_model *m, pl_err *e) {
  const pl_dataset_type *type = (const pl_dataset_type *)m->config->data.type;
  pl_model_shape shape = {0};
  pl_dataset *data = NULL;
  ((const pl_model_type *)m->config->model.type)->shape(m->config->model.config, &shape);
  pl_status st = pl_data_open(m->config, m->data_root, shape.context, &data, e);
  if (st != PL_OK || data == NULL) return st;
  m->vocab = type->vocab(data);
  type->close(data);
  return PL_OK;
}

pl_status pl_schedule_model_open(const pl_options *o, bool sets, pl_schedule_model *out, pl_err *e) {
  pl_status st = PL_OK;
  const pl_sweep_run *run = NULL;
  *out = (pl_schedule_model){0};
  PL_TRY(load(o, sets, out, e));
  uint64_t count = pl_sweep_upper_count(out->sweep);
  if (count != 1) PL_TRY(pl_fail(e, PL_BAD, "%s: holds %" PRIu64 " runs; allowed: one", o->schedule.model, count));
  PL_TRY(pl_sweep_next(out->sweep, &run, e));
  out->config = run->config;
  PL_TRY(pl_data_root(o->data_root, o->schedule.model, &out->data_root, e));
  st = read_vocab(out, e);
  if (st != PL_OK) pl_err_prefix(e, "%s", o->schedule.model);
out:
  return st;
}

void pl_schedule_model_close(pl_schedule_model *m) {
  pl_sweep_free(m->sweep);
  pl_free(m->data_root);
  *m = (pl_schedule_model){0};
}

/* The model in as many stages as models take: single layers, and in the middle all that are left over. Its first and
 * last layer are alone, so that the embedding and the head are counted with them. */
static size_t cut_fine(size_t layers, size_t *first_layer) {
  const size_t stages = layers < PL_MAX_STAGES ? layers : PL_MAX_STAGES;
  for (size_t p = 0; p < stages; p++) first_layer[p] = p;
  first_layer[stages - 1] = layers - 1;
  first_layer[stages] = layers;
  return stages;
}

static void size_stage(const pl_schedule_model *m, const pl_model *model, size_t stage, size_t layers, pl_piece *out) {
  const pl_run_config *c = m->config;
  const pl_model_type *type = (const pl_model_type *)c->model.type;
  const pl_optimizer_type *optimizer = (const pl_optimizer_type *)c->optimizer.type;
  const pl_layout *layout = type->layout(model, stage);
  const double share = sizeof(pl_real) / (double)layers, size = (double)layout->size;
  size_t scratch = optimizer->scratch_size ? optimizer->scratch_size(c->optimizer.config, layout) : 0;
  out->parameters = pl_layout_parameters(layout) / layers;
  out->sizes.weights = size * share;
  out->sizes.gradient = (double)layout->grad_size * share;
  out->sizes.optimizer = ((double)(optimizer->state_arrays + 1) * size + (double)scratch) * share;
  out->sizes.activations = (double)type->tape_bytes(model, stage) / (double)layers;
}

/* Makes a model for single sequences, only to ask it for sizes. *message: bytes between stages. */
static pl_status size_pieces(const pl_schedule_model *m, pl_pieces *out, double *message, pl_err *e) {
  pl_status st = PL_OK;
  const pl_run_config *c = m->config;
  const pl_model_type *type = (const pl_model_type *)c->model.type;
  size_t first[PL_MAX_STAGES + 1];
  pl_device *device = NULL;
  pl_model *model = NULL;
  PL_TRY(pl_device_open("cpu", PL_PRECISION_FP32, 1, &device, e));
  pl_model_env env = {.device = device,
                      .stages = cut_fine(out->count, first),
                      .first_layer = first,
                      .vocab = m->vocab,
                      .max_sequences = 1,
                      .seed = (uint64_t)c->root.seed};
  PL_TRY(type->create(c->model.config, &env, &model, e));
  *message = (double)(type->boundary_size(model) * sizeof(pl_real));
  for (size_t p = 0; p < env.stages; p++)
    for (size_t i = first[p]; i < first[p + 1]; i++) size_stage(m, model, p, first[p + 1] - first[p], &out->items[i]);
out:
  type->destroy(model);
  pl_device_close(device);
  return st;
}

static pl_status make_pieces(const pl_schedule_model *m, pl_pieces *out, double *message, pl_err *e) {
  pl_status st = PL_OK;
  double *flops = NULL;
  *out = (pl_pieces){.layers = true, .sized = true, .config = m->config, .vocab = m->vocab, .tokens = (double)NAN};
  PL_TRY(pl_partition_costs(m->config, m->vocab, &flops, &out->count, e));
  PL_TRY(pl_alloc(out->count, sizeof *out->items, "the model's layers", &out->items, e));
  st = size_pieces(m, out, message, e);
  if (st != PL_OK) pl_err_prefix(e, "%s", pl_sweep_path(m->sweep));
  if (st != PL_OK) goto out;
  for (size_t i = 0; i < out->count; i++)
    out->items[i].time = (pl_stage_costs){.forward = flops[i], .backward = 2 * flops[i], .weight = flops[i]};
out:
  pl_free(flops);
  return st;
}

pl_status pl_schedule_model_pieces(const pl_schedule_model *m, pl_pieces *out, pl_err *e) {
  double message = 0;
  return make_pieces(m, out, &message, e);
}

static void scale(pl_piece *p, double time, double sequences) {
  p->time.forward *= time;
  p->time.backward *= time;
  p->time.weight *= time;
  p->sizes.activations *= sequences;
}

pl_status pl_schedule_model_times(const pl_schedule_model *m, const pl_schedule_options *s, pl_pieces *out, pl_err *e) {
  pl_status st = PL_OK;
  const pl_run_config *c = m->config;
  pl_model_shape shape = {0};
  double message = 0;
  ((const pl_model_type *)c->model.type)->shape(c->model.config, &shape);
  const size_t parts = s->microbatches * (size_t)c->pipeline.replicas;
  const size_t all = (size_t)c->train.batch_tokens / shape.context;
  *out = (pl_pieces){0};
  if (parts > all)
    return pl_fail(e, PL_BAD,
                   "schedule: saw %zu microbatches for the %zu sequences of an update (%s); allowed: at most %zu",
                   s->microbatches, all, s->model, all / (size_t)c->pipeline.replicas);
  PL_TRY(make_pieces(m, out, &message, e));
  const double sequences = (double)all / (double)parts, tokens = sequences * (double)shape.context;
  for (size_t i = 0; i < out->count; i++) scale(&out->items[i], tokens / s->flops_per_second, sequences);
  out->seconds = true;
  out->latency = s->latency;
  out->transfer = s->bandwidth > 0 ? message * sequences / s->bandwidth : 0;
  out->tokens = tokens * (double)c->pipeline.replicas;
out:
  return st;
}
