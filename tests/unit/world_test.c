/* Where stages are, and the world of one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/pipeline/world.h"

static void must(pl_status st, const pl_err *e) {
  if (st != PL_OK) fail_msg("%s", e->text);
}

static pl_grid make(size_t size, size_t stages, size_t replicas) {
  pl_err e = {0};
  pl_grid g;
  must(pl_grid_make(size, stages, replicas, &g, &e), &e);
  return g;
}

/* Worked out by hand: the ranks of the stages in order. */
static void stages_are_on_these_ranks(void **state) {
  (void)state;
  static const struct {
    size_t size, stages, replicas, replica, ranks[8];
  } cases[] = {
      {1, 4, 1, 0, {0, 0, 0, 0}},
      {2, 4, 1, 0, {0, 0, 1, 1}},
      {3, 4, 1, 0, {0, 1, 2, 2}},
      {4, 4, 1, 0, {0, 1, 2, 3}},
      {3, 8, 1, 0, {0, 0, 1, 1, 1, 2, 2, 2}},
      {1, 4, 3, 2, {0, 0, 0, 0}},
      {3, 4, 3, 2, {2, 2, 2, 2}},
      {4, 4, 2, 0, {0, 0, 1, 1}},
      {4, 4, 2, 1, {2, 2, 3, 3}},
      {6, 3, 2, 1, {3, 4, 5}},
      {2, 1, 2, 1, {1}},
      {1, 1, 1, 0, {0}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_grid g = make(cases[i].size, cases[i].stages, cases[i].replicas);
    for (size_t s = 0; s < cases[i].stages; s++)
      if (pl_grid_rank(&g, cases[i].replica, s) != cases[i].ranks[s])
        fail_msg("case %zu: stage %zu is on rank %zu", i, s, pl_grid_rank(&g, cases[i].replica, s));
  }
}

/* Every stage of every replica is on one rank, which knows it; no rank is without. */
static void ranks_and_stages_agree(void **state) {
  (void)state;
  for (size_t stages = 1; stages <= 12; stages++)
    for (size_t replicas = 1; replicas <= 3; replicas++)
      for (size_t ranks = 1; ranks <= stages; ranks++) {
        pl_grid g = make(replicas * ranks, stages, replicas);
        assert_int_equal(g.ranks, ranks);
        size_t found = 0;
        for (size_t rank = 0; rank < replicas * ranks; rank++) {
          size_t first = 99, end = 99;
          pl_grid_stages(&g, rank, &first, &end);
          assert_true(first < end && end <= stages);
          for (size_t s = first; s < end; s++, found++) assert_int_equal(pl_grid_rank(&g, rank / ranks, s), rank);
        }
        assert_int_equal(found, replicas * stages);
      }
}

static void other_numbers_of_processes_are_refused(void **state) {
  (void)state;
  static const struct {
    size_t size, stages, replicas;
    const char *text;
  } cases[] = {{5, 4, 1, "5 processes for a pipeline of 4 stages; allowed: 1 to 4"},
               {0, 4, 1, "0 processes"},
               {3, 4, 2, "3 processes for 2 replicas of a pipeline of 4 stages; allowed: 1, and 2 times 1 to 4"},
               {10, 4, 2, "10 processes"},
               {2, 4, 3, "2 processes"},
               {1, 0, 1, "at least one"},
               {1, 4, 0, "at least one"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_err e = {0};
    pl_grid g;
    assert_int_equal(pl_grid_make(cases[i].size, cases[i].stages, cases[i].replicas, &g, &e), PL_BAD);
    if (!strstr(e.text, cases[i].text)) fail_msg("case %zu: %s", i, e.text);
  }
}

static void alone_there_is_nobody_to_ask(void **state) {
  (void)state;
  pl_err e = {0};
  pl_world *w = NULL;
  must(pl_world_alone(&w, &e), &e);
  assert_int_equal(w->size, 1);
  assert_int_equal(w->rank, 0);
  assert_int_equal(w->type->agree(w, PL_OK, &e), PL_OK);
  pl_str text = {0};
  pl_str_append(&text, "the config");
  must(w->type->share(w, &text, &e), &e);
  assert_string_equal(pl_str_text(&text), "the config");
  must(w->type->progress(w, &e), &e);
  w->type->abort(w, 1, "returns");
  pl_fail(&e, PL_STOPPED, "at update 3");
  assert_int_equal(w->type->agree(w, PL_STOPPED, &e), PL_STOPPED);
  assert_string_equal(e.text, "at update 3");
  assert_true(w->waited == 0);
  pl_str_free(&text);
  const pl_world_type *type = w->type;
  type->close(w);
  type->close(NULL);
}

static void alone_rounds_are_there_at_once(void **state) {
  (void)state;
  pl_err e = {0};
  pl_world *w = NULL;
  pl_gather *g = NULL;
  must(pl_world_alone(&w, &e), &e);
  must(w->type->gather_open(w, (const size_t[]){2}, 2, &g, &e), &e);
  assert_null(w->type->gather_next(g));
  for (int i = 0; i < 5; i++) {
    must(w->type->gather_post(g, (const double[]){i, 10 + i}, &e), &e);
    if (i == 0) continue;
    assert_int_equal(w->type->gather_post(g, (const double[]){7, 7}, NULL), PL_FAIL); /* two wait already */
    const double *all = w->type->gather_next(g);
    assert_true(all[0] == i - 1 && all[1] == 9 + i);
    w->type->gather_pop(g);
  }
  assert_true(w->type->gather_next(g)[0] == 4);
  w->type->gather_pop(g);
  assert_null(w->type->gather_next(g));
  w->type->gather_pop(g); /* nothing is left to pop */
  must(w->type->gather_post(g, (const double[]){8, 9}, &e), &e);
  assert_true(w->type->gather_next(g)[1] == 9);
  w->type->gather_close(g);
  w->type->gather_close(NULL);
  w->type->close(w);
}

static void alone_a_sum_is_what_is_there(void **state) {
  (void)state;
  pl_err e = {0};
  pl_world *w = NULL;
  pl_sum *s = NULL;
  bool ready = false;
  pl_real x[] = {1, (pl_real)0.1, -3};
  const pl_real before[] = {1, (pl_real)0.1, -3};
  must(pl_world_alone(&w, &e), &e);
  must(w->type->sum_open(w, NULL, (const size_t[]){0}, 1, 3, &s, &e), &e);
  must(w->type->sum_begin(s, x, &e), &e);
  must(w->type->sum_ready(s, &ready, &e), &e);
  assert_true(ready);
  assert_memory_equal(x, before, sizeof x);
  w->type->sum_close(s);
  w->type->sum_close(NULL);
  w->type->close(w);
}

/* Messages of a schedule in one process; a link that nobody uses takes no memory and no message. */
static void alone_messages_stay_in_the_process(void **state) {
  (void)state;
  static pl_schedule schedule = {.stages = 3};
  static pl_schedule_facts facts = {.messages = {1, 0, 0}};
  pl_err e = {0};
  pl_world *w = NULL;
  pl_device *device = NULL;
  pl_transport *t = NULL;
  pl_real *buffer = NULL;
  bool done = false;
  must(pl_device_open("paranoid", PL_PRECISION_FP32, 1, &device, &e), &e);
  must(pl_world_alone(&w, &e), &e);
  const pl_grid g = make(1, 3, 1);
  const pl_transport_args args = {.device = device, .schedule = &schedule, .facts = &facts, .size = 2};
  must(w->type->transport(w, &g, &args, &t, &e), &e);
  must(pl_transport_buffer(device, 2, &buffer, &e), &e);
  buffer[0] = 5;
  const pl_message used = {.link = 0}, unused = {.link = 1, .kind = PL_MESSAGE_VALIDATION};
  must(t->type->send(t, &unused, &buffer, &done, &e), &e);
  assert_false(done);
  must(t->type->send(t, &used, &buffer, &done, &e), &e);
  assert_true(done);
  must(t->type->receive(t, &used, &buffer, &done, &e), &e);
  assert_true(done && buffer[0] == 5);
  device->ops->free(device, buffer);
  t->type->destroy(t);
  w->type->close(w);
  pl_device_close(device);
}

static void a_launcher_is_known_by_its_environment(void **state) {
  (void)state;
  static const char *const names[] = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK"};
  for (int i = 0; i < 2; i++) unsetenv(names[i]);
  assert_false(pl_world_launched());
  pl_err e = {0};
  pl_world *w = NULL;
  must(pl_world_open(&w, &e), &e);
  assert_string_equal(w->type->name, "local");
  w->type->close(w);
  for (int i = 0; i < 2; i++) {
    setenv(names[i], "0", 1);
    assert_true(pl_world_launched());
    unsetenv(names[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stages_are_on_these_ranks),
      cmocka_unit_test(ranks_and_stages_agree),
      cmocka_unit_test(other_numbers_of_processes_are_refused),
      cmocka_unit_test(alone_there_is_nobody_to_ask),
      cmocka_unit_test(alone_rounds_are_there_at_once),
      cmocka_unit_test(alone_a_sum_is_what_is_there),
      cmocka_unit_test(alone_messages_stay_in_the_process),
      cmocka_unit_test(a_launcher_is_known_by_its_environment),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
