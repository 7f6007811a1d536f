#include "core/pipeline/build.h"

/* The n-th forward or backward of a stage: groups of `stages` microbatches pass through all chunks, forwards from the
 * first chunk and backwards from the last. */
static pl_instruction nth(const pl_schedule *s, pl_op op, size_t n) {
  size_t chunk = n / s->stages % s->chunks;
  return (pl_instruction){.op = op,
                          .microbatch = n / (s->stages * s->chunks) * s->stages + n % s->stages,
                          .chunk = op == PL_OP_FORWARD ? chunk : s->chunks - 1 - chunk};
}

static pl_status add_update(const pl_schedule *s, size_t stage, pl_instructions *body, pl_err *e) {
  pl_status st = PL_OK;
  const size_t all = s->microbatches * s->chunks;
  const size_t warmup = 2 * pl_build_warmup(s, stage) + (s->chunks - 1) * s->stages;
  for (size_t n = 0; n < warmup && n < all; n++) PL_TRY(pl_build_compute(s, stage, nth(s, PL_OP_FORWARD, n), body, e));
  for (size_t n = 0; n < all; n++) {
    if (n + warmup < all) PL_TRY(pl_build_compute(s, stage, nth(s, PL_OP_FORWARD, n + warmup), body, e));
    PL_TRY(pl_build_compute(s, stage, nth(s, PL_OP_BACKWARD, n), body, e));
  }
  PL_TRY(pl_build_update(body, e));
out:
  return st;
}

static pl_status make(const pl_schedule_args *a, pl_schedule *out, pl_err *e) {
  pl_status st = PL_OK;
  if (a->stages < 2 || a->chunks < 2)
    return pl_fail(e, PL_BAD, "interleaved-1f1b: saw %zu stages of %zu chunks; allowed: at least 2 of each", a->stages,
                   a->chunks);
  if (a->microbatches % a->stages != 0)
    return pl_fail(e, PL_BAD,
                   "interleaved-1f1b: saw %zu microbatches with %zu stages; allowed: a multiple of the stages",
                   a->microbatches, a->stages);
  pl_build_start("interleaved-1f1b", a, out);
  for (size_t p = 0; p < out->stages && st == PL_OK; p++) st = add_update(out, p, &out->program[p].body, e);
  return st;
}

const pl_schedule_type pl_schedule_type_interleaved = {
    .name = "interleaved-1f1b",
    .summary = "synchronous: 1f1b over several chunks of layers a stage, so that the bubble shrinks",
    .source = "Megatron-LM, arXiv 2104.04473",
    .chunks = 2,
    .make = make};
