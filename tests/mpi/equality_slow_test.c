/* The whole product: schedule x optimizer x correction x tied x resumed x clip, with as many stages as processes. */
#include "tests/mpi/equality.h"

static void product(void **state) {
  (void)state;
  size_t count = 0;
  for (size_t i = 0; i < PIPELINE_SCHEDULES * 3 * 3 * 2 * 2 * 2; i++) {
    const char *name = pipeline_schedules[i % PIPELINE_SCHEDULES];
    size_t rest_of_it = i / PIPELINE_SCHEDULES;
    const size_t m = usual_microbatches(name, world->size);
    if (!pipeline_is_legal(name, world->size, m)) continue;
    pipeline_case c = pipeline_make(name, world->size, m);
    c.optimizer = pipeline_optimizers[rest_of_it % 3];
    c.correction = pipeline_corrections[rest_of_it / 3 % 3];
    c.tied = rest_of_it / 9 % 2 == 1;
    c.stage_clip = rest_of_it / 18 % 2 == 1;
    if (pipeline_runs_free(name) && (c.tied || !c.stage_clip)) continue;
    if (rest_of_it / 36 == 1)
      compare_resumed(c, true);
    else
      compare(&c);
    count++;
  }
  print_message("%zu processes: %zu cases\n", world->size, count);
  assert_true(count >= 300);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(product, make_folder, remove_folder)};
  return RIG_RUN(tests);
}
