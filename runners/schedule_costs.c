/* The file of costs that plans are made from. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/config/params_text.h"
#include "runners/schedule_pieces.h"

/* Those before LISTS take one number, or a list with one for each stage or layer. */
enum {
  FORWARD,
  BACKWARD,
  WEIGHT,
  LAYER_FORWARD,
  LAYER_BACKWARD,
  LAYER_WEIGHT,
  WEIGHTS,
  GRADIENT,
  OPTIMIZER,
  ACTIVATIONS,
  LISTS,
  LAYERS = LISTS,
  FIRST,
  LAST,
  UPDATE,
  MESSAGE_BYTES,
  BANDWIDTH,
  LATENCY,
  TOKENS,
  KEYS
};

#define SECONDS 1e9
#define BYTES 1e18

/* Every key is read into one double, whole numbers too. */
static const pl_param rows[KEYS + 1] = {
    [FORWARD] = {.name = "forward", .type = PL_REAL, .max = SECONDS, .above_min = true, .help = "of a microbatch"},
    [BACKWARD] = {.name = "backward", .type = PL_REAL, .max = SECONDS, .above_min = true, .help = "of a microbatch"},
    [WEIGHT] = {.name = "weight", .type = PL_REAL, .max = SECONDS, .help = "the weight gradient's part of backward"},
    [LAYER_FORWARD] = {.name = "layer_forward", .type = PL_REAL, .max = SECONDS, .above_min = true, .help = "seconds"},
    [LAYER_BACKWARD] =
        {.name = "layer_backward", .type = PL_REAL, .max = SECONDS, .above_min = true, .help = "seconds"},
    [LAYER_WEIGHT] = {.name = "layer_weight", .type = PL_REAL, .max = SECONDS, .help = "seconds"},
    [WEIGHTS] = {.name = "weights", .type = PL_REAL, .max = BYTES, .help = "bytes"},
    [GRADIENT] = {.name = "gradient", .type = PL_REAL, .max = BYTES, .help = "bytes"},
    [OPTIMIZER] = {.name = "optimizer", .type = PL_REAL, .max = BYTES, .help = "bytes"},
    [ACTIVATIONS] = {.name = "activations", .type = PL_REAL, .max = BYTES, .help = "bytes of a microbatch"},
    [LAYERS] = {.name = "layers", .type = PL_REAL, .min = 1, .max = PL_PIECES, .help = "layers"},
    [FIRST] = {.name = "first", .type = PL_REAL, .max = SECONDS, .help = "forward seconds of the embedding"},
    [LAST] = {.name = "last", .type = PL_REAL, .max = SECONDS, .help = "forward seconds of the head and the loss"},
    [UPDATE] = {.name = "update", .type = PL_REAL, .max = SECONDS, .help = "seconds"},
    [MESSAGE_BYTES] = {.name = "message_bytes", .type = PL_REAL, .max = BYTES, .help = "bytes between stages"},
    [BANDWIDTH] = {.name = "bandwidth", .type = PL_REAL, .max = BYTES, .above_min = true, .help = "bytes a second"},
    [LATENCY] = {.name = "latency", .type = PL_REAL, .max = SECONDS, .help = "seconds"},
    [TOKENS] = {.name = "tokens", .type = PL_REAL, .max = BYTES, .above_min = true, .help = "of a microbatch"},
    [KEYS] = {0}};

typedef struct costs_file {
  const char *path;
  double *values[KEYS];
  size_t count[KEYS]; /* 0: not given */
  bool is_list[KEYS];
} costs_file;

static double single(const costs_file *f, int key, double otherwise) {
  return f->count[key] > 0 ? f->values[key][0] : otherwise;
}

static pl_status read_list(costs_file *f, size_t key, const pl_json *list, const char *where, pl_err *e) {
  pl_status st = PL_OK;
  const size_t count = pl_json_size(list);
  char place[PL_WHERE + 32];
  if (count < 1 || count > PL_PIECES)
    return pl_fail(e, PL_BAD, "%s: the list has %zu numbers; allowed: 1 to %d", where, count, PL_PIECES);
  PL_TRY(pl_alloc(count, sizeof(double), "the costs", &f->values[key], e));
  f->count[key] = count;
  f->is_list[key] = true;
  for (size_t i = 0; i < count; i++) {
    snprintf(place, sizeof place, "%s[%zu]", where, i);
    PL_TRY(pl_param_set(&rows[key], &f->values[key][i], pl_json_at(list, i), place, e));
  }
out:
  return st;
}

static pl_status read_member(costs_file *f, const char *name, const pl_json *value, pl_err *e) {
  pl_status st = PL_OK;
  char path[PL_WHERE], where[PL_WHERE];
  const size_t key = pl_params_find(rows, name);
  snprintf(path, sizeof path, "%.300s", f->path);
  if (key == SIZE_MAX) return pl_params_unknown(rows, "costs", name, path, e);
  snprintf(where, sizeof where, "%.300s: %s", f->path, name);
  if (key < LISTS && pl_json_kind_of(value) == PL_JSON_ARRAY) return read_list(f, key, value, where, e);
  PL_TRY(pl_alloc(1, sizeof(double), "the costs", &f->values[key], e));
  PL_TRY(pl_param_set(&rows[key], f->values[key], value, where, e));
  f->count[key] = 1;
  if (key == LAYERS && f->values[key][0] != floor(f->values[key][0]))
    PL_TRY(pl_fail(e, PL_BAD, "%s: saw %g; allowed: a whole number", where, f->values[key][0]));
out:
  return st;
}

static pl_status read_members(costs_file *f, const pl_json *document, pl_err *e) {
  pl_status st = PL_OK;
  char shown[80];
  if (pl_json_kind_of(document) != PL_JSON_OBJECT)
    return pl_fail(e, PL_BAD, "%s: saw %s; allowed: an object with forward, backward, ...", f->path,
                   pl_json_show(document, shown));
  for (void *it = pl_json_iter(document); it != NULL; it = pl_json_iter_next(document, it))
    PL_TRY(read_member(f, pl_json_iter_key(it), pl_json_iter_value(it), e));
out:
  return st;
}

static pl_status needs(const costs_file *f, int key, int other, pl_err *e) {
  if (f->count[key] == 0 || f->count[other] > 0) return PL_OK;
  return pl_fail(e, PL_BAD, "%s: %s is given without %s; allowed: both, or neither", f->path, rows[key].name,
                 rows[other].name);
}

static pl_status check_pairs(const costs_file *f, pl_err *e) {
  static const int pairs[][2] = {{FORWARD, BACKWARD},
                                 {BACKWARD, FORWARD},
                                 {WEIGHT, BACKWARD},
                                 {LAYER_FORWARD, LAYER_BACKWARD},
                                 {LAYER_BACKWARD, LAYER_FORWARD},
                                 {LAYER_WEIGHT, LAYER_FORWARD},
                                 {LAYERS, LAYER_FORWARD},
                                 {FIRST, LAYER_FORWARD},
                                 {LAST, LAYER_FORWARD},
                                 {GRADIENT, WEIGHTS},
                                 {OPTIMIZER, WEIGHTS},
                                 {ACTIVATIONS, WEIGHTS},
                                 {MESSAGE_BYTES, BANDWIDTH},
                                 {BANDWIDTH, MESSAGE_BYTES}};
  pl_status st = PL_OK;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) PL_TRY(needs(f, pairs[i][0], pairs[i][1], e));
  if ((f->count[FORWARD] > 0) == (f->count[LAYER_FORWARD] > 0))
    st =
        pl_fail(e, PL_BAD,
                "%s: %s; allowed: the times of stages (forward, backward) or of layers (layer_forward, layer_backward)",
                f->path, f->count[FORWARD] > 0 ? "forward and layer_forward are given" : "there are no times");
out:
  return st;
}

/* How many items the lists have, which must agree; `count` 0: as the first one says. */
static pl_status count_items(const costs_file *f, size_t *count, const char *whose, pl_err *e) {
  for (size_t key = 0; key < LISTS; key++) {
    if (!f->is_list[key]) continue;
    if (*count == 0) *count = f->count[key];
    if (f->count[key] != *count)
      return pl_fail(e, PL_BAD, "%s: %s: the list has %zu numbers; allowed: one for each of the %zu %s", f->path,
                     rows[key].name, f->count[key], *count, whose);
  }
  return PL_OK;
}

static double at(const costs_file *f, int key, size_t i, double otherwise) {
  if (f->count[key] == 0) return otherwise;
  return f->values[key][f->is_list[key] ? i : 0];
}

static pl_status fill_item(const costs_file *f, size_t i, bool layers, pl_piece *out, pl_err *e) {
  const int forward = layers ? LAYER_FORWARD : FORWARD, backward = layers ? LAYER_BACKWARD : BACKWARD,
            weight = layers ? LAYER_WEIGHT : WEIGHT;
  pl_stage_costs *t = &out->time;
  t->forward = at(f, forward, i, 0);
  t->backward = at(f, backward, i, 0);
  t->weight = at(f, weight, i, t->backward / 2);
  out->sizes.weights = at(f, WEIGHTS, i, 0);
  out->sizes.gradient = at(f, GRADIENT, i, out->sizes.weights);
  out->sizes.optimizer = at(f, OPTIMIZER, i, 0);
  out->sizes.activations = at(f, ACTIVATIONS, i, 0);
  if (t->weight <= t->backward) return PL_OK;
  return pl_fail(e, PL_BAD, "%s: %s: saw %g; allowed: at most the %g of %s, of which it is a part", f->path,
                 rows[weight].name, t->weight, t->backward, rows[backward].name);
}

/* What the first or last stage does besides: its backward takes as much longer as the layer's. */
static void add_end(double forward, pl_piece *layer) {
  double factor = forward / layer->time.forward;
  layer->time.backward += factor * layer->time.backward;
  layer->time.weight += factor * layer->time.weight;
  layer->time.forward += forward;
}

static pl_status fill(const costs_file *f, size_t *stages, pl_pieces *out, pl_err *e) {
  pl_status st = PL_OK;
  size_t count = 0;
  out->layers = f->count[LAYER_FORWARD] > 0;
  if (out->layers) {
    count = (size_t)single(f, LAYERS, 0);
    PL_TRY(count_items(f, &count, "layers", e));
    if (count == 0) PL_TRY(pl_fail(e, PL_BAD, "%s: layers is missing; allowed: 1 to %d", f->path, PL_PIECES));
  } else {
    PL_TRY(count_items(f, stages, "stages", e));
    for (size_t key = 0; key < LISTS; key++)
      if (f->is_list[key]) count = *stages;
    if (count == 0) count = 1;
  }
  PL_TRY(pl_alloc(count, sizeof *out->items, "the costs", &out->items, e));
  out->count = count;
  for (size_t i = 0; i < count; i++) PL_TRY(fill_item(f, i, out->layers, &out->items[i], e));
  if (out->layers) {
    add_end(single(f, FIRST, 0), &out->items[0]);
    add_end(single(f, LAST, 0), &out->items[count - 1]);
  }
out:
  return st;
}

pl_status pl_pieces_read(const char *path, size_t *stages, pl_pieces *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_json *document = NULL;
  costs_file f = {.path = path};
  *out = (pl_pieces){.seconds = true};
  PL_TRY(pl_json_read(path, &document, e));
  PL_TRY(read_members(&f, document, e));
  PL_TRY(check_pairs(&f, e));
  PL_TRY(fill(&f, stages, out, e));
  out->sized = f.count[WEIGHTS] > 0;
  out->update = single(&f, UPDATE, 0);
  out->latency = single(&f, LATENCY, 0);
  out->tokens = single(&f, TOKENS, (double)NAN);
  if (f.count[BANDWIDTH] > 0) out->transfer = single(&f, MESSAGE_BYTES, 0) / single(&f, BANDWIDTH, 1);
out:
  for (size_t key = 0; key < KEYS; key++) pl_free(f.values[key]);
  pl_json_release(document);
  return st;
}
