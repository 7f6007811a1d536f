#include "core/pipeline/plan.h"

#include <math.h>

/* Microbatches enter a stage with their activation and leave it with their gradient, or with the weight gradient where
 * that comes later. Chunk 0 of stage 0 is the first of the model: nothing arrives there and nothing is sent back. */
static int enters(const pl_schedule *s, size_t stage, const pl_instruction *in) {
  return in->op == PL_OP_RECV_ACTIVATION || (in->op == PL_OP_FORWARD && pl_schedule_first(s, stage, in->chunk));
}

static int leaves(const pl_schedule *s, size_t stage, const pl_instruction *in, bool splits) {
  if (splits) return in->op == PL_OP_BACKWARD_WEIGHT;
  return in->op == PL_OP_SEND_GRADIENT || (in->op == PL_OP_BACKWARD && pl_schedule_first(s, stage, in->chunk));
}

static bool splits_backward(const pl_instructions *body) {
  for (size_t i = 0; i < body->count; i++)
    if (body->items[i].op == PL_OP_BACKWARD_INPUT) return true;
  return false;
}

static void read_stage(const pl_schedule *s, size_t p, pl_schedule_facts *out) {
  const pl_program *program = &s->program[p];
  const bool splits = splits_backward(&program->body);
  size_t inside = 0;
  for (int part = 0; part < 3; part++) {
    const pl_instructions *list = pl_program_part(program, part);
    for (size_t i = 0; i < list->count; i++) {
      const pl_instruction *in = &list->items[i];
      inside += (size_t)enters(s, p, in);
      if (inside > out->slots[p]) out->slots[p] = inside;
      inside -= (size_t)leaves(s, p, in, splits);
      if (!pl_op_computes(in->op)) continue;
      if ((size_t)in->lag + 1 > out->depth[p]) out->depth[p] = (size_t)in->lag + 1;
      if (part == 1 && in->op == PL_OP_FORWARD && in->ahead + in->lag > out->delay[p])
        out->delay[p] = in->ahead + in->lag;
    }
  }
}

void pl_schedule_read_facts(const pl_schedule *s, pl_schedule_facts *out) {
  *out = (pl_schedule_facts){0};
  for (size_t p = 0; p < s->stages; p++) read_stage(s, p, out);
}

static double computing(const pl_schedule *s, const pl_costs *costs, size_t stage) {
  const pl_stage_costs *c = costs->each ? &costs->each[stage] : &costs->all;
  return (double)s->microbatches * (c->forward + c->backward) + c->update;
}

static void plan_stages(const pl_schedule *s, const pl_schedule_facts *facts, const pl_costs *costs,
                        const pl_stage_sizes *sizes, pl_pipeline_plan *out) {
  out->memory = sizes ? 0 : (double)NAN;
  for (size_t p = 0; p < s->stages; p++) {
    pl_stage_plan *stage = &out->stage[p];
    stage->busy = out->step > 0 ? computing(s, costs, p) / out->step : 0;
    stage->memory = sizes ? pl_schedule_memory(s, facts, p, &sizes[p]) : (double)NAN;
    out->memory += stage->memory;
    if (stage->busy > out->stage[out->slowest].busy) out->slowest = p;
    if (stage->memory > out->stage[out->largest].memory) out->largest = p;
    if (facts->delay[p] > out->delay) out->delay = facts->delay[p];
  }
}

pl_status pl_pipeline_plan_make(const pl_schedule *s, const pl_schedule_facts *facts, const pl_costs *costs,
                                const pl_stage_sizes *sizes, pl_pipeline_plan *out, pl_err *e) {
  pl_bubble bubble;
  *out = (pl_pipeline_plan){0};
  pl_status st = pl_schedule_steady(s, costs, &bubble, e);
  if (st != PL_OK) return st;
  out->step = bubble.period;
  out->bubble = bubble.steady;
  /* Every microbatch crosses the links between neighbours once a chunk, each way. */
  if (s->stages > 1 && out->step > 0)
    out->link = (double)(s->microbatches * pl_schedule_chunks(s)) * costs->transfer / out->step;
  plan_stages(s, facts, costs, sizes, out);
  return PL_OK;
}

double pl_pipeline_overhead(const pl_pipeline_plan *plan, const pl_pipeline_plan *synchronous) {
  return synchronous->step / plan->step - 1;
}
