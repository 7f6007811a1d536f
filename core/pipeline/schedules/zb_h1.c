#include "core/pipeline/build.h"

/* 1F1B whose weight gradients come `stage` microbatches late: every stage keeps as many activations as the first one,
 * and the late halves fill the time in which the flush waits. */
static pl_status add_update(const pl_schedule *s, size_t stage, pl_instructions *body, pl_err *e) {
  pl_status st = PL_OK;
  const size_t m = s->microbatches, warmup = pl_build_warmup(s, stage);
  for (size_t j = 0; j < warmup && j < m; j++)
    PL_TRY(pl_build_compute(s, stage, (pl_instruction){.op = PL_OP_FORWARD, .microbatch = j}, body, e));
  for (size_t j = 0; j < m + stage; j++) {
    pl_instruction forward = {.op = PL_OP_FORWARD, .microbatch = j + warmup};
    pl_instruction input = {.op = PL_OP_BACKWARD_INPUT, .microbatch = j};
    pl_instruction weight = {.op = PL_OP_BACKWARD_WEIGHT, .microbatch = j - stage};
    if (j + warmup < m) PL_TRY(pl_build_compute(s, stage, forward, body, e));
    if (j < m) PL_TRY(pl_build_compute(s, stage, input, body, e));
    if (j >= stage) PL_TRY(pl_build_compute(s, stage, weight, body, e));
  }
  PL_TRY(pl_build_update(body, e));
out:
  return st;
}

static pl_status make(const pl_schedule_args *a, pl_schedule *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_build_start("zb-h1", a, out);
  for (size_t p = 0; p < out->stages && st == PL_OK; p++) st = add_update(out, p, &out->program[p].body, e);
  return st;
}

const pl_schedule_type pl_schedule_type_zb_h1 = {
    .name = "zb-h1",
    .summary = "synchronous: 1f1b with a split backward, its weight gradients fill the bubble",
    .source = "Zero Bubble Pipeline Parallelism, arXiv 2401.10241",
    .chunks = 1,
    .make = make};
