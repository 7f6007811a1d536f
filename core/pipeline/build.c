#include "core/pipeline/build.h"

#include <stdio.h>

void pl_build_start(const char *name, const pl_schedule_args *a, pl_schedule *out) {
  *out = (pl_schedule){.stages = a->stages, .microbatches = a->microbatches, .chunks = a->chunks};
  pl_build_rename(name, out);
}

void pl_build_rename(const char *name, pl_schedule *out) { snprintf(out->name, sizeof out->name, "%s", name); }

pl_status pl_build_one_microbatch(const char *name, const pl_schedule_args *a, pl_err *e) {
  if (a->microbatches == 1) return PL_OK;
  return pl_fail(e, PL_BAD, "%s: saw %zu microbatches; allowed: 1 (accumulate-newest takes more)", name,
                 a->microbatches);
}

static pl_status add_message(const pl_schedule *s, size_t stage, pl_instruction in, pl_op op, pl_instructions *list,
                             pl_err *e) {
  size_t link = 0, chunk = 0;
  in.op = op;
  in.lag = 0;
  return pl_schedule_link(s, stage, &in, &link, &chunk) ? pl_instructions_add(list, in, e) : PL_OK;
}

pl_status pl_build_compute(const pl_schedule *s, size_t stage, pl_instruction in, pl_instructions *list, pl_err *e) {
  pl_status st = PL_OK;
  bool forward = in.op == PL_OP_FORWARD, sends = in.op != PL_OP_BACKWARD_WEIGHT;
  if (sends) PL_TRY(add_message(s, stage, in, forward ? PL_OP_RECV_ACTIVATION : PL_OP_RECV_GRADIENT, list, e));
  PL_TRY(pl_instructions_add(list, in, e));
  if (sends) PL_TRY(add_message(s, stage, in, forward ? PL_OP_SEND_ACTIVATION : PL_OP_SEND_GRADIENT, list, e));
out:
  return st;
}

pl_status pl_build_update(pl_instructions *list, pl_err *e) {
  return pl_instructions_add(list, (pl_instruction){.op = PL_OP_UPDATE}, e);
}

size_t pl_build_warmup(const pl_schedule *s, size_t stage) { return s->stages - 1 - stage; }

/* The forward of the microbatch that comes `position` after the first one of the current update. */
static pl_status add_forward(const pl_schedule *s, size_t stage, size_t position, pl_build_delay delay,
                             pl_instructions *list, pl_err *e) {
  pl_instruction in = {
      .op = PL_OP_FORWARD, .microbatch = position % s->microbatches, .ahead = (int64_t)(position / s->microbatches)};
  in.lag = delay(s, stage, in.microbatch) - in.ahead;
  return pl_build_compute(s, stage, in, list, e);
}

/* One update of a stage, with the forwards of the microbatches that come before `end`. */
static pl_status add_round(const pl_schedule *s, size_t stage, size_t end, pl_build_delay delay, pl_instructions *list,
                           pl_err *e) {
  pl_status st = PL_OK;
  size_t warmup = pl_build_warmup(s, stage);
  for (size_t j = 0; j < s->microbatches; j++) {
    if (j + warmup < end) PL_TRY(add_forward(s, stage, j + warmup, delay, list, e));
    pl_instruction in = {.op = PL_OP_BACKWARD, .microbatch = j, .lag = delay(s, stage, j)};
    PL_TRY(pl_build_compute(s, stage, in, list, e));
  }
  PL_TRY(pl_build_update(list, e));
out:
  return st;
}

pl_status pl_build_continuous(const char *name, const pl_schedule_args *a, pl_build_delay delay, pl_schedule *out,
                              pl_err *e) {
  pl_status st = PL_OK;
  const size_t m = a->microbatches;
  pl_build_start(name, a, out);
  for (size_t p = 0; p < out->stages; p++) {
    pl_program *program = &out->program[p];
    size_t warmup = pl_build_warmup(out, p);
    for (size_t j = 0; j < warmup; j++) PL_TRY(add_forward(out, p, j, delay, &program->prologue, e));
    PL_TRY(add_round(out, p, SIZE_MAX, delay, &program->body, e));
    for (size_t left = (warmup + m - 1) / m; left > 0; left--)
      PL_TRY(add_round(out, p, left * m, delay, &program->epilogue, e));
  }
out:
  return st;
}
