#include "core/pipeline/build.h"

pl_status pl_schedule_lagged(size_t stages, size_t microbatches, const int64_t *delay, pl_schedule *out, pl_err *e) {
  static const pl_op ops[] = {PL_OP_FORWARD, PL_OP_BACKWARD};
  pl_status st = PL_OK;
  const pl_schedule_args a = {.stages = stages, .microbatches = microbatches, .chunks = 1};
  pl_build_start("lagged", &a, out);
  for (size_t p = 0; p < stages; p++) {
    pl_instructions *body = &out->program[p].body;
    for (size_t j = 0; j < microbatches; j++)
      for (size_t i = 0; i < 2; i++) {
        pl_instruction in = {.op = ops[i], .microbatch = j, .lag = delay[p]};
        PL_TRY(pl_build_compute(out, p, in, body, e));
      }
    PL_TRY(pl_build_update(body, e));
  }
out:
  return st;
}
