/* The device that keeps a clock: nothing of a training changes, no moment is counted twice or not at all, and each part
 * has what the run did. */
#include <unistd.h>

#include "core/base/fs.h"
#include "core/device/profile.h"
#include "tests/conform/train_rig.h"

enum { STEPS = 6, LAYERS = 2, WIDTH = 16, HEADS = 2, FF = 24, VOCAB = 32, CONTEXT = 8, SEQUENCES = 4 };

#define RUN(train, more)                                                                                               \
  "{'model': {'type': 'transformer', 'layers': 2, 'd_model': 16, 'heads': 2, 'ff': 24, 'context': 8}, "                \
  "'data': {'type': 'synthetic', 'vocab': 32}, 'train': {'steps': 6, 'batch_tokens': 32, 'val_tokens': 64" train       \
  "}, " more "}"
#define PLAIN RUN("", "'optimizer': {'type': 'adamw', 'lr': 0.01}")
#define DELAYED                                                                                                        \
  RUN(", 'checkpoint_every': 2", "'optimizer': {'type': 'muon', 'lr': 0.01}, 'delay': 1, 'correction': 'ef'")

static const char *const device_names[] = {"cpu", "paranoid"};
enum { DEVICES = sizeof device_names / sizeof *device_names };

/* The same training as in `plain`, measured. */
static void measure(rig *r, pl_profile *p, const char *device, const char *json) {
  rig_open_on(r, device, NULL, json);
  pl_profile_open(p, r->device);
  r->args.device = &p->device;
  rig_train(r);
  pl_profile_stop(p);
}

static bool same_training(const rig *a, const rig *b) {
  if (!rig_same_weights(a, b) || a->point_count != b->point_count) return false;
  for (size_t i = 0; i < a->point_count; i++)
    for (size_t s = 0; s < PL_SERIES_COUNT; s++)
      if (s != PL_SERIES_seconds && !rig_same(&a->points[i].values[s], &b->points[i].values[s], sizeof(double)))
        return false;
  return true;
}

static void measuring_changes_no_bit(void **state) {
  (void)state;
  static const char *const runs[] = {PLAIN, DELAYED};
  for (size_t d = 0; d < DEVICES; d++)
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
      rig plain, measured;
      pl_profile p;
      rig_open_on(&plain, device_names[d], NULL, runs[i]);
      rig_train(&plain);
      measure(&measured, &p, device_names[d], runs[i]);
      assert_true(same_training(&plain, &measured));
      plain.weights[plain.count / 2] += (pl_real)1; /* it can fail */
      assert_false(same_training(&plain, &measured));
      rig_close(&measured);
      rig_close(&plain);
    }
}

/* Differences of neighbouring times, added up: each loses at most half a unit in the last place of the clock, which is
 * below 1e-9 of a second for a year of running. */
static bool is_whole(const pl_profile *p, double began, size_t switches) {
  return fabs(pl_profile_seconds(p) - (p->since - began)) <= 1e-9 * (double)(switches + 1);
}

static void no_moment_is_lost_or_counted_twice(void **state) {
  (void)state;
  rig r;
  pl_profile p;
  size_t switches = 0;
  rig_open_on(&r, "cpu", NULL, DELAYED);
  pl_profile_open(&p, r.device);
  const double began = p.since;
  r.args.device = &p.device;
  rig_train(&r);
  pl_profile_stop(&p);
  for (size_t i = 0; i < PL_PROFILE_COUNT; i++) {
    assert_true(p.sum[i].seconds >= 0);
    switches += 2 * p.sum[i].calls;
  }
  assert_true(is_whole(&p, began, switches));
  p.sum[PL_PROFILE_gemm].seconds += 0.001 + 2e-9 * (double)switches; /* it can fail */
  assert_false(is_whole(&p, began, switches));
  rig_close(&r);
}

static void expect_parts(const pl_profile *p, const pl_profile_part *used, size_t count) {
  for (size_t i = 0; i < PL_PROFILE_COUNT; i++) {
    bool wanted = false;
    for (size_t j = 0; j < count; j++) wanted = wanted || used[j] == (pl_profile_part)i;
    if ((p->sum[i].calls > 0) != wanted)
      fail_msg("%s: %llu calls", pl_profile_names[i], (unsigned long long)p->sum[i].calls);
    if (!wanted && p->sum[i].seconds > 0)
      fail_msg("%s: %g seconds without a call", pl_profile_names[i], p->sum[i].seconds);
  }
}

#define ALWAYS                                                                                                         \
  PL_PROFILE_gemm, PL_PROFILE_attention, PL_PROFILE_norms, PL_PROFILE_activations, PL_PROFILE_embedding_loss,          \
      PL_PROFILE_vectors, PL_PROFILE_optimizer, PL_PROFILE_apply, PL_PROFILE_clip, PL_PROFILE_data,                    \
      PL_PROFILE_validation, PL_PROFILE_log, PL_PROFILE_ends, PL_PROFILE_other

static void parts_are_those_that_the_run_has(void **state) {
  (void)state;
  static const pl_profile_part plain[] = {ALWAYS}, all[] = {ALWAYS, PL_PROFILE_correction, PL_PROFILE_checkpoint};
  rig r;
  pl_profile p;
  char folder[] = "/tmp/pipelag-profile-XXXXXX";
  measure(&r, &p, "cpu", PLAIN);
  expect_parts(&p, plain, sizeof plain / sizeof *plain);
  assert_int_equal(p.sum[PL_PROFILE_optimizer].calls % STEPS, 0); /* once, or by stretches */
  assert_int_equal(p.sum[PL_PROFILE_validation].calls, 2);
  rig_close(&r);

  assert_non_null(mkdtemp(folder));
  rig_open(&r, NULL, DELAYED);
  pl_profile_open(&p, r.device);
  r.args.device = &p.device;
  r.args.checkpoint_folder = folder;
  rig_train(&r);
  pl_profile_stop(&p);
  expect_parts(&p, all, sizeof all / sizeof *all);
  assert_int_equal(p.sum[PL_PROFILE_correction].calls % STEPS, 0);
  assert_true(p.sum[PL_PROFILE_optimizer].flops > 0); /* Newton-Schulz */
  rig_close(&r);
  pl_remove_tree(folder);
}

static void expect_flops(const pl_profile_sum *s, double wanted) {
  if (s->flops != wanted) fail_msg("%.17g operations, not %.17g", s->flops, wanted);
}

/* Worked out by hand: each of a matrix's weights is used in three products of 2 operations per token; a score or a
 * probability in two products forward and four backward, each of 2 head_dim operations. Whole numbers: exact. */
static void operations_are_counted(void **state) {
  (void)state;
  const double tokens = (double)STEPS * SEQUENCES * CONTEXT;
  const double weights = LAYERS * (4.0 * WIDTH * WIDTH + 3.0 * WIDTH * FF) + (double)VOCAB * WIDTH;
  const double pairs = (double)STEPS * LAYERS * SEQUENCES * HEADS * CONTEXT * (CONTEXT + 1) / 2;
  rig r;
  pl_profile p;
  measure(&r, &p, "cpu", PLAIN);
  expect_flops(&p.sum[PL_PROFILE_gemm], 6 * weights * tokens);
  expect_flops(&p.sum[PL_PROFILE_attention], 6 * 2 * pairs * WIDTH / HEADS);
  expect_flops(&p.sum[PL_PROFILE_norms], 0);
  rig_close(&r);
}

/* What an operation does inside a section is the section's; after leaving, what it was before goes on. */
static void sections_nest(void **state) {
  (void)state;
  rig r;
  pl_profile p;
  pl_real x[4] = {1, 2, 3, 4};
  rig_open(&r, NULL, PLAIN);
  pl_profile_open(&p, r.device);
  assert_int_equal(p.now, PL_PROFILE_ends);
  const pl_profile_part first = pl_profile_enter(&p.device, PL_PROFILE_other);
  assert_true(p.device.ops->sum_squares(&p.device, 4, x) == 30);
  assert_int_equal(p.sum[PL_PROFILE_vectors].calls, 1);
  const pl_profile_part second = pl_profile_enter(&p.device, PL_PROFILE_clip);
  assert_true(p.device.ops->dot(&p.device, 4, x, x) == 30);
  assert_int_equal(p.sum[PL_PROFILE_vectors].calls, 1);
  assert_int_equal(p.sum[PL_PROFILE_clip].calls, 1);
  pl_profile_leave(&p.device, second);
  assert_int_equal(p.now, PL_PROFILE_other);
  pl_profile_leave(&p.device, first);
  assert_int_equal(p.now, PL_PROFILE_ends);
  /* A device that does not measure. */
  pl_profile_leave(r.device, pl_profile_enter(r.device, PL_PROFILE_clip));
  assert_int_equal(p.sum[PL_PROFILE_clip].calls, 1);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(measuring_changes_no_bit),
      cmocka_unit_test(no_moment_is_lost_or_counted_twice),
      cmocka_unit_test(parts_are_those_that_the_run_has),
      cmocka_unit_test(operations_are_counted),
      cmocka_unit_test(sections_nest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
