#include "core/train/saved.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/config/run_schedule.h"
#include "core/train/checkpoint.h"
#include "core/train/partition.h"

static pl_status derive_delays(pl_saved *s, pl_err *e) {
  pl_status st = PL_OK;
  pl_schedule *schedule = NULL;
  pl_schedule_facts *facts = NULL;
  PL_TRY(pl_alloc(1, sizeof *schedule, "the schedule", &schedule, e));
  PL_TRY(pl_alloc(1, sizeof *facts, "the schedule's delays", &facts, e));
  PL_TRY(pl_run_config_schedule(s->args.config, s->args.root, schedule, e));
  PL_TRY(pl_schedule_check(schedule, facts, e));
  for (size_t i = 0; i < s->stages; i++) {
    s->delay[i] = facts->delay[i % schedule->stages];
    s->depth[i] = facts->depth[i % schedule->stages];
  }
out:
  if (schedule) pl_schedule_free(schedule);
  pl_free(schedule);
  pl_free(facts);
  return st;
}

pl_status pl_saved_open(const pl_saved_args *args, pl_saved *out, pl_err *e) {
  const pl_run_config *c = args->config;
  const pl_model_type *type = (const pl_model_type *)c->model.type;
  size_t first_layer[PL_MAX_STAGES + 1];
  pl_status st = PL_OK;
  *out = (pl_saved){.args = *args, .stages = (size_t)c->pipeline.stages * pl_run_config_chunks(c)};
  PL_TRY(derive_delays(out, e));
  PL_TRY(pl_partition_make(c, args->vocab, out->stages, first_layer, e));
  const pl_model_env env = {.device = args->device,
                            .stages = out->stages,
                            .first_layer = first_layer,
                            .vocab = args->vocab,
                            .max_sequences = 1,
                            .seed = (uint64_t)c->root.seed};
  PL_TRY(type->create(c->model.config, &env, &out->model, e));
  for (size_t i = 0; i < out->stages; i++) out->layout[i] = type->layout(out->model, i);
out:
  return st;
}

void pl_saved_close(pl_saved *s) {
  for (size_t i = 0; i < s->stages; i++) pl_saved_drop(s, i);
  if (s->model) ((const pl_model_type *)s->args.config->model.type)->destroy(s->model);
  *s = (pl_saved){0};
}

pl_status pl_saved_hold(pl_saved *s, size_t stage, pl_err *e) {
  const pl_stage_args args = {.config = s->args.config,
                              .device = s->args.device,
                              .layout = s->layout[stage],
                              .delay = s->delay[stage],
                              .depth = s->depth[stage]};
  pl_stage *held = &s->stage[stage];
  pl_status st = pl_stage_create(&args, held, e);
  for (size_t i = 0; st == PL_OK && i < held->kept_count; i++)
    held->device->ops->zero(held->device, held->kept[i], held->layout->size * sizeof(pl_real));
  return st;
}

void pl_saved_drop(pl_saved *s, size_t stage) {
  if (s->stage[stage].device) pl_stage_free(&s->stage[stage]);
}

pl_status pl_saved_read(pl_saved *s, const char *folder, void (*say)(void *self, const char *line), void *say_self,
                        bool *found, pl_err *e) {
  pl_status st = PL_OK;
  pl_world *alone = NULL;
  pl_checkpoints c = {0};
  *found = false;
  for (size_t i = 0; i < s->stages; i++)
    if (!s->stage[i].device) PL_TRY(pl_saved_hold(s, i, e));
  PL_TRY(pl_world_alone(&alone, e));
  PL_TRY(pl_checkpoints_open(s->args.config, s->stage, s->stages, folder, &c, e));
  c.reads_only = true;
  PL_TRY(pl_checkpoints_resume(&c, alone, &s->counters, NULL, say, say_self, found, e));
out:
  pl_checkpoints_close(&c);
  if (alone) alone->type->close(alone);
  return st;
}

const pl_segment *pl_saved_find(const pl_saved *s, const char *name, size_t *stage) {
  for (size_t i = 0; i < s->stages; i++)
    for (size_t k = 0; k < s->layout[i]->count; k++) {
      const pl_segment *g = &s->layout[i]->segments[k];
      if (g->tied_copy || strcmp(g->name, name) != 0) continue;
      *stage = i;
      return g;
    }
  return NULL;
}
