#include "core/pipeline/build.h"

static pl_status add_update(const pl_schedule *s, size_t stage, pl_instructions *body, pl_err *e) {
  pl_status st = PL_OK;
  const size_t m = s->microbatches, warmup = pl_build_warmup(s, stage);
  for (size_t j = 0; j < warmup && j < m; j++)
    PL_TRY(pl_build_compute(s, stage, (pl_instruction){.op = PL_OP_FORWARD, .microbatch = j}, body, e));
  for (size_t j = 0; j < m; j++) {
    pl_instruction next = {.op = PL_OP_FORWARD, .microbatch = j + warmup};
    if (next.microbatch < m) PL_TRY(pl_build_compute(s, stage, next, body, e));
    PL_TRY(pl_build_compute(s, stage, (pl_instruction){.op = PL_OP_BACKWARD, .microbatch = j}, body, e));
  }
  PL_TRY(pl_build_update(body, e));
out:
  return st;
}

static pl_status make(const pl_schedule_args *a, pl_schedule *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_build_start("1f1b", a, out);
  for (size_t p = 0; p < out->stages && st == PL_OK; p++) st = add_update(out, p, &out->program[p].body, e);
  return st;
}

const pl_schedule_type pl_schedule_type_one_f_one_b = {
    .name = "1f1b",
    .summary = "synchronous: one forward, one backward, flush at every update",
    .source = "PipeDream-flush, arXiv 2006.09503",
    .chunks = 1,
    .make = make};
