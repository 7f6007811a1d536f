#include "core/pipeline/build.h"

static pl_status make(const pl_schedule_args *a, pl_schedule *out, pl_err *e) {
  static const pl_op ops[] = {PL_OP_FORWARD, PL_OP_BACKWARD};
  pl_status st = PL_OK;
  pl_build_start("gpipe", a, out);
  for (size_t p = 0; p < out->stages; p++) {
    pl_instructions *body = &out->program[p].body;
    for (size_t i = 0; i < 2; i++)
      for (size_t j = 0; j < out->microbatches; j++)
        PL_TRY(pl_build_compute(out, p, (pl_instruction){.op = ops[i], .microbatch = j}, body, e));
    PL_TRY(pl_build_update(body, e));
  }
out:
  return st;
}

const pl_schedule_type pl_schedule_type_gpipe = {.name = "gpipe",
                                                 .summary = "synchronous: all forwards, all backwards, update",
                                                 .source = "GPipe, arXiv 1811.06965",
                                                 .chunks = 1,
                                                 .make = make};
