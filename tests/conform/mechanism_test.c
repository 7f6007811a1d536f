/* The series that say why delay costs: how far the weights went meanwhile, what corrections make of a displacement, and
 * the cosine of the stale and the fresh gradient. */
#include <signal.h>
#include <unistd.h>

#include "tests/conform/pipelines_rig.h"
#include "tests/conform/train_script.h"

/* Every allocation of the program, the devices' too, takes this. */
static size_t allocations;

void *aligned_alloc(size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size) {
  void *memory = NULL;
  allocations++;
  return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

#ifdef PL_F64
static const double near = 1e-12;
#else
static const double near = 1e-6;
#endif

static double value(const rig *r, int64_t step, pl_series series) {
  for (size_t i = 0; i < r->point_count; i++)
    if (r->points[i].step == step) return r->points[i].values[series];
  fail_msg("no point of step %lld", (long long)step);
  return 0;
}

static void expect(const rig *r, int64_t step, pl_series series, double wanted, double tolerance) {
  const double found = value(r, step, series);
  if (isnan(wanted) ? !isnan(found) : !(fabs(found - wanted) <= tolerance))
    fail_msg("%s of step %lld is %.17g, not %.17g", pl_series_names[series], (long long)step, found, wanted);
}

/* Sums over all parameters of a * b, those of tied copies left out. */
static double product(const oracle *o, pl_real *const *a, pl_real *const *b) {
  double sum = 0;
  for (size_t s = 0; s < o->stages; s++)
    for (size_t i = 0; i < o->layout[s]->count; i++) {
      const pl_segment *g = &o->layout[s]->segments[i];
      for (size_t j = g->offset; !g->tied_copy && j < g->offset + g->rows * g->cols; j++)
        sum += (double)a[s][j] * (double)b[s][j];
    }
  return sum;
}

/* |x_t - x_s| / |x_t|; of several microbatches the one that read the oldest version counts. */
static double drift(oracle *o, int64_t t, pl_real *const *room) {
  for (size_t s = 0; s < o->stages; s++) {
    int64_t version = t;
    for (size_t r = 0; r < o->m; r++)
      if (oracle_version(o, s, t, r) < version) version = oracle_version(o, s, t, r);
    for (size_t i = 0; i < o->layout[s]->size; i++) room[s][i] = o->x[t][s][i] - o->x[version][s][i];
  }
  return sqrt(product(o, room, room)) / sqrt(product(o, o->x[t], o->x[t]));
}

/* |u_t| before ef, which keeps u_t; o->u holds v_t. */
static double uncorrected(const oracle *o, int64_t t) {
  pl_real *u[PL_MAX_STAGES];
  for (size_t s = 0; s < o->stages; s++) {
    const bool corrected = oracle_corrects(o, "ef") && oracle_delay(o, s, 0) > 0 && t >= o->r->config.root.delay_start;
    u[s] = corrected ? o->before[s] : o->u[s];
  }
  return sqrt(product(o, u, u));
}

/* Gradients of batch t at what the update read, and at x_t. */
static double cosine(oracle *o, int64_t t, pl_real *const *stale) {
  oracle_gradient(o, t);
  oracle_sum_tied(o);
  for (size_t s = 0; s < o->stages; s++) memcpy(stale[s], o->g[s], o->layout[s]->grad_size * sizeof *stale[s]);
  o->fault.newest = true;
  oracle_gradient(o, t);
  oracle_sum_tied(o);
  o->fault.newest = false;
  return product(o, stale, o->g) / sqrt(product(o, stale, stale)) / sqrt(product(o, o->g, o->g));
}

/* Where all read the newest weights the cosine is 1, exactly, and nowhere else. Returns how many cosines were below. */
static size_t expect_mechanism(const rig *r, bool probed) {
  oracle o;
  size_t below = 0;
  pl_real *room[PL_MAX_STAGES];
  oracle_open(&o, r, (oracle_fault){0});
  for (size_t s = 0; s < o.stages; s++) room[s] = oracle_reals(&o, o.layout[s]->grad_size);
  for (int64_t t = 0; t < r->config.train.steps; t++) {
    const bool exact = oracle_largest_delay(&o, t) == 0;
    oracle_update(&o, t);
    expect(r, t + 1, PL_SERIES_displacement_ratio, sqrt(product(&o, o.u, o.u)) / uncorrected(&o, t), 1e-12);
    expect(r, t + 1, PL_SERIES_drift, drift(&o, t, room), 1e-12);
    expect(r, t + 1, PL_SERIES_gradient_cos, probed ? cosine(&o, t, room) : (double)NAN, 1e-12);
    const double found = value(r, t + 1, PL_SERIES_gradient_cos);
    assert_true(!probed || (exact ? found == 1 : found < 1));
    below += found < 1;
  }
  oracle_close(&o);
  return below;
}

/* Microbatches of two sizes, tied matrices and replicas where they are possible. */
static void executed_pipelines(void **state) {
  (void)state;
  for (size_t i = 0; i < PIPELINE_SCHEDULES; i++)
    for (size_t replicas = 1; replicas <= 2; replicas++) {
      const char *name = pipeline_schedules[i];
      pipeline_case c = pipeline_make(name, 4, strncmp(name, "pipedream", 9) ? 4 : 1);
      rig r;
      c.replicas = replicas;
      c.tied = !pipeline_runs_free(name);
      c.train = ", 'probe_every': 1";
      pipeline_open(&c, &r);
      rig_train(&r);
      const size_t below = expect_mechanism(&r, !pipeline_runs_free(name));
      const bool delayed = strcmp(name, "2bw") == 0 || strcmp(name, "pipedream-vertical") == 0;
      assert_int_equal(below, delayed ? c.steps - 1 : 0);
      rig_close(&r);
    }
}

#define LAGGED                                                                                                         \
  "{'model': {'type': 'transformer', 'layers': 4, 'd_model': 16, 'heads': 2, 'context': 8, 'tied': true}, 'data': "    \
  "{'type': 'synthetic', 'vocab': 16}, 'optimizer': {'type': '%s', 'lr': 0.01}, 'correction': '%s', %s, "              \
  "'simulate_only': true, 'train': {'steps': 8, 'batch_tokens': 56, 'warmup': 2, 'lr_schedule': 'constant', 'clip': "  \
  "0.5, 'val_tokens': 40, 'probe_every': 1%s}, 'pipeline': {'stages': %d, 'microbatches': 3}}"

static void lagged(rig *r, const char *device, const char *optimizer, const char *correction, const char *delay,
                   const char *train, int stages) {
  char json[RIG_TEXT];
  snprintf(json, sizeof json, LAGGED, optimizer, correction, delay, train, stages);
  rig_open_on(r, device, NULL, json);
}

static void simulated_delays(void **state) {
  (void)state;
  static const struct {
    const char *delay;
    int stages;
    size_t below;
  } cases[] = {{"'delay': 0", 1, 0},
               {"'delay': 3", 1, 7},
               {"'delay': 1", 4, 7},
               {"'delay': 'pipedream'", 4, 7},
               {"'delay': [0, 3, 0, 1]", 4, 7},
               {"'delay': 2, 'delay_start': 5", 2, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int ef = 0; ef < 2; ef++) {
      rig r;
      lagged(&r, "cpu", i % 2 ? "muon" : "adamw", ef ? "ef" : "none", cases[i].delay, "", cases[i].stages);
      rig_train(&r);
      assert_int_equal(expect_mechanism(&r, true), cases[i].below);
      for (int64_t t = 1; t <= 8 && !ef; t++) assert_true(value(&r, t, PL_SERIES_displacement_ratio) == 1);
      rig_close(&r);
    }
}

/* Two coordinates with curvatures 1/4 and 1, a stage each, the first on delay 2, by hand:
 * f = x0^2 / 8 + x1^2 / 2, u = g / 2, and the first stage moves by v = u + 2 (u - u before). */
static void quadratic_by_hand(void **state) {
  (void)state;
  double x0[9] = {3}, x1 = 3, before = 0;
  rig r;
  rig_open(&r, NULL,
           "{'model': {'type': 'quadratic', 'dim': 2, 'layers': 2, 'spectrum': 'linear', 'h_min': 0.25, 'h_max': 1, "
           "'init_value': 3}, 'data': 'none', 'optimizer': {'type': 'sgd', 'lr': 0.5, 'momentum': 0}, 'delay': [2, 0], "
           "'correction': 'ef', 'train': {'steps': 8, 'batch_tokens': 4, 'warmup': 0, 'lr_schedule': 'constant', "
           "'clip': 0, 'weight_decay': 0, 'probe_every': 1}, 'pipeline': {'stages': 2}}");
  rig_train(&r);
  for (int t = 0; t < 8; t++) {
    const double old = x0[t < 2 ? 0 : t - 2], g0 = old / 4, fresh = x0[t] / 4;
    const double u0 = g0 / 2, u1 = x1 / 2, v0 = u0 + 2 * (u0 - (t == 0 ? u0 : before));
    expect(&r, t + 1, PL_SERIES_drift, fabs(x0[t] - old) / hypot(x0[t], x1), near);
    expect(&r, t + 1, PL_SERIES_displacement_ratio, hypot(v0, u1) / hypot(u0, u1), near);
    expect(&r, t + 1, PL_SERIES_gradient_cos, (g0 * fresh + x1 * x1) / hypot(g0, x1) / hypot(fresh, x1), near);
    before = u0;
    x0[t + 1] = x0[t] - v0;
    x1 -= u1;
  }
  assert_true(value(&r, 4, PL_SERIES_gradient_cos) < 0.999 && value(&r, 4, PL_SERIES_drift) > 0.1);
  rig_close(&r);
}

/* The same batch has the same noise. */
static void noise_belongs_to_the_batch(void **state) {
  (void)state;
  rig r;
  rig_open(&r, NULL,
           "{'model': {'type': 'quadratic', 'dim': 12, 'layers': 4, 'noise': 2}, 'data': 'none', 'optimizer': 'sgd', "
           "'train': {'steps': 6, 'batch_tokens': 14, 'probe_every': 1}, 'pipeline': {'schedule': '1f1b', 'stages': 2, "
           "'microbatches': 3, 'replicas': 2}}");
  rig_train(&r);
  for (int64_t t = 1; t <= 6; t++) assert_true(value(&r, t, PL_SERIES_gradient_cos) == 1);
  rig_close(&r);
}

/* Neither that nor how often it probes changes a bit, on a device that fills free memory with NaN too; and it does so
 * where that is due and logged. */
static void probing_changes_nothing(void **state) {
  (void)state;
  static const struct {
    const char *device;
    int64_t probe_every, log_every;
    const char *probed; /* of the points from step 1 on */
  } cases[] = {
      {"cpu", 0, 1, "--------"}, {"cpu", 3, 1, "--*--*-*"}, {"paranoid", 1, 1, "********"}, {"cpu", 2, 3, "-**"}};
  for (size_t i = 0; i < 3 * sizeof cases / sizeof *cases; i++) {
    rig plain, other;
    lagged(&plain, "cpu", pipeline_optimizers[i % 3], "ef", "'delay': [3, 0]", "", 2);
    lagged(&other, cases[i / 3].device, pipeline_optimizers[i % 3], "ef", "'delay': [3, 0]", "", 2);
    plain.config.train.probe_every = 0;
    other.config.train.probe_every = cases[i / 3].probe_every;
    other.config.train.log_every = cases[i / 3].log_every;
    rig_train(&plain);
    rig_train(&other);
    assert_true(rig_same_weights(&plain, &other));
    assert_int_equal(other.point_count, strlen(cases[i / 3].probed) + 1);
    for (size_t k = 0; k < other.point_count; k++) {
      const pl_point *p = &other.points[k];
      for (pl_series s = 0; s < PL_SERIES_gradient_cos; s++)
        if (s != PL_SERIES_seconds && s != PL_SERIES_bubble) expect(&other, p->step, s, value(&plain, p->step, s), 0);
      assert_true(isnan(p->values[PL_SERIES_gradient_cos]) == (k == 0 || cases[i / 3].probed[k - 1] == '-'));
    }
    rig_close(&other);
    rig_close(&plain);
  }
}

static size_t allocated[2]; /* by the first point, by the last one */

static pl_status count_there(void *self, const pl_point *p, pl_err *e) {
  (void)self;
  (void)e;
  allocated[p->step > 0] = allocations;
  return PL_OK;
}

static void nothing_is_allocated_on_the_way(void **state) {
  (void)state;
  rig r;
  pipeline_case c = pipeline_make("2bw", 2, 2);
  c.tied = true;
  c.replicas = 2;
  c.train = ", 'probe_every': 1";
  pipeline_open(&c, &r);
  r.sink.write = count_there;
  const size_t before = allocations;
  rig_train(&r);
  assert_true(allocated[0] > before + 10);
  assert_int_equal(allocated[1], allocated[0]);
  rig_close(&r);
}

static volatile sig_atomic_t stop;

static void stop_after_4(void *self, int64_t step, int64_t steps, double train_loss, double val_loss) {
  (void)self;
  (void)steps;
  (void)train_loss;
  (void)val_loss;
  stop = step == 4;
}

static void resumed_runs_go_on(void **state) {
  (void)state;
  char folder[] = "/tmp/pl_mechanism_test.XXXXXX", path[128];
  static const char *const files[] = {".stage-000.ckpt", ".stage-001.ckpt", ".ckpt"};
  assert_non_null(mkdtemp(folder));
  rig whole, part;
  lagged(&whole, "cpu", "adamw", "ef", "'delay': [3, 1]", "", 2);
  lagged(&part, "cpu", "adamw", "ef", "'delay': [3, 1]", "", 2);
  rig_train(&whole);
  part.args.checkpoint_folder = folder;
  part.args.stop = &stop;
  part.args.progress = stop_after_4;
  rig_train(&part);
  assert_int_equal(part.outcome.steps, 4);
  stop = 0;
  part.log_length = 1000000;
  rig_train(&part);
  assert_int_equal(part.outcome.resumed_from, 4);
  assert_int_equal(part.point_count, 4);
  for (int64_t t = 5; t <= 8; t++)
    for (pl_series s = PL_SERIES_drift; s <= PL_SERIES_gradient_cos; s++) {
      assert_true(isfinite(value(&whole, t, s)));
      expect(&part, t, s, value(&whole, t, s), 0);
    }
  rig_close(&whole);
  rig_close(&part);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "%s/step-0000000004%s", folder, files[i]);
    assert_int_equal(unlink(path), 0);
  }
  assert_int_equal(rmdir(folder), 0);
}

static double bad_at_2(int64_t step, size_t microbatch, size_t sequences) {
  (void)microbatch;
  return step == 2 ? (double)INFINITY : (double)sequences;
}

static double none_at_4(int64_t step, size_t stage) {
  (void)stage;
  return step == 4 ? 0 : -1;
}

static size_t forwards;

static void count_forward(int64_t step, size_t stage, double weight) {
  (void)step;
  (void)stage;
  (void)weight;
  forwards++;
}

/* The second forward is paid for where its result is shown, and nowhere else: not for the update that is
 * skipped. */
static void probes_are_not_wasted(void **state) {
  (void)state;
  static const struct {
    const char *train, *rest;
    size_t forwards;
  } cases[] = {
      {", 'probe_every': 0", "", 9},
      {", 'probe_every': 1", "", 9 + 8},
      {", 'probe_every': 2, 'log_every': 3", "", 9 + 2},
      {", 'probe_every': 1, 'clip_scope': 'stage'", ", 'pipeline': {'schedule': 'pipedream', 'stages': 2}", 2 * 9}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig r;
    char json[RIG_TEXT];
    snprintf(json, sizeof json,
             "{'model': 'script', 'data': 'none', 'optimizer': 'sgd', 'train': {'steps': 9, 'batch_tokens': 4%s}%s}",
             cases[i].train, cases[i].rest);
    the_script = (script){.loss = bad_at_2, .gradient = none_at_4, .seen = count_forward};
    rig_open(&r, &script_models, json);
    r.config.train.nonfinite = PL_NONFINITE_SKIP;
    forwards = 0;
    rig_train(&r);
    assert_int_equal(forwards, cases[i].forwards);
    rig_close(&r);
  }
}

/* Weights at 0, a gradient of 0, an update that is skipped, a version that is gone. */
static void what_is_not_defined_is_nan(void **state) {
  (void)state;
  char folder[] = "/tmp/pl_mechanism_test.XXXXXX", path[64], json[RIG_TEXT];
  static const char text[] = "schedule gap\nstages 1\nmicrobatches 1\nstage 0\n  prologue F0\n  body F0+1 B0 U\n"
                             "  epilogue B0 U\n";
  static const char quadratic[] =
      "{'model': {'type': 'quadratic', 'dim': 2, 'init_value': %s}, 'data': 'none', 'optimizer': {'type': 'sgd', 'lr': "
      "0.5}, 'train': {'steps': 6, 'batch_tokens': 4, 'warmup': 0, 'clip': 0, 'nonfinite': 'skip', 'probe_every': "
      "1}%s}";
  rig r;
  snprintf(json, sizeof json, quadratic, "0", "");
  rig_open(&r, NULL, json);
  rig_train(&r);
  for (pl_series s = PL_SERIES_drift; s <= PL_SERIES_gradient_cos; s++) expect(&r, 3, s, (double)NAN, 0);
  rig_close(&r);
  the_script = (script){.loss = bad_at_2, .gradient = none_at_4};
  rig_open(&r, &script_models,
           "{'model': 'script', 'data': 'none', 'optimizer': {'type': 'sgd', 'momentum': 0}, 'correction': 'ef', "
           "'delay': 1, 'train': {'steps': 6, 'batch_tokens': 4, 'nonfinite': 'skip', 'probe_every': 1}}");
  rig_train(&r);
  assert_int_equal(r.outcome.skipped, 1);
  for (int64_t t = 1; t <= 6; t++) {
    assert_true(isnan(value(&r, t, PL_SERIES_displacement_ratio)) == (t == 3 || t == 5));
    assert_true(isnan(value(&r, t, PL_SERIES_gradient_cos)) == (t == 3 || t == 5));
    assert_true(isfinite(value(&r, t, PL_SERIES_drift)));
  }
  assert_true(value(&r, 5, PL_SERIES_update_norm) > 0);
  rig_close(&r);
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/gap.txt", folder);
  FILE *f = fopen(path, "w");
  assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
  char rest[160];
  snprintf(rest, sizeof rest, ", 'delay': 1, 'pipeline': {'schedule': 'custom', 'schedule_file': '%s'}", path);
  snprintf(json, sizeof json, quadratic, "1", rest);
  rig_open(&r, NULL, json);
  rig_train(&r);
  expect(&r, 1, PL_SERIES_drift, 0, 0);
  for (int64_t t = 2; t <= 6; t++) {
    assert_true(value(&r, t, PL_SERIES_delay) == 1);
    expect(&r, t, PL_SERIES_drift, (double)NAN, 0);
  }
  rig_close(&r);
  assert_true(unlink(path) == 0 && rmdir(folder) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(executed_pipelines),         cmocka_unit_test(simulated_delays),
      cmocka_unit_test(quadratic_by_hand),          cmocka_unit_test(noise_belongs_to_the_batch),
      cmocka_unit_test(probing_changes_nothing),    cmocka_unit_test(nothing_is_allocated_on_the_way),
      cmocka_unit_test(resumed_runs_go_on),         cmocka_unit_test(probes_are_not_wasted),
      cmocka_unit_test(what_is_not_defined_is_nan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
