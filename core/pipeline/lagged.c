#include "core/pipeline/schedule.h"

static pl_status add_microbatch(pl_instructions *body, bool first, bool last, size_t microbatch, int64_t lag,
                                pl_err *e) {
  const struct {
    pl_op op;
    bool there;
  } steps[] = {
      {PL_OP_RECV_ACTIVATION, !first}, {PL_OP_FORWARD, true},  {PL_OP_SEND_ACTIVATION, !last},
      {PL_OP_RECV_GRADIENT, !last},    {PL_OP_BACKWARD, true}, {PL_OP_SEND_GRADIENT, !first},
  };
  pl_status st = PL_OK;
  for (size_t i = 0; i < sizeof steps / sizeof *steps && st == PL_OK; i++) {
    bool reads = steps[i].op == PL_OP_FORWARD || steps[i].op == PL_OP_BACKWARD;
    pl_instruction in = {.op = steps[i].op, .microbatch = microbatch, .lag = reads ? lag : 0};
    if (steps[i].there) st = pl_instructions_add(body, in, e);
  }
  return st;
}

pl_status pl_schedule_lagged(size_t stages, size_t microbatches, const int64_t *delay, pl_schedule *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_schedule){.name = "lagged", .stages = stages, .microbatches = microbatches};
  for (size_t p = 0; p < stages; p++) {
    pl_instructions *body = &out->program[p].body;
    for (size_t j = 0; j < microbatches; j++) PL_TRY(add_microbatch(body, p == 0, p == stages - 1, j, delay[p], e));
    PL_TRY(pl_instructions_add(body, (pl_instruction){.op = PL_OP_UPDATE}, e));
  }
out:
  return st;
}
