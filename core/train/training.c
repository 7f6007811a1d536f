#include "core/train/training.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/config/run_schedule.h"
#include "core/device/profile.h"
#include "core/train/partition.h"

static const pl_batch *on_batch(void *self, int64_t update, size_t microbatch) {
  pl_replica *r = self;
  pl_training *t = r->training;
  size_t replica = t->first_replica + r->index, m = (size_t)t->config->pipeline.microbatches;
  const pl_profile_part before = pl_profile_enter(t->args->device, PL_PROFILE_data);
  const pl_batch *batch = pl_batches_get(&t->batches, update, replica * m + microbatch);
  pl_profile_leave(t->args->device, before);
  return batch;
}

static pl_status on_update(void *self, size_t stage, int64_t update, bool *passed, pl_err *e) {
  return pl_work_close(self, stage, update, passed, e);
}

void pl_training_trace(const pl_training *t, size_t stage, const pl_trace_row *row) {
  if (row->update < t->trace_end) pl_trace_add(t->trace[stage], row);
}

static void on_computed(void *self, size_t stage, const pl_instruction *in, int64_t update, double start, double end) {
  pl_replica *r = self;
  r->training->work[stage].busy += end - start;
  if (r->index > 0 || r->training->first_replica > 0) return;
  pl_training_trace(r->training, stage,
                    &(pl_trace_row){.update = update,
                                    .op = in->op,
                                    .microbatch = in->microbatch,
                                    .chunk = in->chunk,
                                    .start = start,
                                    .end = end});
}

static size_t largest_microbatch(const pl_training *t) {
  const pl_pipeline_config *p = &t->config->pipeline;
  size_t sequences = (size_t)t->config->train.batch_tokens / t->shape.context;
  return pl_microbatch_sequences(sequences, (size_t)(p->microbatches * p->replicas), 0);
}

static pl_status make_grid(const pl_run_config *c, size_t processes, pl_grid *out, pl_err *e) {
  if (processes > 1 && pl_run_config_in_one_process(c))
    return pl_fail(e, PL_BAD,
                   "pipeline.schedule: %s simulates its delay in one process, but there are %zu; allowed over several: "
                   "the other schedules",
                   pl_run_config_schedule_name(c), processes);
  return pl_grid_make(processes, (size_t)c->pipeline.stages, (size_t)c->pipeline.replicas, out, e);
}

pl_status pl_run_config_check_ranks(const pl_run_config *c, size_t processes, pl_err *e) {
  pl_grid grid;
  return make_grid(c, processes, &grid, e);
}

static pl_status open_grid(pl_training *t, pl_err *e) {
  pl_status st = make_grid(t->config, t->world->size, &t->grid, e);
  if (st != PL_OK) return st;
  t->chunks = pl_run_config_chunks(t->config);
  t->stages = t->grid.stages * t->chunks;
  pl_grid_stages(&t->grid, t->world->rank, &t->first, &t->end);
  t->replicas = t->world->size > 1 ? 1 : t->grid.replicas;
  t->first_replica = t->world->size > 1 ? t->world->rank / t->grid.ranks : 0;
  return PL_OK;
}

static pl_status open_schedule(pl_training *t, pl_err *e) {
  pl_status st = PL_OK;
  pl_slack slack = {0};
  PL_TRY(pl_alloc(1, sizeof *t->schedule, "the schedule", &t->schedule, e));
  PL_TRY(pl_run_config_schedule(t->config, t->args->root, t->schedule, e));
  PL_TRY(pl_schedule_check(t->schedule, &t->facts, e));
  t->lockstep = pl_run_config_in_one_process(t->config);
  if (!t->lockstep) {
    PL_TRY(pl_schedule_slack(t->schedule, &slack, e));
    t->lockstep = slack.exists;
  }
  t->overlap = t->world->size > 1;
  t->horizon = t->lockstep ? 1 : (int64_t)t->grid.stages + 1;
out:
  return st;
}

static pl_status open_model(pl_training *t, pl_err *e) {
  const pl_trainer_args *a = t->args;
  pl_status st = PL_OK;
  size_t vocab = t->shape.reads_tokens ? a->dataset_type->vocab(a->dataset) : 0;
  if (t->shape.vocab > 0 && vocab > t->shape.vocab)
    return pl_fail(e, PL_BAD,
                   "model.vocab: %zu is less than the %zu tokens of the dataset; allowed: at least that many",
                   t->shape.vocab, vocab);
  PL_TRY(pl_partition_make(t->config, vocab, t->stages, t->first_layer, e));
  const pl_model_env env = {.device = a->device,
                            .stages = t->stages,
                            .first_layer = t->first_layer,
                            .vocab = vocab,
                            .max_sequences = largest_microbatch(t),
                            .seed = (uint64_t)t->config->root.seed};
  PL_TRY(t->model_type->create(t->config->model.config, &env, &t->model, e));
  for (size_t s = 0; s < t->stages; s++) t->layout[s] = t->model_type->layout(t->model, s);
  t->tied = t->model_type->tie && t->model_type->tie(t->model, &t->tie);
out:
  return st;
}

/* Where the messages of the validation lie. */
static pl_status open_messages(pl_training *t, size_t s, pl_err *e) {
  size_t size = t->model_type->boundary_size(t->model);
  pl_status st = PL_OK;
  if (s > 0) PL_TRY(pl_transport_buffer(t->args->device, size, &t->work[s].in, e));
  if (s + 1 < t->stages) PL_TRY(pl_transport_buffer(t->args->device, size, &t->work[s].out, e));
out:
  return st;
}

static pl_status open_stages(pl_training *t, pl_err *e) {
  pl_status st = PL_OK;
  /* Every process must know whether there is a y: the delays say so. */
  for (size_t s = 0; s < t->stages; s++)
    t->has_y = t->has_y || pl_step_has_y(t->config, &(pl_stage){.delay = t->facts.delay[s % t->grid.stages]});
  for (size_t s = 0; s < t->stages; s++) {
    const size_t p = s % t->grid.stages;
    if (p < t->first || p >= t->end) continue;
    const pl_stage_args args = {.config = t->config,
                                .device = t->args->device,
                                .layout = t->layout[s],
                                .delay = t->facts.delay[p],
                                .depth = t->facts.depth[p],
                                .replicas = t->replicas,
                                .whole_u = t->has_y,
                                .buffers = t->overlap && t->facts.depth[p] > 1 ? 2 : 1};
    PL_TRY(pl_stage_create(&args, &t->stage[s], e));
    PL_TRY(open_messages(t, s, e));
  }
out:
  return st;
}

/* Needs everybody's gradient of an update that nobody has made yet. */
static pl_status open_probe(pl_training *t, pl_err *e) {
  const pl_probe_args args = {.device = t->args->device,
                              .model_type = t->model_type,
                              .model = t->model,
                              .stage = t->stage,
                              .stages = t->stages,
                              .batches = &t->batches,
                              .replicas = t->replicas,
                              .tie = t->tied ? &t->tie : NULL};
  if (t->config->train.probe_every == 0 || t->world->size > 1 || !t->lockstep) return PL_OK;
  return pl_probe_create(&args, &t->probe, e);
}

/* What each process does by itself. */
static pl_status open_own(pl_training *t, pl_err *e) {
  const pl_trainer_args *a = t->args;
  pl_status st = PL_OK;
  t->model_type = (const pl_model_type *)t->config->model.type;
  t->model_type->shape(t->config->model.config, &t->shape);
  PL_TRY(open_grid(t, e));
  if (t->replicas > 64)
    PL_TRY(pl_fail(e, PL_BAD, "pipeline.replicas: saw %zu in one process; allowed: at most 64", t->replicas));
  PL_TRY(open_schedule(t, e));
  PL_TRY(open_model(t, e));
  PL_TRY(open_stages(t, e));
  PL_TRY(pl_batches_create(t->config, &t->shape, a->device, a->dataset_type, a->dataset, t->facts.updates_open,
                           &t->batches, e));
  PL_TRY(pl_evaluation_create(&t->shape, t->model_type, t->model, t->stages, largest_microbatch(t), a->device,
                              a->dataset_type, a->dataset, &t->evaluation, e));
  PL_TRY(open_probe(t, e));
  PL_TRY(pl_checkpoints_open(t->config, t->stage, t->stages, a->checkpoint_folder, &t->checkpoints, e));
  t->checkpoints.owned = a->owned;
  t->checkpoints.owned_self = a->owned_self;
  PL_TRY(pl_alloc((size_t)t->horizon + 1, sizeof *t->decided, "decisions on updates", &t->decided, e));
  PL_TRY(pl_alloc(t->grid.replicas * t->grid.stages, sizeof *t->times, "the stages' times", &t->times, e));
  PL_TRY(pl_alloc(t->replicas, sizeof *t->replica, "the engines", &t->replica, e));
out:
  return st;
}

static pl_status open_engine(pl_training *t, pl_replica *r, pl_err *e) {
  pl_engine_args args = {.device = t->args->device,
                         .model_type = t->model_type,
                         .model = t->model,
                         .schedule = t->schedule,
                         .facts = &t->facts,
                         .first = t->first,
                         .end = t->end,
                         .transport = r->transport,
                         .self = r,
                         .batch = on_batch,
                         .update = on_update,
                         .computed = on_computed};
  /* Nothing is in flight where the only stage of the only process validates. */
  if (t->stages == 1 && t->world->size == 1 && r->index == 0) {
    args.spare = t->evaluation.tape;
    args.spare_bytes = t->evaluation.tape_bytes;
  }
  for (size_t s = 0; s < t->stages; s++)
    if (pl_training_owns(t, s))
      args.stage[s] = (pl_engine_stage){
          &t->stage[s].ring, {pl_stage_grad(&t->stage[s], 0, r->index), pl_stage_grad(&t->stage[s], 1, r->index)}};
  return pl_engine_create(&args, &r->engine, e);
}

static pl_status open_replicas(pl_training *t, pl_err *e) {
  pl_status st = PL_OK;
  size_t size = t->stages > 1 ? t->model_type->boundary_size(t->model) : 0;
  const pl_transport_args args = {.device = t->args->device, .schedule = t->schedule, .facts = &t->facts, .size = size};
  for (size_t d = 0; d < t->replicas; d++) {
    pl_replica *r = &t->replica[d];
    *r = (pl_replica){.training = t, .index = d};
    PL_TRY(t->world->type->agree(t->world, t->world->type->transport(t->world, &t->grid, &args, &r->transport, e), e));
    PL_TRY(t->world->type->agree(t->world, open_engine(t, r, e), e));
  }
out:
  return st;
}

static pl_status open_board(pl_training *t, pl_err *e) {
  size_t segments[PL_MAX_STAGES];
  for (size_t s = 0; s < t->stages; s++) segments[s] = t->layout[s]->count;
  const pl_board_args args = {.world = t->world,
                              .grid = &t->grid,
                              .chunks = t->chunks,
                              .segments = segments,
                              .open = 2 * (size_t)t->horizon + 6};
  return pl_board_create(&args, &t->board, e);
}

/* Over the processes that hold the same stage, in the order of the replicas. */
static pl_status open_reductions(pl_training *t, pl_err *e) {
  pl_status st = PL_OK;
  size_t *ranks = NULL;
  if (t->world->size == 1 || t->grid.replicas == 1) return PL_OK;
  PL_TRY(pl_alloc(t->grid.replicas, sizeof *ranks, "the list of replicas", &ranks, e));
  for (size_t s = 0; s < t->stages; s++) {
    if (!pl_training_owns(t, s)) continue;
    for (size_t d = 0; d < t->grid.replicas; d++) ranks[d] = pl_grid_rank(&t->grid, d, s % t->grid.stages);
    PL_TRY(t->world->type->sum_open(t->world, t->args->device, ranks, t->grid.replicas, t->layout[s]->grad_size,
                                    &t->work[s].reduce, e));
  }
out:
  pl_free(ranks);
  return st;
}

/* Between the two ends, in the order head + embedding. */
static pl_status open_tie(pl_training *t, pl_err *e) {
  if (!t->tied || t->tie.head_stage == 0) return PL_OK;
  const size_t head = t->tie.head_stage, P = t->grid.stages;
  const size_t ranks[2] = {pl_grid_rank(&t->grid, t->first_replica, head % P),
                           pl_grid_rank(&t->grid, t->first_replica, 0)};
  if (t->world->size == 1 || ranks[0] == ranks[1]) return PL_OK;
  for (size_t s = 0; s <= head; s += head)
    if (pl_training_owns(t, s))
      return t->world->type->sum_open(t->world, t->args->device, ranks, 2, t->tie.count, &t->work[s].tie, e);
  return PL_OK;
}

static pl_status open_traces(pl_training *t, pl_err *e) {
  pl_status st = PL_OK;
  const size_t updates = (size_t)t->config->pipeline.trace, m = t->schedule->microbatches;
  if (!t->args->trace_folder || updates == 0 || t->first_replica > 0) return PL_OK;
  for (size_t p = t->first; p < t->end; p++) {
    char name[32], *path = NULL;
    snprintf(name, sizeof name, "trace.%zu.tsv", p);
    PL_TRY(pl_path_join(t->args->trace_folder, name, &path, e));
    st = pl_trace_open(path, updates * t->chunks * (3 * m + 1), &t->trace[p], e);
    pl_free(path);
    if (st != PL_OK) goto out;
  }
out:
  return st;
}

pl_status pl_training_open(const pl_trainer_args *args, pl_training *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_training *t = out;
  *t = (pl_training){.args = args, .config = args->config, .world = args->world, .val_loss_y = (double)NAN};
  if (!t->world) {
    PL_TRY(pl_world_alone(&t->alone, e));
    t->world = t->alone;
  }
  const pl_world_type *world = t->world->type;
  PL_TRY(world->agree(t->world, open_own(t, e), e));
  PL_TRY(open_replicas(t, e));
  PL_TRY(world->agree(t->world, open_board(t, e), e));
  PL_TRY(world->agree(t->world, open_reductions(t, e), e));
  PL_TRY(world->agree(t->world, open_tie(t, e), e));
  PL_TRY(world->agree(t->world, open_traces(t, e), e));
out:
  return st;
}

static void close_work(pl_training *t, pl_work *w) {
  if (w->in) t->args->device->ops->free(t->args->device, w->in);
  if (w->out) t->args->device->ops->free(t->args->device, w->out);
}

void pl_training_close(pl_training *t) {
  if (!t->world) return;
  for (size_t p = 0; p < PL_MAX_STAGES; p++) (void)!pl_trace_close(t->trace[p], NULL);
  pl_board_destroy(t->board);
  /* What moves arrays first: while an exchange is under way, freeing memory of a GPU would wait for it. */
  for (size_t d = 0; t->replica && d < t->replicas; d++)
    if (t->replica[d].transport) t->replica[d].transport->type->destroy(t->replica[d].transport);
  for (size_t s = 0; s < t->stages; s++) {
    t->world->type->sum_close(t->work[s].reduce);
    t->world->type->sum_close(t->work[s].tie);
  }
  for (size_t d = 0; t->replica && d < t->replicas; d++) pl_engine_destroy(t->replica[d].engine);
  for (size_t s = 0; s < t->stages; s++) {
    close_work(t, &t->work[s]);
    if (pl_training_owns(t, s)) pl_stage_free(&t->stage[s]);
  }
  pl_checkpoints_close(&t->checkpoints);
  pl_probe_free(t->probe);
  pl_evaluation_free(&t->evaluation);
  pl_batches_free(&t->batches);
  if (t->model) t->model_type->destroy(t->model);
  if (t->schedule) pl_schedule_free(t->schedule);
  pl_free(t->schedule);
  pl_free(t->replica);
  pl_free(t->times);
  pl_free(t->decided);
  if (t->alone) t->alone->type->close(t->alone);
}

static void draw(const pl_training *t, size_t s, pl_real *x) {
  if (t->args->init)
    t->args->init(t->args->init_self, s, t->layout[s], x);
  else
    pl_layout_init(t->layout[s], (uint64_t)t->config->root.seed, x);
}

pl_status pl_training_start(pl_training *t, pl_err *e) {
  pl_status st = PL_OK;
  t->counters = pl_counters_new();
  for (size_t s = 0; s < t->stages && st == PL_OK; s++) {
    pl_stage *stage = &t->stage[s];
    pl_real *x = NULL;
    if (!pl_training_owns(t, s)) continue;
    pl_stage_start(stage);
    if (stage->device->ops->on_host) {
      draw(t, s, pl_ring_newest(&stage->ring));
      continue;
    }
    st = pl_alloc(stage->layout->size, sizeof *x, "a stage's weights", &x, e);
    if (st == PL_OK) {
      draw(t, s, x);
      stage->device->ops->upload(stage->device, pl_ring_newest(&stage->ring), x, stage->layout->size * sizeof *x);
    }
    pl_free(x);
  }
  return st;
}

void pl_training_begin(pl_training *t, int64_t step, bool resumed) {
  double now = pl_clock_seconds();
  t->moved = now;
  t->last_decided = step - 1;
  t->last_boundary = resumed ? step : step - 1;
  t->stop_at = t->config->train.steps;
  t->trace_end = step + t->config->pipeline.trace;
  pl_board_start(t->board, resumed ? 2 * step + 1 : 2 * step);
  for (size_t s = 0; s < t->stages; s++) {
    t->work[s].phase = resumed ? PL_WORK_OPEN : PL_WORK_BOUNDARY;
    t->work[s].since = now;
    t->work[s].waited = t->world->waited - t->polled;
  }
  for (size_t d = 0; d < t->replicas; d++) pl_engine_start(t->replica[d].engine, step, t->config->train.steps);
}

/* Every `every` updates (0: never) and at the end. */
static bool due(const pl_training *t, int64_t every, int64_t step) {
  return step == t->config->train.steps || (every > 0 && step % every == 0);
}

bool pl_training_validates(const pl_training *t, int64_t step) {
  return step == 0 || due(t, t->config->train.val_every, step);
}

bool pl_training_logs(const pl_training *t, int64_t step) {
  return pl_training_validates(t, step) || due(t, t->config->train.log_every, step);
}

bool pl_training_saves(const pl_training *t, int64_t step) {
  return step > 0 && step < t->config->train.steps && due(t, t->config->train.checkpoint_every, step);
}

/* ", for stage 1 on rank 1": who is at the other end of a message; "" for anything else. */
static void say_other(const pl_training *t, size_t replica, size_t stage, const pl_instruction *in, char *out,
                      size_t size) {
  size_t link = 0, chunk = 0;
  out[0] = '\0';
  if (t->world->size == 1 || !pl_schedule_link(t->schedule, stage, in, &link, &chunk)) return;
  const size_t other = link == stage ? (stage + 1) % t->grid.stages : link;
  snprintf(out, size, ", for stage %zu on rank %zu", other, pl_grid_rank(&t->grid, t->first_replica + replica, other));
}

bool pl_training_probes(const pl_training *t, int64_t step) {
  return t->probe && pl_training_logs(t, step) && due(t, t->config->train.probe_every, step);
}

/* "stage 2 waits in "receive activation" of update 17, microbatch 3, for stage 1 on rank 1". */
static void say_waiting(const pl_training *t, char *out, size_t size) {
  const pl_instruction *in = NULL;
  size_t stage = 0;
  int64_t update = 0;
  char other[64];
  for (size_t d = 0; d < t->replicas; d++)
    if (pl_engine_waits(t->replica[d].engine, &stage, &in, &update)) {
      say_other(t, d, stage, in, other, sizeof other);
      snprintf(out, size, "stage %zu waits in \"%s\" of update %lld, microbatch %zu%s", stage, pl_op_name(in->op),
               (long long)update, in->microbatch, other);
      return;
    }
  snprintf(out, size, "it waits for the others' figures after update %lld", (long long)t->last_boundary);
}

pl_status pl_training_wait(pl_training *t, pl_err *e) {
  char where[160];
  const double limit = t->config->pipeline.watchdog;
  const pl_profile_part before = pl_profile_enter(t->args->device, PL_PROFILE_waiting);
  pl_status st = t->world->type->progress(t->world, e);
  if (t->world->size > 1) sched_yield();
  pl_profile_leave(t->args->device, before);
  if (st != PL_OK) return st;
  if (t->world->size == 1) {
    say_waiting(t, where, sizeof where);
    return pl_fail(e, PL_FAIL, "schedule %s: no stage can go on; %s", t->schedule->name, where);
  }
  if (limit > 0 && pl_clock_seconds() - t->moved > limit) {
    say_waiting(t, where, sizeof where);
    return pl_fail(e, PL_FAIL, "nothing went on for %g s (pipeline.watchdog); %s", limit, where);
  }
  return PL_OK;
}
