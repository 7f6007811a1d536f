/* What pipeline.schedule says of a run: its delays, its identity, the schedule that is made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/config/run_schedule.h"
#include "runners/registries.h"

#define RUN "\"model\":{\"type\":\"quadratic\",\"layers\":8},\"optimizer\":\"sgd\",\"train\":{\"steps\":10}"

/* A document and the config that borrows from it. */
typedef struct built {
  pl_json *document;
  pl_run_config config;
} built;

static void build(const char *text, built *b) {
  const pl_registries registries = pl_registries_all();
  pl_err e = {0};
  if (pl_json_parse(text, strlen(text), "t", &b->document, &e) != PL_OK ||
      pl_run_config_from_json(&registries, b->document, "r", &b->config, &e) != PL_OK)
    fail_msg("%s: %s", text, e.text);
}

static uint64_t id_of(const char *text) {
  built b;
  build(text, &b);
  uint64_t id = pl_run_config_id(&b.config);
  pl_json_release(b.document);
  return id;
}

static void expect_round_trip(const built *b) {
  built again;
  pl_json *dump = pl_run_config_dump(&b->config);
  pl_str text = {0};
  pl_json_write_canonical(dump, &text);
  build(pl_str_text(&text), &again);
  assert_true(pl_run_config_id(&again.config) == pl_run_config_id(&b->config));
  pl_json_release(again.document);
  pl_json_release(dump);
  pl_str_free(&text);
}

/* A run on four stages: the schedule, microbatches, and what follows. */
static void pipeline_text(const char *schedule, int microbatches, const char *more, pl_str *out) {
  pl_str_printf(out, "{" RUN ",\"pipeline\":{\"stages\":4,\"schedule\":\"%s\",\"microbatches\":%d}%s}", schedule,
                microbatches, more);
}

static uint64_t pipeline_id(const char *schedule, int microbatches, const char *more) {
  pl_str text = {0};
  pipeline_text(schedule, microbatches, more, &text);
  uint64_t id = id_of(pl_str_text(&text));
  pl_str_free(&text);
  return id;
}

static const struct {
  const char *schedule;
  int microbatches;
  const char *name; /* of the delay; NULL: as written */
  int64_t delays[4];
} derived[] = {{"lagged", 4, "0", {0, 0, 0, 0}},
               {"gpipe", 4, "0", {0, 0, 0, 0}},
               {"1f1b", 4, "0", {0, 0, 0, 0}},
               {"interleaved-1f1b", 4, "0", {0, 0, 0, 0}},
               {"zb-h1", 4, "0", {0, 0, 0, 0}},
               {"2bw", 4, "1", {1, 1, 1, 1}},
               {"pipedream", 1, "[3,2,1,0]", {3, 2, 1, 0}},
               {"pipedream-vertical", 1, "3", {3, 3, 3, 3}},
               {"accumulate-newest", 2, "[2,1,1,0]", {2, 1, 1, 0}},
               {"wpipe", 1, "[1,1,0,0]", {1, 1, 0, 0}}};
enum { DERIVED = sizeof derived / sizeof *derived };

/* The names that the key takes are those of the library, in its order, and each has its line above. */
static void schedules_are_those_of_the_library(void **state) {
  (void)state;
  size_t count = 0;
  const pl_schedule_type *const *types = pl_schedule_types(&count);
  const char *const *names = pl_pipeline_params[pl_params_find(pl_pipeline_params, "schedule")].choices;
  assert_int_equal(count, DERIVED);
  for (size_t i = 0; i < count; i++) {
    assert_string_equal(names[i], types[i]->name);
    assert_string_equal(names[i], derived[i].schedule);
  }
  assert_string_equal(names[count], "custom");
  assert_null(names[count + 1]);
}

/* Left out, or stated as it is: the same run, whose delay is shown everywhere. */
static void delays_follow_from_the_schedule(void **state) {
  (void)state;
  uint64_t ids[DERIVED];
  for (size_t i = 0; i < DERIVED; i++) {
    built b;
    int64_t delays[4];
    pl_str text = {0}, name = {0}, stated = {0};
    pipeline_text(derived[i].schedule, derived[i].microbatches, "", &text);
    build(pl_str_text(&text), &b);
    expect_round_trip(&b);
    ids[i] = pl_run_config_id(&b.config);
    pl_run_config_delays(&b.config, delays);
    for (int p = 0; p < 4; p++) assert_int_equal(delays[p], derived[i].delays[p]);
    pl_run_config_delay_name(&b.config, &name);
    assert_string_equal(pl_str_text(&name), derived[i].name);
    pl_str_printf(&stated, ",\"delay\":%s", pl_str_text(&name));
    assert_true(pipeline_id(derived[i].schedule, derived[i].microbatches, pl_str_text(&stated)) == ids[i]);
    for (size_t j = 0; j < i; j++) assert_true(ids[i] != ids[j]);
    pl_str_free(&text);
    pl_str_free(&name);
    pl_str_free(&stated);
    pl_json_release(b.document);
  }
  assert_true(pipeline_id("2bw", 4, ",\"delay\":[1,1,1,1]") == pipeline_id("2bw", 4, ""));
  assert_true(pipeline_id("pipedream", 1, ",\"delay\":\"pipedream\"") == pipeline_id("pipedream", 1, ""));
  assert_true(pipeline_id("lagged", 4, ",\"delay\":[1,1,1,1]") != pipeline_id("lagged", 4, ",\"delay\":1"));
}

/* What contradicts the schedule, or what it refuses, stays as it is for pl_run_config_check to name. */
static void other_delays_stay(void **state) {
  (void)state;
  static const struct {
    const char *schedule, *more, *name;
    int microbatches;
  } cases[] = {{"gpipe", ",\"delay\":1", "1", 4},
               {"2bw", ",\"delay\":[1]", "[1]", 4},
               {"2bw", ",\"delay\":\"pipedream\"", "pipedream", 4},
               {"2bw", ",\"delay\":1", "1", 3},
               {"2bw", "", "0", 3},
               {"2bw", "", "0", 2000}, /* more than tokens in a batch */
               {"2bw", ",\"pipeline.allow_min_microbatches\":true", "1", 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    built b;
    pl_str text = {0}, name = {0};
    pipeline_text(cases[i].schedule, cases[i].microbatches, cases[i].more, &text);
    build(pl_str_text(&text), &b);
    pl_run_config_delay_name(&b.config, &name);
    assert_string_equal(pl_str_text(&name), cases[i].name);
    pl_str_free(&text);
    pl_str_free(&name);
    pl_json_release(b.document);
  }
}

/* More schedules than a memo holds, several times over, good and refused ones. */
static void memos_remember_right(void **state) {
  (void)state;
  static const char *const names[] = {"1f1b", "2bw", "pipedream", "interleaved-1f1b"};
  pl_run_memo memo = {0};
  for (int i = 0; i < 96; i++) {
    int microbatches = 1 + i / 4 % 8;
    const char *schedule = names[i % 4];
    pl_run_facts with, without;
    pl_err e = {0}, own = {0};
    built b;
    pl_str text = {0};
    pipeline_text(schedule, microbatches, "", &text);
    build(pl_str_text(&text), &b);
    pl_status st = pl_run_config_facts(&b.config, NULL, &memo, &with, &e);
    assert_int_equal(pl_run_config_facts(&b.config, NULL, NULL, &without, &own), st);
    assert_string_equal(e.text, own.text);
    if (st == PL_OK) assert_memory_equal(with.delay, without.delay, sizeof with.delay);
    if (st == PL_OK) assert_true(with.slack.exists == without.slack.exists && strcmp(with.name, schedule) == 0);
    pl_str_free(&text);
    pl_json_release(b.document);
  }
  assert_int_equal(memo.count, PL_RUN_MEMO);
}

static void schedules_are_made_as_configured(void **state) {
  (void)state;
  for (size_t i = 0; i < DERIVED; i++) {
    built b;
    pl_err e = {0};
    pl_str text = {0};
    pl_schedule *s = calloc(1, sizeof *s);
    pipeline_text(derived[i].schedule, derived[i].microbatches, "", &text);
    build(pl_str_text(&text), &b);
    if (pl_run_config_schedule(&b.config, NULL, s, &e) != PL_OK) fail_msg("%s", e.text);
    assert_string_equal(s->name, derived[i].schedule);
    assert_int_equal(s->stages, 4);
    assert_int_equal(s->microbatches, derived[i].microbatches);
    assert_int_equal(pl_schedule_chunks(s), pl_run_config_chunks(&b.config));
    pl_schedule_free(s);
    free(s);
    pl_str_free(&text);
    pl_json_release(b.document);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(schedules_are_those_of_the_library),
      cmocka_unit_test(delays_follow_from_the_schedule),
      cmocka_unit_test(other_delays_stay),
      cmocka_unit_test(memos_remember_right),
      cmocka_unit_test(schedules_are_made_as_configured),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
