#include "models/parts/stages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

pl_status pl_stages_start(const pl_model_env *env, pl_stages *out, pl_err *e) {
  if (env->stages < 1 || env->stages > PL_MAX_STAGES) {
    return pl_fail(e, PL_BAD, "pipeline.stages: %zu; allowed: 1 to %d", env->stages, PL_MAX_STAGES);
  }
  *out = (pl_stages){.count = env->stages};
  memcpy(out->first, env->first_layer, (env->stages + 1) * sizeof *out->first);
  return PL_OK;
}

void pl_stages_free(pl_stages *s) {
  for (size_t p = 0; p < s->count; p++) pl_layout_free(&s->layouts[p]);
}

pl_status pl_segment_place(pl_layout *l, const pl_segment *segment, size_t *offset, pl_err *e) {
  pl_segment s = *segment;
  s.decay = s.kind != PL_SEGMENT_NORM && s.kind != PL_SEGMENT_BIAS;
  pl_status st = pl_layout_add(l, &s, e);
  if (st == PL_OK) *offset = l->segments[l->count - 1].offset;
  return st;
}

pl_segment pl_segment_named(const char *a, const char *b, const char *c, pl_segment_kind kind, size_t rows,
                            size_t cols) {
  pl_segment s = {.kind = kind, .rows = rows, .cols = cols};
  const char *parts[] = {a, b, c};
  size_t length = 0;
  for (size_t i = 0; i < 3; i++) {
    if (parts[i] == NULL || length >= sizeof s.name) continue;
    length += (size_t)snprintf(s.name + length, sizeof s.name - length, "%s%s", length > 0 ? "." : "", parts[i]);
  }
  return s;
}

pl_status pl_model_vocab(int64_t wanted, const pl_model_env *env, size_t *out, pl_err *e) {
  if (wanted == 0 && env->vocab == 0) {
    return pl_fail(e, PL_BAD, "model.vocab: 0 takes the dataset's, and the dataset has no tokens; allowed: at least 1");
  }
  if (wanted != 0 && (size_t)wanted < env->vocab) {
    return pl_fail(e, PL_BAD, "model.vocab: %" PRId64 " is below the dataset's %zu; allowed: 0 (the dataset's) or more",
                   wanted, env->vocab);
  }
  *out = wanted != 0 ? (size_t)wanted : env->vocab;
  return PL_OK;
}
