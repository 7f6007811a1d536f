/* A training as a loop that is written straight from the definitions in docs/delay.md and docs/schedules.md, without
 * schedule, engine, ring or step: every version of every stage is kept, and which one a microbatch reads is one line.
 * What the trainer makes of the same config must agree bit for bit. It knows constant learning rates after the warm-up,
 * decoupled decay, and of the corrections ef and lookahead as they are without further keys. */
#ifndef PL_TESTS_CONFORM_ORACLE_H
#define PL_TESTS_CONFORM_ORACLE_H

#include "core/config/run_schedule.h"
#include "core/train/correction.h"
#include "core/train/optimizer.h"
#include "core/train/partition.h"
#include "tests/conform/train_rig.h"

enum { ORACLE_STATE = 3, ORACLE_UPDATES = 32 };

/* Wrong ways, one at a time: a check that passes with one of them checks nothing. */
typedef struct oracle_fault {
  int64_t shift;          /* reads the version that is this much newer, as far as there is one */
  bool newest;            /* reads the newest version always */
  bool unstashed;         /* backward on the newest version, whatever forward has read */
  bool swapped;           /* adds the microbatches up from the last to the first */
  bool mixed_up;          /* each microbatch gets the data of its mirror image */
  bool untied, unclipped; /* leaves the step out */
} oracle_fault;

typedef struct oracle {
  const rig *r;
  oracle_fault fault;
  pl_model *model;
  size_t P, stages, m, replicas; /* stages: of the model */
  pl_model_shape shape;
  pl_tie tie;
  bool tied;
  int64_t given[PL_MAX_STAGES]; /* delays of a lagged run */
  const pl_layout *layout[PL_MAX_STAGES];
  pl_real *x[ORACLE_UPDATES + 1][PL_MAX_STAGES];   /* every version */
  pl_real *g[PL_MAX_STAGES], *part[PL_MAX_STAGES]; /* gradient; one replica's */
  pl_real *u[PL_MAX_STAGES], *before[PL_MAX_STAGES], *scratch[PL_MAX_STAGES];
  pl_real *state[PL_MAX_STAGES][ORACLE_STATE];
  pl_real *in[PL_MAX_STAGES], *back[PL_MAX_STAGES]; /* messages before stage s */
  void *tape[PL_MAX_STAGES];
  int32_t *tokens;
  void *arrays[PL_MAX_STAGES * (ORACLE_UPDATES + 16)]; /* all of them */
  size_t count;
  pl_point points[ORACLE_UPDATES + 1]; /* the figures that were asked for; the others are NAN */
} oracle;

static inline const pl_model_type *oracle_type(const oracle *o) {
  return (const pl_model_type *)o->r->config.model.type;
}

static inline void *oracle_array(oracle *o, size_t bytes) {
  const pl_ops *ops = o->r->device->ops;
  pl_err e = {0};
  void *p = NULL;
  assert_true(o->count < sizeof o->arrays / sizeof *o->arrays);
  rig_must(ops->alloc(o->r->device, bytes, "test", &p, &e), &e);
  ops->zero(o->r->device, p, bytes);
  return o->arrays[o->count++] = p;
}

static inline pl_real *oracle_reals(oracle *o, size_t count) { return oracle_array(o, count * sizeof(pl_real)); }

static inline void oracle_open_stage(oracle *o, size_t s) {
  const pl_run_config *c = &o->r->config;
  const pl_optimizer_type *optimizer = (const pl_optimizer_type *)c->optimizer.type;
  const pl_layout *l = o->layout[s] = oracle_type(o)->layout(o->model, s);
  const size_t message = oracle_type(o)->boundary_size(o->model);
  for (int64_t t = 0; t <= c->train.steps; t++) o->x[t][s] = oracle_reals(o, l->size);
  pl_layout_init(l, (uint64_t)c->root.seed, o->x[0][s]);
  o->g[s] = oracle_reals(o, l->grad_size);
  o->part[s] = oracle_reals(o, l->grad_size);
  o->u[s] = oracle_reals(o, l->size);
  o->before[s] = oracle_reals(o, l->size);
  if (optimizer->scratch_size) o->scratch[s] = oracle_reals(o, optimizer->scratch_size(c->optimizer.config, l) + 1);
  for (size_t i = 0; i < optimizer->state_arrays; i++) o->state[s][i] = oracle_reals(o, l->size);
  o->in[s] = oracle_reals(o, message);
  o->back[s] = oracle_reals(o, message);
  o->tape[s] = oracle_array(o, oracle_type(o)->tape_bytes(o->model, s));
}

static inline void oracle_open(oracle *o, const rig *r, oracle_fault fault) {
  pl_err e = {0};
  size_t first[PL_MAX_STAGES + 1], vocab = r->dataset ? r->args.dataset_type->vocab(r->dataset) : 0;
  const pl_run_config *c = &r->config;
  *o = (oracle){.r = r,
                .fault = fault,
                .P = (size_t)c->pipeline.stages,
                .stages = (size_t)c->pipeline.stages * pl_run_config_chunks(c),
                .m = (size_t)c->pipeline.microbatches,
                .replicas = (size_t)c->pipeline.replicas};
  assert_true(c->train.steps <= ORACLE_UPDATES && c->correction_count <= 1 && c->lr_schedule.type);
  assert_string_equal(c->lr_schedule.type->name, "constant");
  oracle_type(o)->shape(c->model.config, &o->shape);
  rig_must(pl_partition_make(c, vocab, o->stages, first, &e), &e);
  const pl_model_env env = {.device = r->device,
                            .stages = o->stages,
                            .first_layer = first,
                            .vocab = vocab,
                            .max_sequences = (size_t)c->train.batch_tokens,
                            .seed = (uint64_t)c->root.seed};
  rig_must(oracle_type(o)->create(c->model.config, &env, &o->model, &e), &e);
  o->tied = oracle_type(o)->tie && oracle_type(o)->tie(o->model, &o->tie);
  pl_run_config_delays(c, o->given);
  o->tokens = oracle_array(o, 2 * (size_t)c->train.batch_tokens * sizeof *o->tokens);
  for (size_t s = 0; s < o->stages; s++) oracle_open_stage(o, s);
}

static inline void oracle_close(oracle *o) {
  for (size_t i = 0; i < o->count; i++) o->r->device->ops->free(o->r->device, o->arrays[i]);
  oracle_type(o)->destroy(o->model);
}

/* How many updates are made between the weights that microbatch r of a stage reads and those that its gradient is
 * applied to. */
static inline int64_t oracle_delay(const oracle *o, size_t s, size_t r) {
  const char *name = pl_run_config_schedule_name(&o->r->config);
  const int64_t behind = (int64_t)(o->P - 1 - s % o->P), m = (int64_t)o->m, later = behind - (int64_t)r;
  if (strcmp(name, "lagged") == 0) return o->given[s];
  if (strcmp(name, "2bw") == 0) return 1;
  if (strcmp(name, "pipedream") == 0) return behind;
  if (strcmp(name, "pipedream-vertical") == 0) return (int64_t)o->P - 1;
  if (strcmp(name, "accumulate-newest") == 0) return later > 0 ? (later + m - 1) / m : 0;
  return 0;
}

/* Step 1: the version that microbatch r of update t reads. */
static inline int64_t oracle_version(const oracle *o, size_t s, int64_t t, size_t r) {
  const int64_t start = o->r->config.root.delay_start;
  int64_t version = t - oracle_delay(o, s, r) + (t > 3 ? o->fault.shift : 0);
  if (o->fault.newest || version > t || t < start) return t;
  return version > start ? version : start;
}

static inline void oracle_window(const oracle *o, const int32_t *window, size_t area, size_t i) {
  memcpy(o->tokens + i * o->shape.context, window, o->shape.context * sizeof *window);
  memcpy(o->tokens + area + i * o->shape.context, window + 1, o->shape.context * sizeof *window);
}

/* Microbatch j of all replicas': as even as possible, the first ones one sequence more. step < 0: batch j of the
 * validation, as many sequences as the largest microbatch. */
static inline pl_batch oracle_batch(const oracle *o, int64_t step, size_t j) {
  int32_t window[128];
  const rig *r = o->r;
  const pl_dataset_type *data = r->args.dataset_type;
  const size_t all = (size_t)r->config.train.batch_tokens / o->shape.context, parts = o->m * o->replicas;
  size_t sequences = all / parts + (j < all % parts), first = j * (all / parts) + (j < all % parts ? j : all % parts);
  if (step < 0) {
    const size_t windows = r->dataset ? data->val_windows(r->dataset) : 1;
    sequences = (all + parts - 1) / parts;
    first = j * sequences;
    sequences = first >= windows ? 0 : windows - first < sequences ? windows - first : sequences;
  }
  const size_t area = sequences * o->shape.context;
  for (size_t i = 0; r->dataset && i < sequences; i++) {
    if (step < 0)
      data->val_window(r->dataset, first + i, window);
    else
      data->train_window(r->dataset, (uint64_t)r->config.root.seed, step, first + i, window);
    oracle_window(o, window, area, i);
  }
  return (pl_batch){.tokens = r->dataset ? o->tokens : NULL,
                    .targets = r->dataset ? o->tokens + area : NULL,
                    .sequences = sequences,
                    .context = o->shape.context,
                    .data_seed = step < 0 ? 0 : (uint64_t)r->config.root.seed,
                    .step = step,
                    .microbatch = step < 0 ? 0 : j,
                    .scale = step < 0 ? 1 : 1 / (double)r->config.train.batch_tokens};
}

/* Step 2, one microbatch of one replica: its loss, its gradient added to `part`. */
static inline double oracle_microbatch(oracle *o, int64_t t, size_t d, size_t r) {
  const pl_model_type *type = oracle_type(o);
  const size_t last = o->stages - 1;
  const pl_batch b = oracle_batch(o, t, d * o->m + (o->fault.mixed_up ? o->m - 1 - r : r));
  for (size_t s = 0; s <= last; s++)
    type->forward(o->model, s, o->x[oracle_version(o, s, t, r)][s], &b, s > 0 ? o->in[s] : NULL,
                  s < last ? o->in[s + 1] : NULL, o->tape[s]);
  const double loss = type->loss(o->model, &b, o->tape[last]);
  for (size_t s = o->stages; s-- > 0;)
    type->backward(o->model, s, o->x[o->fault.unstashed ? t : oracle_version(o, s, t, r)][s], &b,
                   s > 0 ? o->in[s] : NULL, o->tape[s], s < last ? o->back[s + 1] : NULL, s > 0 ? o->back[s] : NULL,
                   o->part[s]);
  return loss;
}

/* Step 2: microbatches in ascending order, replicas one after the other, the sum in their order. */
static inline double oracle_gradient(oracle *o, int64_t t) {
  double loss = 0;
  for (size_t d = 0; d < o->replicas; d++) {
    double own = 0;
    for (size_t s = 0; s < o->stages; s++) memset(o->part[s], 0, o->layout[s]->grad_size * sizeof(pl_real));
    for (size_t r = 0; r < o->m; r++) own += oracle_microbatch(o, t, d, o->fault.swapped ? o->m - 1 - r : r);
    loss += own;
    for (size_t s = 0; s < o->stages; s++)
      for (size_t i = 0; i < o->layout[s]->grad_size; i++)
        o->g[s][i] = d == 0 ? o->part[s][i] : o->g[s][i] + o->part[s][i];
  }
  return loss / (double)o->r->config.train.batch_tokens;
}

/* Step 3. */
static inline void oracle_sum_tied(const oracle *o) {
  if (!o->tied || o->fault.untied) return;
  pl_real *embedding = o->g[0] + o->tie.embedding, *head = o->g[o->tie.head_stage] + o->tie.head;
  for (size_t i = 0; i < o->tie.count; i++) embedding[i] = head[i] + embedding[i];
  if (o->tie.head_stage > 0) memcpy(head, embedding, o->tie.count * sizeof *head);
}

/* Sum of the squares of the stages `from` to `to` - 1; a tied matrix counts once. */
static inline double oracle_squares(const oracle *o, pl_real *const *array, size_t from, size_t to) {
  double sum = 0;
  for (size_t s = from; s < to; s++)
    for (size_t i = 0; i < o->layout[s]->count; i++) {
      const pl_segment *g = &o->layout[s]->segments[i];
      if (!g->tied_copy) sum += o->r->device->ops->sum_squares(o->r->device, g->rows * g->cols, array[s] + g->offset);
    }
  return sum;
}

/* Step 6, over all stages or in each; a tied matrix is clipped where the embedding is. */
static inline void oracle_clip(const oracle *o) {
  const pl_train_config *train = &o->r->config.train;
  double scale[PL_MAX_STAGES];
  if (!(train->clip > 0) || o->fault.unclipped) return;
  for (size_t s = 0; s < o->stages; s++) {
    const bool own = train->clip_scope == PL_CLIP_STAGE;
    double norm = sqrt(oracle_squares(o, o->g, own ? s : 0, own ? s + 1 : o->stages));
    scale[s] = fmin(1, train->clip / (norm + 1e-6));
  }
  for (size_t s = 0; s < o->stages; s++)
    for (size_t i = 0; i < o->layout[s]->count; i++) {
      const pl_segment *g = &o->layout[s]->segments[i];
      const double factor = scale[g->tied_copy ? 0 : s];
      for (size_t j = g->offset; factor < 1 && j < g->offset + g->rows * g->cols; j++)
        o->g[s][j] = (pl_real)factor * o->g[s][j];
    }
}

/* Step 7: warm-up over `warmup` updates, then constant. */
static inline double oracle_rate(const oracle *o, int64_t t) {
  double w = o->r->config.train.warmup, peak = pl_run_config_lr(&o->r->config);
  return (double)t < w ? peak * (double)(t + 1) / w : peak;
}

static inline bool oracle_corrects(const oracle *o, const char *name) {
  const pl_run_config *c = &o->r->config;
  return c->correction_count > 0 && strcmp(c->corrections[0].type->name, name) == 0;
}

/* Step 10. ef: v = u + k (u - u_prev), the first u_prev a copy of u. lookahead: u' = 0.1 u, p = 0.9 p - u',
 * v = u' - 0.9 p. */
static inline void oracle_correct(const oracle *o, size_t s, int64_t t) {
  const int64_t start = o->r->config.root.delay_start, k = oracle_delay(o, s, 0);
  const double gamma = 0.9;
  if (k == 0 || t < start) return;
  for (size_t i = 0; i < o->layout[s]->size; i++) {
    pl_real *before = &o->before[s][i], u = o->u[s][i], old = t == start ? u : *before;
    if (oracle_corrects(o, "ef")) {
      o->u[s][i] = (pl_real)(-(double)k) * old + (pl_real)(double)(1 + k) * u;
      *before = u;
    } else if (oracle_corrects(o, "lookahead")) {
      *before = (pl_real)(-(1 - gamma)) * u + (pl_real)gamma * *before;
      o->u[s][i] = (pl_real)-gamma * *before + (pl_real)(1 - gamma) * u;
    }
  }
}

/* Steps 8 to 11 of a stage. */
static inline void oracle_apply(oracle *o, size_t s, int64_t t) {
  const pl_run_config *c = &o->r->config;
  const pl_optimizer_type *optimizer = (const pl_optimizer_type *)c->optimizer.type;
  const double lr = oracle_rate(o, t);
  const pl_optimizer_call call = {.device = o->r->device,
                                  .layout = o->layout[s],
                                  .t = t,
                                  .lr = lr,
                                  .x = o->x[t][s],
                                  .g = o->g[s],
                                  .state = o->state[s],
                                  .scratch = o->scratch[s],
                                  .u = o->u[s]};
  optimizer->displace(c->optimizer.config, &call);
  oracle_correct(o, s, t);
  for (size_t i = 0; i < o->layout[s]->count; i++) {
    const pl_segment *g = &o->layout[s]->segments[i];
    const double shrink = g->decay ? 1 - lr * c->train.weight_decay : 1;
    for (size_t j = g->offset; j < g->offset + g->rows * g->cols; j++)
      o->x[t + 1][s][j] = (pl_real)shrink * o->x[t][s][j] - o->u[s][j];
  }
}

/* On unequal delays a tied head follows the embedding; on equal ones it has the same bits. */
static inline void oracle_follow(const oracle *o, int64_t t) {
  const size_t head = o->tie.head_stage;
  if (!o->tied || head == 0 || oracle_delay(o, 0, 0) == oracle_delay(o, head, 0)) return;
  memcpy(o->x[t][head] + o->tie.head, o->x[t][0] + o->tie.embedding, o->tie.count * sizeof(pl_real));
}

/* Forward only, batches one after the other. */
static inline double oracle_validate(const oracle *o, pl_real *const *x) {
  const pl_model_type *type = oracle_type(o);
  const size_t last = o->stages - 1;
  double sum = 0, tokens = 0;
  for (size_t j = 0;; j++) {
    const pl_batch b = oracle_batch(o, -1, j);
    if (b.sequences == 0) return sum / tokens;
    for (size_t s = 0; s <= last; s++)
      type->forward(o->model, s, x[s], &b, s > 0 ? o->in[s] : NULL, s < last ? o->in[s + 1] : NULL, o->tape[s]);
    sum += type->loss(o->model, &b, o->tape[last]);
    tokens += (double)(b.sequences * b.context);
  }
}

/* The point that ef follows: y = x + k u_prev. */
static inline double oracle_validate_y(const oracle *o) {
  const int64_t steps = o->r->config.train.steps;
  bool delayed = false;
  for (size_t s = 0; s < o->stages; s++) {
    const int64_t k = oracle_delay(o, s, 0);
    delayed = delayed || k > 0;
    for (size_t i = 0; i < o->layout[s]->size; i++)
      o->u[s][i] = o->x[steps][s][i] + (k > 0 ? (pl_real)(double)k * o->before[s][i] : 0);
  }
  return delayed && oracle_corrects(o, "ef") ? oracle_validate(o, o->u) : (double)NAN;
}

static inline double oracle_largest_delay(const oracle *o, int64_t t) {
  int64_t most = 0;
  for (size_t s = 0; s < o->stages; s++)
    for (size_t r = 0; r < o->m; r++)
      if (t - oracle_version(o, s, t, r) > most) most = t - oracle_version(o, s, t, r);
  return (double)most;
}

/* Update t, and what is known after it. */
static inline void oracle_update(oracle *o, int64_t t) {
  double *known = o->points[t + 1].values;
  known[PL_SERIES_train_loss] = oracle_gradient(o, t);
  known[PL_SERIES_delay] = oracle_largest_delay(o, t);
  oracle_sum_tied(o);
  known[PL_SERIES_grad_norm] = sqrt(oracle_squares(o, o->g, 0, o->stages));
  oracle_clip(o);
  for (size_t s = 0; s < o->stages; s++) oracle_apply(o, s, t);
  known[PL_SERIES_update_norm] = sqrt(oracle_squares(o, o->u, 0, o->stages));
  oracle_follow(o, t + 1);
}

/* From the first update to the last. */
static inline void oracle_run(oracle *o) {
  const pl_train_config *train = &o->r->config.train;
  for (int64_t t = 0; t <= train->steps; t++) {
    for (size_t i = 0; i < PL_SERIES_COUNT; i++) o->points[t].values[i] = (double)NAN;
    if (t > 0) oracle_update(o, t - 1);
    if (t == 0 || t == train->steps || (train->val_every > 0 && t % train->val_every == 0))
      o->points[t].values[PL_SERIES_val_loss] = oracle_validate(o, o->x[t]);
  }
  o->points[train->steps].values[PL_SERIES_val_loss_y] = oracle_validate_y(o);
}

/* The figures of a training's points, also of a part of it. */
static inline bool oracle_has_points(const oracle *o, const pl_point *points, size_t count) {
  static const pl_series series[] = {PL_SERIES_train_loss, PL_SERIES_val_loss,    PL_SERIES_val_loss_y,
                                     PL_SERIES_grad_norm,  PL_SERIES_update_norm, PL_SERIES_delay};
  bool same = count > 0;
  for (size_t p = 0; p < count; p++)
    for (size_t i = 0; i < sizeof series / sizeof *series; i++) {
      const double a = points[p].values[series[i]], b = o->points[points[p].step].values[series[i]];
      same = same && ((isnan(a) && isnan(b)) || rig_same(&a, &b, sizeof a));
    }
  return same;
}

/* The final weights of a stage; *at moves on behind them. */
static inline bool oracle_has_stage(const oracle *o, size_t s, const pl_real *weights, size_t *at) {
  const size_t size = o->layout[s]->size;
  *at += size;
  return rig_same(o->x[o->r->config.train.steps][s], weights + *at - size, size * sizeof *weights);
}

/* A whole training in one process. */
static inline bool oracle_agrees(const oracle *o, const rig *r) {
  size_t at = 0;
  bool same = oracle_has_points(o, r->points, r->point_count);
  for (size_t s = 0; s < o->stages; s++) same = same && oracle_has_stage(o, s, r->weights, &at);
  return same && at == r->count && r->outcome.steps == r->config.train.steps;
}

/* Runs the loop beside a finished training. */
static inline bool oracle_confirms(const rig *r, oracle_fault fault) {
  oracle o;
  oracle_open(&o, r, fault);
  oracle_run(&o);
  const bool same = oracle_agrees(&o, r);
  oracle_close(&o);
  return same;
}

#endif
