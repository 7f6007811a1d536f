#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/json.h"
#include "core/base/memory.h"

static pl_json *parse(const char *text) {
  pl_err e = {0};
  pl_json *value = NULL;
  if (pl_json_parse(text, strlen(text), "t", &value, &e) != PL_OK) fail_msg("%s: %s", text, e.text);
  return value;
}

static void expect_bad(const char *bytes, size_t length, const char *message) {
  pl_err e = {0};
  pl_json *value = NULL;
  assert_int_equal(pl_json_parse(bytes, length, "f.json", &value, &e), PL_BAD);
  assert_null(value);
  assert_string_equal(e.text, message);
}

static void bad_texts_say_where(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"{\"a\": 1,\n \"lr\": 2,\n  \"lr\": 3}",
       "f.json:3:3: duplicate key \"lr\"; each key may stand once in an object"},
      {"{\"x\": {\"a\\\"\": 1, \"a\\\"\": 1}}",
       "f.json:1:18: duplicate key \"a\\\"\"; each key may stand once in an object"},
      {"{\"a\": 1,}", "f.json:1:8: trailing comma before '}'; JSON allows none there"},
      {"[1, 2,\n]", "f.json:1:6: trailing comma before ']'; JSON allows none there"},
      {"\n{\"\xc3\xa9\": tru}", "f.json:2:7: invalid token near 'tru'"},
      {"[1, 2", "f.json:1:6: the text ends too early: ']' expected near end of file"},
      {"[1] 2", "f.json:1:5: end of file expected near '2'"},
      {"[9223372036854775808]", "f.json:1:2: number out of range: too big integer near '9223372036854775808'; "
                                "integers take 64 bits, others a double"},
      {"[1,\n -1e400]", "f.json:2:2: number out of range: real number overflow near '-1e400'; integers take 64 bits, "
                        "others a double"},
      {"{\"a\": 1 // one\n}", "f.json:1:9: a comment; JSON has none, so put the text into the key \"notes\""},
      {"/* a */ {}", "f.json:1:1: a comment; JSON has none, so put the text into the key \"notes\""},
      {"# a\n{}", "f.json:1:1: a comment; JSON has none, so put the text into the key \"notes\""},
      {"{'a': 1}", "f.json:1:2: a single quote; JSON strings stand in double quotes"},
      {"{\"a\": True}", "f.json:1:7: True; JSON writes true"},
      {"{\"a\": None}", "f.json:1:7: None; JSON writes null"},
      {"[1, -Infinity]", "f.json:1:5: -Infinity; JSON has no such number"},
      {"[\"a\\u0000\"]", "f.json:1:2: \\u0000 in a string; any other character is allowed"},
      {"", "f.json: empty; a JSON value is needed"},
      {" \n\t", "f.json: empty; a JSON value is needed"},
      {"\x7f"
       "ELF\x02\x01",
       "f.json:1:5: not a JSON text: byte 0x02 here; UTF-8 text is needed"},
      {"[\"\xff\"]", "f.json:1:3: not a JSON text: byte 0xff here; UTF-8 text is needed"},
      {"[\"\xed\xa0\x80\"]", "f.json:1:3: not a JSON text: byte 0xed here; UTF-8 text is needed"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_bad(cases[i][0], strlen(cases[i][0]), cases[i][1]);
  expect_bad("[0\0]", 4, "f.json:1:3: not a JSON text: byte 0x00 here; UTF-8 text is needed");
}

static void nesting_has_a_limit(void **state) {
  (void)state;
  char text[2 * (PL_JSON_MAX_DEPTH + 1) + 1];
  for (int depth = PL_JSON_MAX_DEPTH; depth <= PL_JSON_MAX_DEPTH + 1; depth++) {
    memset(text, '[', (size_t)depth);
    memset(text + depth, ']', (size_t)depth);
    text[2 * depth] = '\0';
    if (depth <= PL_JSON_MAX_DEPTH)
      pl_json_release(parse(text));
    else
      expect_bad(text, strlen(text), "f.json:1:65: nested deeper than 64 levels; at most 64 are allowed");
  }
  char *brackets = NULL; /* brackets in a string are no nesting */
  pl_err e = {0};
  assert_int_equal(pl_alloc(1003, 1, "text", &brackets, &e), PL_OK);
  memset(brackets, '[', 1002);
  brackets[0] = '"';
  memcpy(brackets + 500, "\\\"", 2);
  brackets[1001] = '"';
  pl_json_release(parse(brackets));
  pl_free(brackets);
}

static void a_million_brackets_are_harmless(void **state) {
  (void)state;
  enum { MANY = 1000000 };
  char *text = NULL;
  pl_err e = {0};
  pl_json *value = NULL;
  assert_int_equal(pl_alloc(MANY, 1, "text", &text, &e), PL_OK);
  memset(text, '[', MANY);
  assert_int_equal(pl_json_parse(text, MANY, "f", &value, &e), PL_BAD);
  assert_non_null(strstr(e.text, "nested deeper"));
  pl_free(text);
}

static void files_are_checked_first(void **state) {
  (void)state;
  char folder[] = "/tmp/pl_json_test.XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/x.json", folder);
  pl_err e = {0};
  pl_json *value = NULL;
  assert_int_equal(pl_json_read(path, &value, &e), PL_BAD);
  assert_non_null(strstr(e.text, "No such file"));
  e = (pl_err){0};
  assert_int_equal(pl_json_read(folder, &value, &e), PL_BAD);
  assert_non_null(strstr(e.text, "folder"));
  e = (pl_err){0};
  assert_int_equal(pl_file_replace(path, "\xef\xbb\xbf{\"a\":[1]}", 12, &e), PL_OK);
  assert_int_equal(pl_json_read(path, &value, &e), PL_OK);
  assert_true(pl_json_int(pl_json_at(pl_json_get(value, "a"), 0)) == 1);
  pl_json_release(value);
  assert_int_equal(truncate(path, 1 << 30), 0);
  assert_int_equal(pl_json_read(path, &value, &e), PL_BAD);
  assert_non_null(strstr(e.text, "1073741824 bytes are too many"));
  unlink(path);
  rmdir(folder);
}

static void writing(void **state) {
  (void)state;
  pl_json *v = parse("{\"b\":[1,2.5,1e3,-9223372036854775808],\"a\":{\"t\":true,\"n\":null,\"s\":\"\\u0007\\n\\\"\"},"
                     "\"e\":[],\"o\":{}}");
  pl_str s = {0};
  pl_json_write_canonical(v, &s);
  assert_string_equal(pl_str_text(&s), "{\"a\":{\"n\":null,\"s\":\"\\u0007\\n\\\"\",\"t\":true},"
                                       "\"b\":[1,2.5,1000,-9223372036854775808],\"e\":[],\"o\":{}}");
  pl_json *again = parse(pl_str_text(&s));
  assert_true(pl_json_equal(v, again));
  pl_json_release(again);
  pl_str_free(&s);
  pl_json_write_pretty(v, &s);
  assert_string_equal(pl_str_text(&s),
                      "{\n  \"b\": [1, 2.5, 1000, -9223372036854775808],\n  \"a\": {\n    \"t\": true,\n"
                      "    \"n\": null,\n    \"s\": \"\\u0007\\n\\\"\"\n  },\n  \"e\": [],\n  \"o\": {}\n}\n");
  pl_str_free(&s);
  pl_json_release(v);
}

static void many_keys_are_sorted(void **state) {
  (void)state;
  pl_json *object = pl_json_new_object();
  for (int i = 199; i >= 0; i--) {
    char key[16];
    snprintf(key, sizeof key, "k%03d", i);
    assert_true(pl_json_set(object, key, pl_json_new_int(i)));
  }
  pl_str s = {0};
  pl_json_write_canonical(object, &s);
  assert_memory_equal(pl_str_text(&s), "{\"k000\":0,\"k001\":1,", 19);
  assert_string_equal(pl_str_text(&s) + s.length - 11, "\"k199\":199}");
  pl_str_free(&s);
  pl_json_release(object);
}

static void numbers_go_both_ways(void **state) {
  (void)state;
  static const double values[] = {0, -0.0, 1, 0.1, 1e-300, 0x1p53, 1e300, INFINITY, -INFINITY, NAN};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    pl_json *v = pl_json_new_number(values[i]);
    pl_str s = {0};
    pl_json_write_canonical(v, &s);
    pl_json *back = parse(pl_str_text(&s));
    double x = pl_json_number(back);
    assert_true(isnan(values[i]) ? isnan(x) : memcmp(&x, &values[i], sizeof x) == 0);
    pl_str_free(&s);
    pl_json_release(v);
    pl_json_release(back);
  }
}

static void equality_is_by_value(void **state) {
  (void)state;
  static const char *const same[][2] = {
      {"1", "1.0"}, {"{\"a\":1,\"b\":[2]}", "{\"b\":[2e0],\"a\":1}"}, {"null", "null"}};
  static const char *const other[][2] = {{"1", "\"1\""}, {"[1,2]", "[2,1]"}, {"{\"a\":1}", "{\"b\":1}"},
                                         {"true", "1"},  {"[1]", "[1,1]"},   {"9007199254740993", "9007199254740992"}};
  for (size_t i = 0; i < 9; i++) {
    const char *const *pair = i < 3 ? same[i] : other[i - 3];
    pl_json *a = parse(pair[0]), *b = parse(pair[1]);
    assert_int_equal(pl_json_equal(a, b), i < 3);
    assert_int_equal(pl_json_equal(b, a), i < 3);
    pl_json_release(a);
    pl_json_release(b);
  }
}

static void building(void **state) {
  (void)state;
  pl_json *o = pl_json_new_object();
  assert_true(pl_json_set_path(o, "a.b.c", pl_json_new_int(1)) && pl_json_set_path(o, "a.d", pl_json_new_bool(true)));
  assert_false(pl_json_set_path(o, "a.d.e", pl_json_new_int(1))); /* a.d is no object */
  assert_false(pl_json_set(o, "x", NULL));
  assert_false(pl_json_append(NULL, pl_json_new_int(1)));
  assert_true(pl_json_set(o, "bad utf-8", pl_json_new_string("x\xff\xc3\xa9")));
  pl_json *copy = pl_json_copy(o);
  assert_true(pl_json_set_path(o, "a.d", pl_json_new_null()));
  pl_str s = {0};
  pl_json_write_canonical(copy, &s);
  assert_string_equal(pl_str_text(&s), "{\"a\":{\"b\":{\"c\":1},\"d\":true},\"bad utf-8\":\"x\xef\xbf\xbd\xc3\xa9\"}");
  assert_true(pl_json_get_number(copy, "none", 2) == 2);
  assert_string_equal(pl_json_get_string(copy, "a", "fallback"), "fallback");
  pl_str_free(&s);
  pl_json_release(o);
  pl_json_release(copy);
}

static void looking_at_the_wrong_kind_is_harmless(void **state) {
  (void)state;
  pl_json *v = parse("[\"x\"]");
  assert_null(pl_json_get(v, "a"));
  assert_null(pl_json_at(v, 1));
  assert_null(pl_json_string(v));
  assert_null(pl_json_iter(v));
  assert_true(pl_json_int(v) == 0 && !pl_json_bool(v) && pl_json_number(v) == 0);
  assert_int_equal(pl_json_size(pl_json_at(v, 0)), 0);
  pl_json_release(v);
}

static void shown_values_are_short(void **state) {
  (void)state;
  char out[80];
  pl_json *v = parse("\"1234567890123456789012345678901234567890123456789012345678\xc3\xa9\xc3\xa9\"");
  pl_json_show(v, out);
  assert_string_equal(out, "\"1234567890123456789012345678901234567890123456789012345678...");
  pl_json_release(v);
  v = parse("{\"b\": 1, \"a\": [true]}");
  assert_string_equal(pl_json_show(v, out), "{\"a\":[true],\"b\":1}");
  pl_json_release(v);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bad_texts_say_where),
      cmocka_unit_test(nesting_has_a_limit),
      cmocka_unit_test(a_million_brackets_are_harmless),
      cmocka_unit_test(files_are_checked_first),
      cmocka_unit_test(writing),
      cmocka_unit_test(many_keys_are_sorted),
      cmocka_unit_test(numbers_go_both_ways),
      cmocka_unit_test(equality_is_by_value),
      cmocka_unit_test(building),
      cmocka_unit_test(looking_at_the_wrong_kind_is_harmless),
      cmocka_unit_test(shown_values_are_short),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
