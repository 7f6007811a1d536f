/* Muon on hidden matrices, AdamW on everything else. */
#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/train/optimizer.h"
#include "optim/parts/adam_part.h"
#include "optim/parts/muon_scale.h"
#include "optim/parts/newton_schulz.h"

typedef enum qkv { QKV_APART, QKV_FUSED } qkv;

typedef struct config {
  double lr, momentum;
  bool nesterov;
  int64_t steps;
  int scale; /* pl_muon_convention */
  int qkv;
  pl_adam adam;
  double adam_lr; /* NaN: lr */
} config;

static const char *const scales[] = {"moonlight", "keller", "torch", "torch_match_rms", NULL};
static const char *const qkvs[] = {"apart", "fused", NULL};

static const pl_param params[] = {
    {.name = "lr",
     .type = PL_REAL,
     .offset = offsetof(config, lr),
     .def = 1e-3,
     .min = 0,
     .max = 1e6,
     .help = "peak learning rate; its meaning depends on scale"},
    {.name = "momentum",
     .type = PL_REAL,
     .offset = offsetof(config, momentum),
     .def = 0.95,
     .min = 0,
     .max = 0.9999999999,
     .help = "decay of the buffer per update"},
    {.name = "nesterov",
     .type = PL_BOOL,
     .offset = offsetof(config, nesterov),
     .def = 1,
     .help = "orthogonalises gradient + momentum * buffer instead of the buffer"},
    {.name = "steps",
     .type = PL_INT,
     .offset = offsetof(config, steps),
     .def = 5,
     .min = 1,
     .max = 20,
     .help = "Newton-Schulz steps"},
    {.name = "scale",
     .type = PL_CHOICE,
     .offset = offsetof(config, scale),
     .choices = scales,
     .help = "step size: 0.2 sqrt(max(rows, cols)) for moonlight and torch_match_rms, sqrt(max(1, rows/cols)) for "
             "keller and torch"},
    {.name = "qkv",
     .type = PL_CHOICE,
     .offset = offsetof(config, qkv),
     .choices = qkvs,
     .help = "query, key and value matrices of a layer: each apart, or fused into one stacked matrix"},
    {.name = "adamw.beta1",
     .type = PL_REAL,
     .offset = offsetof(config, adam.beta1),
     .def = 0.9,
     .min = 0,
     .max = 0.9999999999,
     .help = "AdamW's decay of the first moment, for what is no hidden matrix"},
    {.name = "adamw.beta2",
     .type = PL_REAL,
     .offset = offsetof(config, adam.beta2),
     .def = 0.95,
     .min = 0,
     .max = 0.9999999999,
     .help = "AdamW's decay of the second moment"},
    {.name = "adamw.eps",
     .type = PL_REAL,
     .offset = offsetof(config, adam.eps),
     .def = 1e-8,
     .min = 1e-30,
     .max = 1,
     .help = "AdamW's eps"},
    {.name = "adamw.lr",
     .type = PL_REAL,
     .offset = offsetof(config, adam_lr),
     .def = (double)NAN,
     .min = 0,
     .max = 1e6,
     .help = "AdamW's peak learning rate; null: lr"},
    {.type = PL_END},
};

static pl_status check(const void *section, pl_err *e) {
  const config *o = section;
  if (isnan(o->adam_lr) || o->lr > 0) return PL_OK;
  return pl_fail(e, PL_BAD, "adamw.lr needs lr above 0, because it follows the schedule of lr, but lr is 0");
}

static bool takes_muon(const pl_segment *s) { return s->kind == PL_SEGMENT_MATRIX; }

static double lr_scale(const void *section, const pl_segment *s) {
  const config *o = section;
  return takes_muon(s) || isnan(o->adam_lr) ? 1 : o->adam_lr / o->lr;
}

static const char *rule(const void *section, const pl_segment *s) {
  (void)section;
  return takes_muon(s) ? "muon" : "adamw";
}

/* Consecutive matrix segments that are orthogonalised as one matrix, stacked by rows. */
typedef struct group {
  const pl_segment *first;
  size_t count, rows, cols;
} group;

static bool is_projection(const pl_segment *s, const pl_segment *query, const char *ending) {
  size_t stem = strlen(query->name) - 1;
  return takes_muon(s) && s->cols == query->cols && strncmp(s->name, query->name, stem) == 0 &&
         strcmp(s->name + stem, ending) == 0;
}

static bool starts_projections(const pl_layout *l, size_t i) {
  static const char ending[] = ".attention.q";
  const pl_segment *s = &l->segments[i];
  size_t length = strlen(s->name), tail = sizeof ending - 1;
  return i + 2 < l->count && length >= tail && strcmp(s->name + length - tail, ending) == 0 &&
         is_projection(s + 1, s, "k") && is_projection(s + 2, s, "v");
}

static group group_at(const config *o, const pl_layout *l, size_t i) {
  group g = {.first = &l->segments[i], .count = o->qkv == QKV_FUSED && starts_projections(l, i) ? 3 : 1};
  g.cols = g.first->cols;
  for (size_t j = 0; j < g.count; j++) g.rows += g.first[j].rows;
  return g;
}

/* The stacked matrix lies before what Newton-Schulz needs. */
static size_t stack_size(const group *g) {
  size_t line = PL_ALIGN / sizeof(pl_real);
  return (g->rows * g->cols + line - 1) / line * line;
}

static size_t scratch_size(const void *section, const pl_layout *l) {
  size_t largest = 0;
  for (size_t i = 0; i < l->count; i++) {
    if (!takes_muon(&l->segments[i])) continue;
    group g = group_at(section, l, i);
    size_t size = stack_size(&g) + pl_newton_schulz_scratch(g.rows, g.cols);
    largest = size > largest ? size : largest;
  }
  return largest;
}

enum { WINDOW = 32 }; /* groups whose norms are asked for together */

/* Squared norms of the groups in u. */
static void norms(const pl_optimizer_call *c, const group *groups, size_t count, double *squares) {
  size_t offset[3 * WINDOW], size[3 * WINDOW], parts = 0;
  double part[3 * WINDOW];
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < groups[i].count; j++, parts++) {
      offset[parts] = groups[i].first[j].offset;
      size[parts] = groups[i].first[j].rows * groups[i].cols;
    }
  if (c->device->ops->sum_squares_parts)
    c->device->ops->sum_squares_parts(c->device, parts, offset, size, c->u, part);
  else
    for (size_t i = 0; i < parts; i++) part[i] = c->device->ops->sum_squares(c->device, size[i], c->u + offset[i]);
  for (size_t i = 0, at = 0; i < count; i++) {
    squares[i] = 0;
    for (size_t j = 0; j < groups[i].count; j++) squares[i] += part[at++];
  }
}

/* u of the group holds the momentum step and becomes the displacement. */
static void orthogonalise(const config *o, const pl_optimizer_call *c, const group *g, double squares) {
  pl_device *d = c->device;
  pl_muon_convention convention = (pl_muon_convention)o->scale;
  double inverse = 1 / pl_muon_normaliser(convention, sqrt(squares));
  size_t at = 0;
  for (size_t i = 0; i < g->count; i++) {
    size_t n = g->first[i].rows * g->cols;
    d->ops->axpby(d, n, inverse, c->u + g->first[i].offset, 0, c->scratch + at);
    at += n;
  }
  const pl_real *result =
      pl_newton_schulz(d, g->rows, g->cols, (size_t)o->steps, c->scratch, c->scratch + stack_size(g));
  double step = c->lr * pl_muon_scale(convention, g->rows, g->cols);
  at = 0;
  for (size_t i = 0; i < g->count; i++) {
    size_t n = g->first[i].rows * g->cols;
    d->ops->axpby(d, n, step, result + at, 0, c->u + g->first[i].offset);
    at += n;
  }
}

static void orthogonalise_all(const config *o, const pl_optimizer_call *c, const group *groups, size_t count) {
  double squares[WINDOW];
  norms(c, groups, count, squares);
  for (size_t i = 0; i < count; i++) orthogonalise(o, c, &groups[i], squares[i]);
}

/* A segment with the padding behind it, which is written too: it must stay 0 in u. */
static size_t span(const pl_layout *l, size_t i) {
  size_t end = i + 1 < l->count ? l->segments[i + 1].offset : l->size;
  return end - l->segments[i].offset;
}

static void displace(const void *section, const pl_optimizer_call *c) {
  const config *o = section;
  const pl_layout *l = c->layout;
  double weight = pl_muon_gradient_weight((pl_muon_convention)o->scale, o->momentum);
  for (size_t i = 0; i < l->count; i++) {
    const pl_segment *s = &l->segments[i];
    size_t at = s->offset;
    if (takes_muon(s))
      c->device->ops->momentum(c->device, span(l, i), c->g + at, o->momentum, weight, o->nesterov, weight, 1,
                               c->state[0] + at, c->u + at);
    else
      pl_adam_displace(&o->adam, c->device, span(l, i), c->g + at, c->t, c->lr * lr_scale(o, s), c->state[0] + at,
                       c->state[1] + at, c->u + at);
  }
  group groups[WINDOW];
  size_t count = 0;
  for (size_t i = 0; i < l->count;) {
    group g = takes_muon(&l->segments[i]) ? group_at(o, l, i) : (group){.count = 1};
    if (g.first) groups[count++] = g;
    i += g.count;
    if (count < WINDOW && i < l->count) continue;
    orthogonalise_all(o, c, groups, count);
    count = 0;
  }
}

const pl_optimizer_type pl_optimizer_muon = {
    .base = {.name = "muon",
             .summary = "orthogonalised momentum on hidden matrices, AdamW on the rest",
             .source = "Jordan 2024 (github.com/KellerJordan/Muon); Liu et al., arXiv 2502.16982; torch.optim.Muon",
             .params = params,
             .config_size = sizeof(config),
             .check = check},
    .state_arrays = PL_ADAM_STATE, /* matrices use the first alone, as momentum */
    .scratch_size = scratch_size,
    .displace = displace,
    .lr_scale = lr_scale,
    .rule = rule,
};
