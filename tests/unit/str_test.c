#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/rng.h"
#include "core/base/str.h"

static void append_grows_and_terminates(void **state) {
  (void)state;
  pl_str s = {0};
  assert_string_equal(pl_str_text(&s), "");
  for (int i = 0; i < 1000; i++) pl_str_printf(&s, "%d,", i);
  assert_int_equal(s.length, 10 * 2 + 90 * 3 + 900 * 4);
  assert_int_equal(strlen(s.text), s.length);
  assert_memory_equal(s.text, "0,1,2,", 6);
  assert_string_equal(s.text + s.length - 4, "999,");
  pl_err e = {0};
  assert_int_equal(pl_str_check(&s, &e), PL_OK);
  pl_str_free(&s);
  assert_null(s.text);
}

static void append_after_failure_does_nothing(void **state) {
  (void)state;
  pl_str s = {.failed = true};
  pl_err e = {0};
  pl_str_append(&s, "text");
  pl_str_printf(&s, "%d", 1);
  assert_int_equal(s.length, 0);
  assert_int_equal(pl_str_check(&s, &e), PL_FAIL);
  assert_non_null(strstr(e.text, "memory"));
}

static void numbers_have_their_shortest_text(void **state) {
  (void)state;
  static const struct {
    double value;
    const char *text;
  } cases[] = {{0.008, "0.008"},
               {1e-8, "1e-08"},
               {1200, "1200"},
               {0.1 + 0.2, "0.30000000000000004"},
               {0x1p53, "9007199254740992"},
               {-3, "-3"},
               {1e22, "1e+22"},
               {5e-324, "5e-324"},
               {DBL_MAX, "1.7976931348623157e+308"},
               {0, "0"},
               {-0.0, "-0.0"},
               {INFINITY, "Infinity"},
               {-INFINITY, "-Infinity"},
               {NAN, "NaN"}};
  char out[32];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(pl_format_number(cases[i].value, out), cases[i].text);
}

static void numbers_round_trip(void **state) {
  (void)state;
  pl_rng r = pl_rng_at(7, PL_STREAM_DATA, 1, 0);
  char out[32];
  for (int i = 0; i < 20000; i++) {
    uint64_t bits = pl_rng_u64(&r);
    double value, back;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) continue;
    pl_format_number(value, out);
    assert_true(strlen(out) < sizeof out);
    assert_true(pl_parse_real(out, &back));
    assert_memory_equal(&back, &value, sizeof value);
  }
}

static void nearest_finds_typing_slips(void **state) {
  (void)state;
  const char *const names[] = {"lr", "beta1", "beta2", "weight_decay", "eps"};
  assert_int_equal(pl_nearest("wieght_decay", names, 5), 3); /* swapped neighbours */
  assert_int_equal(pl_nearest("beta", names, 5), 1);         /* a tie goes to the first */
  assert_int_equal(pl_nearest("lrr", names, 5), 0);
  assert_int_equal(pl_nearest("momentum", names, 5), SIZE_MAX);
  assert_int_equal(pl_nearest("", names, 0), SIZE_MAX);
  char longest[200];
  memset(longest, 'a', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  assert_int_equal(pl_nearest(longest, names, 5), SIZE_MAX);
}

static void parses_take_whole_strings(void **state) {
  (void)state;
  int64_t n = 0;
  double x = 0;
  assert_true(pl_parse_int("-9223372036854775808", &n));
  assert_true(n == INT64_MIN);
  static const char *const no_ints[] = {"", " 1", "1 ", "1.0", "9223372036854775808", "0x10", "-"};
  for (size_t i = 0; i < sizeof no_ints / sizeof *no_ints; i++) assert_false(pl_parse_int(no_ints[i], &n));
  assert_true(pl_parse_real("4e-3", &x));
  assert_true(x == 4e-3);
  static const char *const no_reals[] = {"", " 1", "1x", "nan", "inf", "1e999", "0x1p3", "."};
  for (size_t i = 0; i < sizeof no_reals / sizeof *no_reals; i++) assert_false(pl_parse_real(no_reals[i], &x));
}

static void errors_keep_the_first_sentence(void **state) {
  (void)state;
  pl_err e = {0};
  assert_int_equal(pl_fail(&e, PL_BAD, "line\n%d", 2), PL_BAD);
  assert_int_equal(pl_fail(&e, PL_FAIL, "later"), PL_FAIL);
  assert_int_equal(e.status, PL_BAD);
  assert_string_equal(e.text, "line 2");
  assert_int_equal(pl_err_prefix(&e, "%s", "file"), PL_BAD);
  assert_string_equal(e.text, "file: line 2");
  char much[2 * PL_ERR_TEXT];
  memset(much, 'm', sizeof much - 1);
  much[sizeof much - 1] = '\0';
  pl_err_prefix(&e, "%s", much);
  assert_int_equal(strlen(e.text), PL_ERR_TEXT - 1);
}

static void memory_is_aligned_zeroed_and_checked(void **state) {
  (void)state;
  double *x = NULL;
  pl_err e = {0};
  assert_int_equal(pl_alloc(3, sizeof *x, "x", &x, &e), PL_OK);
  assert_int_equal((uintptr_t)x % PL_ALIGN, 0);
  for (int i = 0; i < 3; i++) {
    assert_true(x[i] == 0);
    x[i] = i + 1;
  }
  assert_int_equal(pl_grow(3, 100, sizeof *x, "x", &x, &e), PL_OK);
  for (int i = 0; i < 100; i++) assert_true(x[i] == (i < 3 ? i + 1 : 0));
  double *kept = x;
  assert_int_equal(pl_grow(100, SIZE_MAX / 4, sizeof *x, "much", &x, &e), PL_FAIL);
  assert_ptr_equal(x, kept);
  assert_non_null(strstr(e.text, "much"));
  pl_free(x);
  e = (pl_err){0};
  assert_int_equal(pl_alloc(SIZE_MAX / 16, 8, "half of everything", &x, &e), PL_FAIL);
  assert_non_null(strstr(e.text, "half of everything"));
}

static void hashes_have_known_digits(void **state) {
  (void)state;
  char hex[PL_ID_SIZE];
  pl_hash_hex(pl_hash("", 0), hex); /* XXH3_64bits of nothing, from xxHash's documentation */
  assert_string_equal(hex, "2d06800538d394c2");
  pl_hash_hex(0xabc, hex);
  assert_string_equal(hex, "0000000000000abc");
  assert_true(pl_hash_join(1, 2) != pl_hash_join(2, 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(append_grows_and_terminates),      cmocka_unit_test(append_after_failure_does_nothing),
      cmocka_unit_test(numbers_have_their_shortest_text), cmocka_unit_test(numbers_round_trip),
      cmocka_unit_test(nearest_finds_typing_slips),       cmocka_unit_test(parses_take_whole_strings),
      cmocka_unit_test(errors_keep_the_first_sentence),   cmocka_unit_test(memory_is_aligned_zeroed_and_checked),
      cmocka_unit_test(hashes_have_known_digits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
