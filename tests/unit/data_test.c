/* Datasets: splits that do not overlap, windows that depend on (seed, step, index) only, a language of known entropy.
 */
#include "tests/unit/data_files.h"

#include <sys/stat.h>

#include "models/data/parts/language.h"
#include "models/data/parts/windows.h"

enum { CONTEXT = 8, WINDOW = CONTEXT + 1 };

/* Where a window of the test text comes from; SIZE_MAX when nowhere. */
static size_t find_in_text(const int32_t *window, size_t length) {
  for (size_t start = 0; start + WINDOW <= length; start++) {
    size_t i = 0;
    while (i < WINDOW && window[i] == text_byte(start + i)) i++;
    if (i == WINDOW) return start;
  }
  return SIZE_MAX;
}

/* Blocks of 20 bytes, every fifth from block 2 on is validation: of 230 bytes, blocks 2 and 7. */
static const char split_json[] = "{'train': 'a.txt', 'val_block': 20, 'val_fraction': 0.2, 'val_index': 2}";

static void check_split_reconstructs_the_text(void **state) {
  folder *f = *state;
  opened o;
  int32_t w[WINDOW];
  write_text_file(f, "a.txt", 0, 230);
  /* 40 bytes hold 32 positions; 4 windows are 32 tokens. */
  must_open(f, &pl_dataset_bytes, split_json, CONTEXT, 32, &o);
  assert_int_equal(o.type->val_windows(o.set), 4);
  unsigned char val[40];
  for (size_t i = 0; i < 20; i++) {
    val[i] = text_byte(40 + i);
    val[20 + i] = text_byte(140 + i);
  }
  for (size_t i = 0; i < 4; i++) {
    o.type->val_window(o.set, i, w);
    for (size_t j = 0; j < WINDOW; j++) assert_int_equal(w[j], val[pl_window_spaced(32, 4, i) + j]);
  }
  unsigned char train[190];
  size_t n = 0;
  for (size_t i = 0; i < 230; i++)
    if (i / 20 % 5 != 2) train[n++] = text_byte(i);
  assert_int_equal(n, 190);
  bool seen[182] = {false};
  for (size_t draw = 0; draw < 4000; draw++) {
    o.type->train_window(o.set, 1, (int64_t)draw, 0, w);
    size_t at = 0;
    for (size_t j = 0; at < 182; at++) {
      for (j = 0; j < WINDOW && w[j] == train[at + j];) j++;
      if (j == WINDOW) break;
    }
    assert_true(at < 182);
    seen[at] = true;
  }
  /* Each of 182 offsets is missed by 4000 draws with probability e^-22. */
  for (size_t i = 0; i < 182; i++) assert_true(seen[i]);
  close_opened(&o);
}

static void check_val_files_replace_the_split(void **state) {
  folder *f = *state;
  opened o;
  int32_t w[WINDOW];
  write_text_file(f, "a.txt", 0, 300);
  write_text_file(f, "v.txt", 1000, 129);
  must_open(f, &pl_dataset_bytes, "{'train': 'a.txt', 'val': ['v.txt']}", CONTEXT, 128, &o);
  assert_int_equal(o.type->vocab(o.set), 256);
  assert_true(isnan(o.type->loss_floor(o.set)));
  for (size_t i = 0; i < 16; i++) {
    o.type->val_window(o.set, i, w);
    for (size_t j = 0; j < WINDOW; j++) assert_int_equal(w[j], text_byte(1000 + CONTEXT * i + j));
  }
  size_t low = SIZE_MAX, high = 0;
  for (int64_t step = 0; step < 3000; step++) {
    o.type->train_window(o.set, 7, step, 3, w);
    size_t at = find_in_text(w, 300);
    assert_true(at != SIZE_MAX);
    low = at < low ? at : low;
    high = at > high ? at : high;
  }
  assert_int_equal(low, 0);
  assert_int_equal(high, 300 - WINDOW);
  close_opened(&o);
}

static void check_patterns_are_sorted_and_relative(void **state) {
  folder *f = *state;
  opened pattern, listed, swapped;
  write_text_file(f, "part2.txt", 50, 60);
  write_text_file(f, "part1.txt", 0, 50);
  write_text_file(f, "part10.txt", 500, 40);
  write_text_file(f, "v.txt", 1000, 100);
  must_open(f, &pl_dataset_bytes, "{'train': 'part*.txt', 'val': 'v.txt'}", CONTEXT, 64, &pattern);
  must_open(f, &pl_dataset_bytes, "{'train': ['part1.txt', 'part10.txt', 'part2.txt'], 'val': 'v.txt'}", CONTEXT, 64,
            &listed);
  must_open(f, &pl_dataset_bytes, "{'train': ['part2.txt', 'part10.txt', 'part1.txt'], 'val': 'v.txt'}", CONTEXT, 64,
            &swapped);
  uint64_t (*print)(const pl_dataset *) = pl_dataset_bytes.fingerprint;
  assert_true(print(pattern.set) == print(listed.set));
  assert_true(print(pattern.set) != print(swapped.set));
  close_opened(&pattern);
  close_opened(&listed);
  close_opened(&swapped);
  char absolute[300];
  snprintf(absolute, sizeof absolute, "{'train': '%s/part[1]*.txt', 'val': '%s/v.txt'}", f->path, f->path);
  must_open(f, &pl_dataset_bytes, absolute, CONTEXT, 64, &listed);
  close_opened(&listed);
}

static void check_bad_text(void **state) {
  folder *f = *state;
  const pl_dataset_type *t = &pl_dataset_bytes;
  char missing[200];
  write_text_file(f, "a.txt", 0, 5000);
  write_text_file(f, "short.txt", 0, CONTEXT);
  write_text_file(f, "v.txt", 9000, 100);
  write_text_file(f, "empty.txt", 0, 0);
  must_refuse(f, t, "{'train': 'gone.txt'}", CONTEXT, 64, in_folder(f, "gone.txt"));
  snprintf(missing, sizeof missing, "no file matches \"*.gone\" below \"%s\"", f->path);
  must_refuse(f, t, "{'train': '*.gone'}", CONTEXT, 64, missing);
  must_refuse(f, t, "{'train': '.'}", CONTEXT, 64, "no regular file");
  must_refuse(f, t, "{'train': 'a.txt', 'val': 'a.txt'}", CONTEXT, 64, "name one file twice");
  must_refuse(f, t, "{'train': ['a.txt', './a.txt']}", CONTEXT, 64, "name one file twice");
  must_refuse(f, t, "{'train': 'short.txt', 'val': 'a.txt'}", CONTEXT, 64,
              "short.txt\" has 8 bytes, less than one window of context + 1 = 9");
  must_refuse(f, t, "{'train': 'a.txt', 'val': 'short.txt'}", CONTEXT, 8, "short.txt\" has 8 bytes");
  must_refuse(f, t, "{'train': 'a.txt', 'val': 'empty.txt'}", CONTEXT, 8, "empty.txt\" has 0 bytes");
  must_refuse(f, t, "{'train': 'a.txt'}", CONTEXT, 64, "block i of 16384 bytes with i mod 50 = 7");
  must_refuse(f, t, "{'train': 'a.txt', 'val': 'v.txt'}", CONTEXT, 104, "train.val_tokens asks for 13 (104 tokens)");
  must_refuse(f, t, "{'train': 'a.txt', 'val': 'v.txt'}", CONTEXT, 7, "train.val_tokens is 7");
  must_refuse(f, t, "{'train': 'a.txt', 'val_index': 50}", CONTEXT, 64, "val_index is 50");
}

static void check_roots_with_pattern_characters(void **state) {
  folder *f = *state, odd = *f;
  opened o;
  write_text_file(f, "v.txt", 1000, 100);
  write_text_file(f, "odd[1].txt", 0, 200);
  must_open(f, &pl_dataset_bytes, "{'train': 'odd[1].txt', 'val': 'v.txt'}", CONTEXT, 64, &o);
  close_opened(&o);
  /* Read as a pattern, this root would be the folder x, which does not exist. */
  strcat(odd.path, "/[x]");
  assert_int_equal(mkdir(odd.path, 0777), 0);
  write_text_file(&odd, "a.txt", 0, 200);
  must_open(&odd, &pl_dataset_bytes, "{'train': '*.txt', 'val': '../v.txt'}", CONTEXT, 64, &o);
  close_opened(&o);
  unlink(in_folder(&odd, "a.txt"));
  assert_int_equal(rmdir(odd.path), 0);
}

static const char language_json[] = "{'vocab': 64}";

/* Every dataset with tokens. */
static void open_each(folder *f, opened each[3]) {
  write_text_file(f, "a.txt", 0, 3000);
  write_text_file(f, "v.txt", 9000, 1000);
  must_open(f, &pl_dataset_bytes, "{'train': 'a.txt', 'val': 'v.txt'}", CONTEXT, 256, &each[0]);
  must_open(f, &pl_dataset_synthetic, language_json, CONTEXT, 256, &each[1]);
  must_open(f, &pl_dataset_tokens, "{'train': 'a.txt', 'val': 'v.txt', 'vocab': 65536, 'format': 'nanogpt'}", CONTEXT,
            256, &each[2]);
}

static void check_windows_depend_on_seed_step_index_only(void **state) {
  opened each[3];
  enum { STEPS = 12, BATCH = 5 };
  int32_t first[STEPS][BATCH][WINDOW], again[WINDOW];
  open_each(*state, each);
  for (size_t s = 0; s < 3; s++) {
    const opened *o = &each[s];
    for (int64_t t = 0; t < STEPS; t++)
      for (size_t i = 0; i < BATCH; i++) o->type->train_window(o->set, 42, t, i, first[t][i]);
    for (int64_t t = STEPS - 1; t >= 0; t--)
      for (size_t i = BATCH; i-- > 0;) {
        o->type->train_window(o->set, 43, t, i, again);
        assert_memory_not_equal(again, first[t][i], sizeof again);
        o->type->train_window(o->set, 42, t, i, again);
        assert_memory_equal(again, first[t][i], sizeof again);
      }
    size_t same = 0;
    for (size_t a = 0; a < STEPS * BATCH; a++)
      for (size_t b = 0; b < a; b++)
        same += !memcmp(first[a / BATCH][a % BATCH], first[b / BATCH][b % BATCH], sizeof again);
    /* 1770 pairs of 2992 offsets (tokens: 1492): 0.6 (1.2) equal pairs expected. */
    assert_true(same <= 8);
    close_opened(&each[s]);
  }
}

static void check_validation_windows_are_spaced_evenly(void **state) {
  (void)state;
  /* The demo's: 2048 windows of 64 in 0.8 MB. */
  size_t n = 800000, positions = pl_window_positions(n, 64), windows = 0;
  pl_err e = {0};
  assert_int_equal(pl_window_count(64, 131072, &windows, &e), PL_OK);
  assert_int_equal(windows, 2048);
  assert_int_equal(pl_window_check(positions, 64, windows, &e), PL_OK);
  assert_int_equal(pl_window_spaced(positions, windows, 0), 0);
  assert_int_equal(pl_window_spaced(positions, windows, windows - 1), n - 65);
  for (size_t i = 1; i < windows; i++) {
    size_t step = pl_window_spaced(positions, windows, i) - pl_window_spaced(positions, windows, i - 1);
    assert_in_range(step, 390, 391);
  }
  assert_int_equal(pl_window_spaced(positions, 1, 0), 0);
  assert_int_equal(pl_window_check(2047 * 64 + 1, 64, 2048, &e), PL_OK);
  assert_int_equal(pl_window_check(2047 * 64, 64, 2048, &e), PL_BAD);
}

/* Nats per token of the validation windows under the true probabilities, or under those of a language of order 1. */
static double cross_entropy(const opened *o, const pl_language *l, double floor_probability) {
  int32_t w[WINDOW];
  double sum = 0;
  size_t windows = o->type->val_windows(o->set);
  for (size_t i = 0; i < windows; i++) {
    o->type->val_window(o->set, i, w);
    for (size_t j = 0; j < CONTEXT; j++) {
      double p = pl_language_probability(l, j > 0 ? w[j - 1] : 0, w[j], w[j + 1]);
      sum -= log(p > floor_probability ? p : floor_probability);
    }
  }
  return sum / (double)(windows * CONTEXT);
}

static void check_language_entropy(void **state) {
  (void)state;
  opened o;
  pl_language l, other;
  pl_err e = {0};
  must_open(NULL, &pl_dataset_synthetic, "{'vocab': 50, 'branch': 4, 'language_seed': 3}", CONTEXT, 80000, &o);
  double entropy = o.type->loss_floor(o.set);
  double h = 0, p[] = {12.0 / 25, 6.0 / 25, 4.0 / 25, 3.0 / 25};
  for (size_t j = 0; j < 4; j++) h -= p[j] * log(p[j]);
  assert_true(fabs(entropy - h) < 1e-14);
  assert_int_equal(pl_language_make(50, 4, 2, 3, &l, &e), PL_OK);
  assert_int_equal(pl_language_make(50, 4, 2, 4, &other, &e), PL_OK);
  /* The standard deviation of -log p is 0.51, so that of the mean over 80,000 tokens is 0.0018. */
  assert_true(fabs(cross_entropy(&o, &l, 1e-9) - entropy) < 5 * 0.0018);
  assert_true(cross_entropy(&o, &other, 1e-3) > entropy + 1);
  /* The order matters: the same pair of tokens continues differently after another class of predecessor. */
  size_t differ = 0;
  for (int32_t a = 0; a < 50; a++)
    for (int32_t b = 0; b < 50; b++)
      differ += pl_language_probability(&l, 0, a, b) > 0 && pl_language_probability(&l, 1, a, b) == 0;
  assert_true(differ > 100);
  pl_language_free(&l);
  pl_language_free(&other);
  close_opened(&o);
}

static void check_validation_is_independent_of_the_data_seed(void **state) {
  (void)state;
  opened a, b;
  int32_t x[WINDOW], y[WINDOW];
  must_open(NULL, &pl_dataset_synthetic, "{'language_seed': 1}", CONTEXT, 80, &a);
  must_open(NULL, &pl_dataset_synthetic, "{'language_seed': 1}", CONTEXT, 80, &b);
  for (size_t i = 0; i < 10; i++) {
    b.type->train_window(b.set, 99 + i, 5, i, y);
    a.type->val_window(a.set, i, x);
    b.type->val_window(b.set, i, y);
    assert_memory_equal(x, y, sizeof x);
  }
  assert_true(a.type->fingerprint(a.set) == b.type->fingerprint(b.set));
  close_opened(&b);
  must_open(NULL, &pl_dataset_synthetic, "{'language_seed': 2}", CONTEXT, 80, &b);
  assert_true(a.type->fingerprint(a.set) != b.type->fingerprint(b.set));
  close_opened(&a);
  close_opened(&b);
  must_refuse(NULL, &pl_dataset_synthetic, "{'vocab': 3}", CONTEXT, 80, "branch is 4, but may be at most vocab = 3");
}

static void check_none(void **state) {
  (void)state;
  assert_false(pl_dataset_none.has_tokens);
  assert_int_equal(pl_params_count(pl_dataset_none.base.params), 0);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(check_split_reconstructs_the_text),
      IN_FOLDER(check_val_files_replace_the_split),
      IN_FOLDER(check_patterns_are_sorted_and_relative),
      IN_FOLDER(check_bad_text),
      IN_FOLDER(check_roots_with_pattern_characters),
      IN_FOLDER(check_windows_depend_on_seed_step_index_only),
      cmocka_unit_test(check_validation_windows_are_spaced_evenly),
      cmocka_unit_test(check_language_entropy),
      cmocka_unit_test(check_validation_is_independent_of_the_data_seed),
      cmocka_unit_test(check_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
