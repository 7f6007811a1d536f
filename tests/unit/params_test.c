#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/config/params.h"

typedef struct config {
  int64_t steps;
  double rate, share, given;
  bool flag;
  const char *name, *path;
  int scale;
  pl_int_list delay;
  pl_text_list files;
  double inner;
} config;

static const char *const scales[] = {"keller", "moonlight", "torch", NULL};
static const char *const words[] = {"pipedream", NULL};

#define AT(field) .name = #field, .offset = offsetof(config, field)
static const pl_param table[] = {
    {AT(steps), .type = PL_INT, .required = true, .min = 1, .max = 1e9, .help = "updates"},
    {AT(rate), .type = PL_REAL, .def = 0.001, .max = (double)INFINITY, .above_min = true},
    {AT(share), .type = PL_REAL, .def = 0.5, .max = 1, .above_min = true},
    {AT(given), .type = PL_REAL, .def = (double)NAN},
    {AT(flag), .type = PL_BOOL, .def = 1},
    {AT(name), .type = PL_TEXT, .not_identity = true},
    {AT(path), .type = PL_TEXT, .def_text = "here"},
    {AT(scale), .type = PL_CHOICE, .def = 1, .choices = scales},
    {AT(delay), .type = PL_INT_LIST, .max = 1024, .choices = words},
    {AT(files), .type = PL_TEXT_LIST},
    {.name = "adamw.lr", .offset = offsetof(config, inner), .type = PL_REAL, .def = 2},
    {0},
};

static pl_json *parse(const char *text) {
  pl_err e = {0};
  pl_json *value = NULL;
  if (pl_json_parse(text, strlen(text), "t", &value, &e) != PL_OK) fail_msg("%s: %s", text, e.text);
  return value;
}

static const pl_param *row(const char *key) {
  size_t i = pl_params_find(table, key);
  assert_true(i < pl_params_count(table));
  return &table[i];
}

/* Sets, gets and compares with what should be stored, as JSON. */
static void expect_stored(const char *key, const char *given, const char *stored) {
  config c;
  pl_err e = {0};
  pl_params_defaults(table, &c);
  pl_json *value = parse(given);
  if (pl_param_set(row(key), &c, value, "w", &e) != PL_OK) fail_msg("%s", e.text);
  pl_json *got = pl_param_get(row(key), &c);
  pl_str s = {0};
  pl_json_write_canonical(got, &s);
  assert_string_equal(pl_str_text(&s), stored);
  pl_str_free(&s);
  pl_json_release(got);
  pl_json_release(value);
}

static void expect_refused(const char *key, const char *given, const char *message) {
  config c;
  pl_err e = {0};
  pl_params_defaults(table, &c);
  config before = c;
  pl_json *value = parse(given);
  assert_int_equal(pl_param_set(row(key), &c, value, "w", &e), PL_BAD);
  assert_string_equal(e.text, message);
  assert_int_equal(c.steps, before.steps);
  assert_true(c.rate == before.rate && c.scale == before.scale && c.delay.count == before.delay.count);
  pl_json_release(value);
}

static void good_values_are_stored(void **state) {
  (void)state;
  expect_stored("steps", "1e3", "1000");
  expect_stored("steps", "1000000000", "1000000000");
  expect_stored("rate", "1", "1");
  expect_stored("rate", "4e-3", "0.004");
  expect_stored("share", "1.0", "1");
  expect_stored("given", "null", "null");
  expect_stored("given", "-1.5", "-1.5");
  expect_stored("given", "-0.0", "0");
  expect_stored("flag", "false", "false");
  expect_stored("name", "null", "null");
  expect_stored("name", "\"x\"", "\"x\"");
  expect_stored("scale", "\"torch\"", "\"torch\"");
  expect_stored("delay", "4", "4");
  expect_stored("delay", "[3,2.0,1,0]", "[3,2,1,0]");
  expect_stored("delay", "[1]", "[1]");
  expect_stored("delay", "\"pipedream\"", "\"pipedream\"");
  expect_stored("files", "\"a\"", "\"a\"");
  expect_stored("files", "[\"a\",\"b\"]", "[\"a\",\"b\"]");
  expect_stored("files", "null", "[]");
}

static void bad_values_say_what_is_allowed(void **state) {
  (void)state;
  expect_refused("steps", "2.5", "w: must be a whole number from 1 to 1000000000, not 2.5");
  expect_refused("steps", "0", "w: 0 is out of range; allowed: from 1 to 1000000000");
  expect_refused("steps", "null", "w: must be a whole number from 1 to 1000000000, not null");
  expect_refused("steps", "1e300", "w: must be a whole number from 1 to 1000000000, not 1e+300");
  expect_refused("rate", "\"1e-3\"", "w: must be a number > 0, not the string \"1e-3\"");
  expect_refused("rate", "-1", "w: -1 is out of range; allowed: > 0");
  expect_refused("rate", "null", "w: must be a number > 0, not null");
  expect_refused("share", "0", "w: 0 is out of range; allowed: > 0 and <= 1");
  expect_refused("share", "[1]", "w: must be a number > 0 and <= 1, not the list [1]");
  expect_refused("flag", "1", "w: must be true or false, not 1");
  expect_refused("path", "null", "w: must be a string, not null");
  expect_refused("scale", "\"torch2\"", "w: \"torch2\"; did you mean \"torch\"?; allowed: keller, moonlight, torch");
  expect_refused("scale", "1", "w: must be one of keller, moonlight, torch, not 1");
  expect_refused("delay", "-1", "w: -1 is out of range; allowed: from 0 to 1024");
  expect_refused("delay", "[1,-2]", "w[1]: -2 is out of range; allowed: from 0 to 1024");
  expect_refused("delay", "[1,\"2\"]", "w[1]: must be a whole number from 0 to 1024, not the string \"2\"");
  expect_refused("delay", "[]", "w: the list is empty; 1 to 64 values are allowed");
  expect_refused("delay", "\"pipe\"",
                 "w: must be a whole number from 0 to 1024, a list of these, or pipedream, not the string \"pipe\"");
  expect_refused("files", "[1]", "w: must be a string or a list of strings or null, not the list [1]");
}

static void unknown_keys_show_the_nearest(void **state) {
  (void)state;
  pl_err e = {0};
  assert_int_equal(pl_params_unknown(table, "optimizer muon", "scael", "grid[0].optimizer.scael", &e), PL_BAD);
  assert_string_equal(e.text,
                      "grid[0].optimizer.scael: unknown key \"scael\" (of optimizer muon); did you mean \"scale\"?; "
                      "allowed: steps, rate, share, given, flag, name, path, scale, delay, files, adamw.lr");
}

static void dump_nests_keys(void **state) {
  (void)state;
  config c;
  pl_params_defaults(table, &c);
  c.steps = 7;
  pl_json *object = pl_json_new_object();
  assert_true(pl_params_dump(table, &c, object));
  pl_str s = {0};
  pl_json_write_canonical(object, &s);
  assert_string_equal(pl_str_text(&s),
                      "{\"adamw\":{\"lr\":2},\"delay\":0,\"files\":[],\"flag\":true,\"given\":null,\"name\":null,"
                      "\"path\":\"here\",\"rate\":0.001,\"scale\":\"moonlight\",\"share\":0.5,\"steps\":7}");
  pl_str_free(&s);
  pl_json_release(object);
}

static uint64_t identity_with(const char *key, const char *given, const char *prefix) {
  config c;
  pl_err e = {0};
  pl_params_defaults(table, &c);
  c.steps = 5;
  pl_json *value = parse(given);
  assert_int_equal(pl_param_set(row(key), &c, value, "w", &e), PL_OK);
  uint64_t id = pl_params_identity(table, &c, prefix);
  pl_json_release(value);
  return id;
}

static void identity_is_of_values(void **state) {
  (void)state;
  uint64_t base = identity_with("rate", "1e-3", "p");
  static const char *const same[][2] = {{"rate", "0.0010"}, {"name", "\"other\""}, {"scale", "\"moonlight\""},
                                        {"delay", "[0]"},   {"steps", "5.0"},      {"given", "null"}};
  static const char *const other[][2] = {{"rate", "0.002"},     {"given", "0"},         {"flag", "false"},
                                         {"path", "\"there\""}, {"delay", "[0,0]"},     {"delay", "1"},
                                         {"steps", "6"},        {"scale", "\"torch\""}, {"files", "\"a\""},
                                         {"adamw.lr", "2.5"},   {"share", "0.25"},      {"delay", "\"pipedream\""}};
  enum { OTHERS = sizeof other / sizeof *other };
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    assert_true(identity_with(same[i][0], same[i][1], "p") == base);
  uint64_t ids[OTHERS];
  for (size_t i = 0; i < OTHERS; i++) {
    ids[i] = identity_with(other[i][0], other[i][1], "p");
    assert_true(ids[i] != base);
    for (size_t j = 0; j < i; j++) assert_true(ids[i] != ids[j]);
  }
  assert_true(identity_with("rate", "1e-3", "q") != base);
  assert_true(identity_with("files", "[\"a\",\"b\"]", "p") != identity_with("files", "[\"b\",\"a\"]", "p"));
}

/* Values that change places between keys of one type are another configuration. */
static void identity_knows_the_keys(void **state) {
  (void)state;
  config a, b;
  pl_params_defaults(table, &a);
  b = a;
  a.rate = b.share = 0.25;
  a.share = b.rate = 0.75;
  assert_true(pl_params_identity(table, &a, "p") != pl_params_identity(table, &b, "p"));
}

static void descriptions(void **state) {
  (void)state;
  static const char *const expected[] = {"integer from 1 to 1000000000, required",
                                         "real > 0, default 0.001",
                                         "real > 0 and <= 1, default 0.5",
                                         "real or null, default null",
                                         "true or false, default true",
                                         "text or null, default null",
                                         "text, default here",
                                         "one of keller, moonlight, torch, default moonlight",
                                         "integer from 0 to 1024, a list of these, or pipedream, default 0",
                                         "text or list of texts or null, default []",
                                         "real, default 2"};
  for (size_t i = 0; i < pl_params_count(table); i++) {
    pl_str s = {0};
    pl_param_describe(&table[i], &s);
    assert_string_equal(pl_str_text(&s), expected[i]);
    pl_str_free(&s);
  }
}

static void schema_has_ranges_and_nesting(void **state) {
  (void)state;
  pl_json *schema = pl_params_schema(table);
  pl_str s = {0};
  pl_json_write_canonical(schema, &s);
  static const char *const parts[] = {
      "\"steps\":{\"description\":\"updates\",\"maximum\":1000000000,\"minimum\":1,\"type\":\"integer\"}",
      "\"rate\":{\"default\":0.001,\"exclusiveMinimum\":0,\"type\":\"number\"}",
      "\"given\":{\"default\":null,\"type\":[\"number\",\"null\"]}",
      "\"scale\":{\"default\":\"moonlight\",\"enum\":[\"keller\",\"moonlight\",\"torch\"]}",
      "\"adamw\":{\"additionalProperties\":false,\"properties\":{\"lr\":{\"default\":2,\"type\":\"number\"}},\"type\":"
      "\"object\"}"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(pl_str_text(&s), parts[i])) fail_msg("%s not in %s", parts[i], pl_str_text(&s));
  pl_str_free(&s);
  pl_json_release(schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_values_are_stored),
      cmocka_unit_test(bad_values_say_what_is_allowed),
      cmocka_unit_test(unknown_keys_show_the_nearest),
      cmocka_unit_test(dump_nests_keys),
      cmocka_unit_test(identity_is_of_values),
      cmocka_unit_test(identity_knows_the_keys),
      cmocka_unit_test(descriptions),
      cmocka_unit_test(schema_has_ranges_and_nesting),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
