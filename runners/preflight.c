#include "runners/preflight.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/train/dataset.h"
#include "core/train/model.h"
#include "core/train/trainer.h"

/* Puts "data: " before a sentence that does not start with a key itself. */
static pl_status say_data(pl_err *e) {
  bool key = e != NULL && (strncmp(e->text, "data.", 5) == 0 || strncmp(e->text, "train.", 6) == 0);
  return key ? e->status : pl_err_prefix(e, "data");
}

pl_status pl_data_open(const pl_run_config *c, const char *data_root, size_t context, pl_dataset **out, pl_err *e) {
  const pl_dataset_type *type = (const pl_dataset_type *)c->data.type;
  *out = NULL;
  if (!type->has_tokens) return PL_OK;
  pl_status st = type->open(c->data.config, data_root, context, c->train.val_tokens, out, e);
  return st == PL_OK ? PL_OK : say_data(e);
}

static pl_status open_data(pl_preflight *p, const pl_run_config *c, size_t context, size_t *vocab, pl_err *e) {
  const pl_dataset_type *type = (const pl_dataset_type *)c->data.type;
  *vocab = 0;
  if (!type->has_tokens) return PL_OK;
  uint64_t key = pl_params_identity(type->base.params, c->data.config, type->base.name);
  key = pl_hash_join(key, pl_hash_join(context, (uint64_t)c->train.val_tokens));
  for (size_t i = 0; i < p->count; i++) {
    if (p->data[i].key != key) continue;
    *vocab = p->data[i].vocab;
    return PL_OK;
  }
  pl_dataset *data = NULL;
  pl_status st = pl_data_open(c, p->data_root, context, &data, e);
  if (st != PL_OK) return st;
  *vocab = type->vocab(data);
  type->close(data);
  if (p->count == p->capacity) {
    size_t capacity = p->capacity * 2 + 8;
    st = pl_grow(p->capacity, capacity, sizeof *p->data, "preflight", &p->data, e);
    if (st != PL_OK) return st;
    p->capacity = capacity;
  }
  p->data[p->count++] = (struct pl_preflight_data){.key = key, .vocab = *vocab};
  return PL_OK;
}

pl_status pl_preflight_run(pl_preflight *p, const pl_run_config *c, double *cost, pl_err *e) {
  const pl_model_type *model = (const pl_model_type *)c->model.type;
  pl_model_shape shape;
  model->shape(c->model.config, &shape);
  size_t vocab = 0;
  pl_status st = pl_run_config_check_file(c, p->data_root, e);
  if (st == PL_OK) st = open_data(p, c, shape.context, &vocab, e);
  if (st != PL_OK) return st;
  if (shape.reads_tokens && shape.vocab != 0 && shape.vocab < vocab)
    return pl_fail(e, PL_BAD,
                   "model.vocab: saw %zu, but the data has %zu different tokens; allowed: at least %zu, or 0",
                   shape.vocab, vocab, vocab);
  if (shape.vocab > vocab) vocab = shape.vocab;
  double per_token = model->flops_per_token != NULL ? model->flops_per_token(c->model.config, vocab) : 1;
  *cost = per_token * (double)c->train.batch_tokens * (double)c->train.steps;
  return PL_OK;
}

void pl_preflight_free(pl_preflight *p) {
  pl_free(p->data);
  *p = (pl_preflight){0};
}

pl_status pl_data_root(const char *option, const char *sweep_path, char **out, pl_err *e) {
  const char *root = option != NULL ? option : getenv("PIPELAG_DATA");
  if (root == NULL || root[0] == '\0') return pl_path_folder(sweep_path, out, e);
  if (!pl_path_is_folder(root))
    return pl_fail(e, PL_BAD, "%s: saw \"%s\", which is no folder; allowed: the folder that data paths are relative to",
                   option != NULL ? "--data-root" : "PIPELAG_DATA", root);
  return pl_strdup(root, out, e);
}
