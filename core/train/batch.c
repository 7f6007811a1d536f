#include "core/train/batch.h"

#include <string.h>

#include "core/base/memory.h"

size_t pl_microbatch_sequences(size_t sequences, size_t microbatches, size_t j) {
  return sequences / microbatches + (j < sequences % microbatches);
}

void pl_window_split(const int32_t *window, size_t context, int32_t *tokens, int32_t *targets) {
  memcpy(tokens, window, context * sizeof *tokens);
  memcpy(targets, window + 1, context * sizeof *targets);
}

/* Everything of the batches that does not change from update to update. */
static void describe(pl_batches *b) {
  size_t area = b->sequences * b->context;
  for (size_t d = 0; d < b->depth; d++) {
    int32_t *tokens = b->tokens ? b->tokens + d * 2 * area : NULL;
    size_t first = 0;
    b->held[d] = -1;
    for (size_t j = 0; j < b->microbatches; j++) {
      size_t sequences = pl_microbatch_sequences(b->sequences, b->microbatches, j);
      b->batches[d * b->microbatches + j] = (pl_batch){.tokens = tokens ? tokens + first * b->context : NULL,
                                                       .targets = tokens ? tokens + area + first * b->context : NULL,
                                                       .sequences = sequences,
                                                       .context = b->context,
                                                       .data_seed = b->data_seed,
                                                       .microbatch = j,
                                                       .scale = 1 / (double)area};
      first += sequences;
    }
  }
}

pl_status pl_batches_create(const pl_run_config *config, const pl_model_shape *shape, pl_device *device,
                            const pl_dataset_type *type, const pl_dataset *dataset, size_t depth, pl_batches *out,
                            pl_err *e) {
  pl_status st = PL_OK;
  int64_t data_seed = config->train.data_seed >= 0 ? config->train.data_seed : config->root.seed;
  *out = (pl_batches){.device = device,
                      .type = type,
                      .dataset = shape->reads_tokens ? dataset : NULL,
                      .data_seed = (uint64_t)data_seed,
                      .sequences = (size_t)config->train.batch_tokens / shape->context,
                      .context = shape->context,
                      .microbatches = (size_t)(config->pipeline.microbatches * config->pipeline.replicas),
                      .depth = depth};
  size_t area = out->sequences * out->context;
  void *tokens = NULL;
  PL_TRY(pl_alloc(depth, sizeof *out->held, "batches", &out->held, e));
  PL_TRY(pl_alloc(depth * out->microbatches, sizeof *out->batches, "batches", &out->batches, e));
  if (out->dataset) {
    PL_TRY(device->ops->alloc(device, depth * 2 * area * sizeof *out->tokens, "the tokens of a batch", &tokens, e));
    out->tokens = tokens;
    PL_TRY(pl_alloc(2 * area, sizeof *out->staging, "the tokens of a batch", &out->staging, e));
    PL_TRY(pl_alloc(out->context + 1, sizeof *out->window, "a window of tokens", &out->window, e));
  }
  describe(out);
out:
  return st;
}

void pl_batches_free(pl_batches *b) {
  if (b->tokens) b->device->ops->free(b->device, b->tokens);
  pl_free(b->held);
  pl_free(b->batches);
  pl_free(b->staging);
  pl_free(b->window);
  *b = (pl_batches){0};
}

static void assemble(pl_batches *b, int64_t update, size_t place) {
  size_t area = b->sequences * b->context;
  for (size_t j = 0; j < b->microbatches; j++) b->batches[place * b->microbatches + j].step = update;
  b->held[place] = update;
  if (!b->dataset) return;
  for (size_t i = 0; i < b->sequences; i++) {
    b->type->train_window(b->dataset, b->data_seed, update, i, b->window);
    pl_window_split(b->window, b->context, b->staging + i * b->context, b->staging + area + i * b->context);
  }
  b->device->ops->upload(b->device, b->tokens + place * 2 * area, b->staging, 2 * area * sizeof *b->staging);
}

const pl_batch *pl_batches_get(pl_batches *b, int64_t update, size_t microbatch) {
  size_t place = (size_t)update % b->depth;
  if (b->held[place] != update) assemble(b, update, place);
  return &b->batches[place * b->microbatches + microbatch];
}
