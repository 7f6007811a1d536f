/* What every registered optimizer must keep, on every device; broken ones show that each check can fail. */
#include "tests/conform/optim_rig.h"

static const pl_segment segments[] = {
    {.name = "embedding", .kind = PL_SEGMENT_EMBEDDING, .rows = 7, .cols = 3, .init_std = 1},
    {.name = "layers.0.attention.q", .kind = PL_SEGMENT_MATRIX, .rows = 6, .cols = 5, .init_std = 1},
    {.name = "layers.0.attention.k", .kind = PL_SEGMENT_MATRIX, .rows = 2, .cols = 5, .init_std = 1},
    {.name = "layers.0.attention.v", .kind = PL_SEGMENT_MATRIX, .rows = 2, .cols = 5, .init_std = 1},
    {.name = "layers.0.up", .kind = PL_SEGMENT_MATRIX, .rows = 9, .cols = 4, .init_std = 1},
    {.name = "layers.0.norm", .kind = PL_SEGMENT_NORM, .rows = 1, .cols = 5, .init_mean = 1},
    {.name = "layers.0.bias", .kind = PL_SEGMENT_BIAS, .rows = 1, .cols = 9},
    {.name = "head", .kind = PL_SEGMENT_HEAD, .rows = 3, .cols = 7, .init_std = 1},
    {.name = "point", .kind = PL_SEGMENT_POINT, .rows = 1, .cols = 19, .init_std = 1},
};
enum { SEGMENTS = sizeof segments / sizeof *segments, STEPS = 4 };

/* Element i of a segment's gradient at step t: depends on the segment's name, not on where it lies. */
static pl_real gradient(const pl_segment *s, size_t i, size_t t) {
  double phase = 0;
  for (const char *c = s->name; *c; c++) phase = 1.3 * phase + (double)*c;
  return (pl_real)(0.1 * sin(phase + 1.7 * (double)(i * i) + 0.9 * (double)(t * i) + (double)t));
}

static void fill(const pl_layout *l, size_t t, pl_real *g) {
  memset(g, 0, RIG_SIZE * sizeof *g);
  for (size_t k = 0; k < l->count; k++)
    for (size_t i = 0; i < l->segments[k].rows * l->segments[k].cols; i++)
      g[l->segments[k].offset + i] = gradient(&l->segments[k], i, t);
}

/* The displacement after STEPS steps; `lr` of them all. True when no step touched x or g. */
static bool run(const pl_optimizer_type *type, const char *device, const pl_segment *s, double lr, pl_real *u,
                pl_layout *layout) {
  rig r;
  pl_real g[RIG_SIZE];
  rig_open(&r, device, type, "{}", s, SEGMENTS);
  for (size_t t = 0; t < STEPS; t++) {
    fill(&r.layout, t, g);
    rig_step(&r, lr, g, u);
  }
  bool kept = !r.touched;
  if (layout) {
    *layout = r.layout;
    r.layout = (pl_layout){0};
  }
  rig_close(&r);
  return kept;
}

static bool keeps_inputs(const pl_optimizer_type *type, const char *device) {
  pl_real u[RIG_SIZE];
  return run(type, device, segments, 0.01, u, NULL);
}

static bool zero_gives_zero(const pl_optimizer_type *type, const char *device) {
  rig r;
  pl_real g[RIG_SIZE] = {0}, u[RIG_SIZE];
  bool zero = true;
  rig_open(&r, device, type, "{}", segments, SEGMENTS);
  for (size_t t = 0; t < 2; t++) {
    rig_step(&r, 0.5, g, u);
    for (size_t i = 0; i < r.layout.size; i++) zero &= u[i] == 0;
  }
  rig_close(&r);
  return zero;
}

static bool repeats(const pl_optimizer_type *type, const char *device) {
  pl_real a[RIG_SIZE] = {0}, b[RIG_SIZE] = {0};
  run(type, device, segments, 0.01, a, NULL);
  run(type, device, segments, 0.01, b, NULL);
  return memcmp(a, b, sizeof a) == 0;
}

/* Padding stays 0, the update is finite and not zero everywhere. */
static bool fills_segments_alone(const pl_optimizer_type *type, const char *device) {
  pl_real u[RIG_SIZE] = {0};
  pl_layout l;
  bool good = true;
  run(type, device, segments, 0.01, u, &l);
  for (size_t k = 0; k < l.count; k++) {
    size_t from = l.segments[k].offset, to = from + l.segments[k].rows * l.segments[k].cols;
    size_t end = k + 1 < l.count ? l.segments[k + 1].offset : l.size;
    double sum = 0;
    for (size_t i = from; i < to; i++) sum += fabs((double)u[i]);
    good &= isfinite(sum) && sum > 0;
    for (size_t i = to; i < end; i++) good &= u[i] == 0;
  }
  pl_layout_free(&l);
  return good;
}

/* The same segments in another order get the same bits. */
static bool ignores_position(const pl_optimizer_type *type, const char *device) {
  static const size_t order[SEGMENTS] = {8, 5, 1, 2, 3, 0, 7, 4, 6};
  pl_segment moved[SEGMENTS];
  pl_real a[RIG_SIZE], b[RIG_SIZE];
  pl_layout first, second;
  bool same = true;
  for (size_t k = 0; k < SEGMENTS; k++) moved[k] = segments[order[k]];
  run(type, device, segments, 0.01, a, &first);
  run(type, device, moved, 0.01, b, &second);
  for (size_t k = 0; k < SEGMENTS; k++) {
    const pl_segment *to = &second.segments[k], *from = &first.segments[order[k]];
    same &= memcmp(a + from->offset, b + to->offset, to->rows * to->cols * sizeof *a) == 0;
  }
  pl_layout_free(&first);
  pl_layout_free(&second);
  return same;
}

/* The learning rate is a factor of u and enters nothing else: twice of it is twice the update, exactly. */
static bool scales_with_lr(const pl_optimizer_type *type, const char *device) {
  pl_real a[RIG_SIZE] = {0}, b[RIG_SIZE] = {0};
  bool same = true;
  run(type, device, segments, 0.01, a, NULL);
  run(type, device, segments, 0.02, b, NULL);
  for (size_t i = 0; i < RIG_SIZE; i++) same &= b[i] == 2 * a[i];
  return same;
}

typedef bool property(const pl_optimizer_type *type, const char *device);
static property *const properties[] = {keeps_inputs,         zero_gives_zero,  repeats,
                                       fills_segments_alone, ignores_position, scales_with_lr};
static const char *const property_names[] = {"keeps_inputs",         "zero_gives_zero",  "repeats",
                                             "fills_segments_alone", "ignores_position", "scales_with_lr"};
enum { PROPERTIES = sizeof properties / sizeof *properties };

static void check_every_optimizer(void **state) {
  (void)state;
  assert_true(pl_optimizers.count >= 3);
  for (size_t i = 0; i < pl_optimizers.count; i++)
    for (size_t d = 0; d < 2; d++)
      for (size_t p = 0; p < PROPERTIES; p++) {
        const pl_component *c = pl_optimizers.items[i];
        if (!properties[p]((const pl_optimizer_type *)c, rig_devices[d]))
          fail_msg("%s on %s: %s", c->name, rig_devices[d], property_names[p]);
      }
}

static void descend(const pl_optimizer_call *c) {
  c->device->ops->axpby(c->device, c->layout->size, c->lr, c->g, 0, c->u);
}

static void touch_gradient(const void *config, const pl_optimizer_call *c) {
  (void)config;
  descend(c);
  c->device->ops->axpby(c->device, c->layout->size, 1, c->x, 1, (pl_real *)(uintptr_t)c->g);
}

static void step_off_zero(const void *config, const pl_optimizer_call *c) {
  (void)config;
  c->device->ops->axpby(c->device, c->layout->size, c->lr, c->x, 0, c->u);
}

/* Adds an array that nobody wrote: what the machine's memory held. */
static void read_unwritten(const void *config, const pl_optimizer_call *c) {
  (void)config;
  c->device->ops->axpby(c->device, c->layout->size, c->lr, c->g, 1, c->u);
}

static void favour_the_front(const void *config, const pl_optimizer_call *c) {
  (void)config;
  descend(c);
  c->device->ops->axpby(c->device, 16, 2 * c->lr, c->g, 0, c->u);
}

static void ignore_lr(const void *config, const pl_optimizer_call *c) {
  (void)config;
  c->device->ops->axpby(c->device, c->layout->size, 0.01, c->g, 0, c->u);
}

/* Each breaks the property of its index on the paranoid device. */
static void check_broken_optimizers_are_caught(void **state) {
  (void)state;
  static const struct {
    size_t breaks;
    void (*displace)(const void *config, const pl_optimizer_call *c);
  } broken[] = {{0, touch_gradient}, {1, step_off_zero}, {3, read_unwritten}, {4, favour_the_front}, {5, ignore_lr}};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    pl_optimizer_type type = {.base = pl_optimizer_sgd.base, .displace = broken[i].displace};
    if (properties[broken[i].breaks](&type, "paranoid")) fail_msg("%s cannot fail", property_names[broken[i].breaks]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(check_every_optimizer),
      cmocka_unit_test(check_broken_optimizers_are_caught),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
