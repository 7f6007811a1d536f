#include "sweep_support.h"

#include <math.h>
#include <stdio.h>

enum { DRAWS = 200 };

typedef struct draws {
  double values[4][DRAWS]; /* of the first axes */
  size_t count;
} draws;

/* The axis values of all runs; texts count as their first byte. */
static draws draw(const char *text) {
  fixture f;
  draws d = {0};
  const pl_sweep_run *run = NULL;
  pl_status st = load(&f, text, NULL, 0);
  assert_string_equal(f.e.text, "");
  assert_int_equal(st, PL_OK);
  while (true) {
    st = pl_sweep_next(f.sweep, &run, &f.e);
    assert_string_equal(f.e.text, "");
    assert_int_equal(st, PL_OK);
    if (run == NULL) break;
    for (size_t a = 0; a < pl_sweep_axis_count(f.sweep) && a < 4; a++) {
      const char *word = pl_json_string(run->axis_values[a]);
      d.values[a][d.count] = word != NULL ? word[0] : pl_json_number(run->axis_values[a]);
    }
    d.count++;
  }
  unload(&f);
  return d;
}

static double correlation(const double *a, const double *b, size_t n) {
  double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < n; i++) {
    ma += a[i] / (double)n;
    mb += b[i] / (double)n;
  }
  for (size_t i = 0; i < n; i++) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  return ab / sqrt(aa * bb);
}

#define RANDOM(n, seed)                                                                                                \
  "{" BASE ",'random':{'n':" n ",'seed':" seed ",'optimizer.lr':['uniform',0,1],'optimizer.momentum':['uniform',0,1]," \
  "'delay':['choice',[1,2,3]],'train.weight_decay':['log_uniform',1e-4,1]}}"

static void axes_are_independent(void **state) {
  (void)state;
  draws d = draw(RANDOM("200", "7"));
  assert_int_equal(d.count, 200);
  for (size_t a = 0; a < 4; a++)
    for (size_t b = 0; b < a; b++) assert_true(fabs(correlation(d.values[a], d.values[b], 200)) < 0.2);
  assert_true(correlation(d.values[0], d.values[0], 200) > 0.999);
}

static void fewer_draws_are_the_first_of_more(void **state) {
  (void)state;
  draws all = draw(RANDOM("200", "7")), some = draw(RANDOM("100", "7")), other = draw(RANDOM("100", "8"));
  size_t same = 0;
  assert_int_equal(some.count, 100);
  for (size_t a = 0; a < 4; a++)
    for (size_t i = 0; i < 100; i++) assert_true(all.values[a][i] == some.values[a][i]);
  for (size_t i = 0; i < 100; i++) same += other.values[0][i] == some.values[0][i];
  assert_int_equal(same, 0);
}

static void an_axis_does_not_depend_on_the_others(void **state) {
  (void)state;
  draws both = draw(RANDOM("50", "7"));
  draws alone = draw("{" BASE ",'random':{'n':50,'seed':7,'optimizer.momentum':{'uniform':[0,1]}}}");
  for (size_t i = 0; i < 50; i++) assert_true(both.values[1][i] == alone.values[0][i]);
}

static void values_stay_in_bounds_and_fill_them(void **state) {
  (void)state;
  draws d = draw("{" BASE ",'random':{'n':200,'optimizer.lr':['log_uniform',0.001,0.1],"
                 "'train.clip':['uniform',2,4],'delay':['int_uniform',3,5],'train.weight_decay':['normal',50,2]}}");
  size_t low = 0, counts[3] = {0};
  double mean = 0, square = 0;
  for (size_t i = 0; i < 200; i++) {
    assert_true(d.values[0][i] >= 0.001 && d.values[0][i] <= 0.1);
    assert_true(d.values[1][i] >= 2 && d.values[1][i] <= 4);
    low += d.values[0][i] < 0.01;
    counts[(int)d.values[2][i] - 3]++;
    mean += d.values[3][i] / 200;
    square += (d.values[3][i] - 50) * (d.values[3][i] - 50) / 200;
  }
  assert_true(low > 70 && low < 130); /* half lies below the geometric mean: 100 +- 4 sd of 7 */
  for (size_t k = 0; k < 3; k++) assert_true(counts[k] > 40 && counts[k] < 95); /* 67 +- 4 sd of 6.7 */
  assert_true(fabs(mean - 50) < 4 * 2 / sqrt(200.0));
  assert_true(fabs(square - 4) < 4 * 4 * sqrt(2.0 / 200.0));
}

/* Fixed numbers: the same list on every machine and in every version. */
static void draws_are_fixed(void **state) {
  (void)state;
  draws d = draw(RANDOM("3", "7"));
  const double expected[4][3] = {{0.702034602645, 0.402235119078, 0.885627302373},
                                 {0.380332985180, 0.753983058107, 0.496922738665},
                                 {2, 2, 2},
                                 {0.00161097237171, 0.998359970833, 0.0509015329081}};
  for (size_t a = 0; a < 4; a++)
    for (size_t i = 0; i < 3; i++) assert_true(d.values[a][i] == expected[a][i]);
}

static void choices_may_be_any_values(void **state) {
  (void)state;
  draws d = draw("{" BASE ",'random':[{'n':40,'seed':3,'optimizer':{'choice':['adamw','sgd','muon']}}],"
                 "'seeds':[0]}");
  assert_true(d.count == 3); /* all three came, the rest were merged */
  expect_labels("{'base':{'model':{'type':'mlp','layers':4},'data':'synthetic','optimizer':'sgd','train':{'steps':10},"
                "'pipeline.stages':4,'simulate_only':true},"
                "'random':{'n':5,'delay':['choice',[[3,2,1,0]]],'seeds':[4,9]}}",
                "delay=[3,2,1,0] seed=4\ndelay=[3,2,1,0] seed=9\n");
}

static void each_draw_takes_all_seeds(void **state) {
  (void)state;
  fixture f;
  assert_int_equal(
      expand(&f, "{" BASE ",'random':{'n':10,'optimizer.lr':['uniform',0,1]},'seeds':[0,1,2]}", NULL, NULL, 0), PL_OK);
  assert_int_equal(pl_sweep_upper_count(f.sweep), 30);
  assert_int_equal(pl_sweep_counted(f.sweep).runs, 30);
  unload(&f);
}

static void expect_bad(const char *members, const char *message) {
  char text[600], whole[600];
  snprintf(text, sizeof text, "{" BASE ",'random':[{%s}]}", members);
  snprintf(whole, sizeof whole, "dir/demo.json: random[0]%s", message);
  expect_error(text, whole);
}

static void bad_distributions_are_named(void **state) {
  (void)state;
  expect_bad("'optimizer.lr':['uniform',0,1]", ".n: missing; allowed: the number of draws, a whole number from 1");
  expect_bad("'n':0,'optimizer.lr':['uniform',0,1]", ".n: 0; allowed: the number of draws, a whole number from 1");
  expect_bad("'n':2.5,'optimizer.lr':['uniform',0,1]", ".n: 2.5; allowed: the number of draws, a whole number from 1");
  expect_bad("'n':2,'seed':-1,'optimizer.lr':['uniform',0,1]",
             ".seed: -1; allowed: the seed of the draws, a whole number from 0");
  expect_bad("'n':2", ": no keys; allowed: at least one");
  expect_bad("'n':2,'optimizer.lr':['unifrom',0,1]",
             ".optimizer.lr: distribution: unknown name \"unifrom\"; did you mean \"uniform\"?; allowed: uniform, "
             "log_uniform, int_uniform, normal, choice");
  expect_bad("'n':2,'optimizer.lr':['uniform',1,0]",
             ".optimizer.lr: [\"uniform\",1,0] does not fit; allowed: [\"uniform\", low, high] with low < high");
  expect_bad("'n':2,'optimizer.lr':['uniform',1]",
             ".optimizer.lr: [\"uniform\",1] does not fit; allowed: [\"uniform\", low, high] with low < high");
  expect_bad(
      "'n':2,'optimizer.lr':['log_uniform',-4,-1]",
      ".optimizer.lr: [\"log_uniform\",-4,-1] does not fit; allowed: [\"log_uniform\", low, high] with 0 < low < "
      "high");
  expect_bad("'n':2,'delay':['int_uniform',0.5,3]", ".delay: [\"int_uniform\",0.5,3] does not fit; allowed: "
                                                    "[\"int_uniform\", low, high] with whole numbers low <= high");
  expect_bad("'n':2,'delay':['choice',1,2]",
             ".delay: [\"choice\",1,2] does not fit; allowed: [\"choice\", [value, ...]] with at least one value");
  expect_bad("'n':2,'delay':{'choice':[]}",
             ".delay: {\"choice\":[]} does not fit; allowed: [\"choice\", [value, ...]] with at least one value");
  expect_bad("'n':2,'delay':3", ".delay: 3 is no distribution; allowed: a list that starts with a name, as in "
                                "[\"uniform\", low, high] with low < high");
}

static void a_bad_draw_names_its_index(void **state) {
  (void)state;
  fixture f;
  assert_int_equal(
      expand(&f, "{" BASE ",'random':{'n':50,'seed':1,'optimizer.momentum':['uniform',0.5,1.5]}}", NULL, NULL, 0),
      PL_BAD);
  assert_non_null(strstr(f.e.text, "dir/demo.json: random.optimizer.momentum["));
  unload(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(axes_are_independent),
      cmocka_unit_test(fewer_draws_are_the_first_of_more),
      cmocka_unit_test(an_axis_does_not_depend_on_the_others),
      cmocka_unit_test(values_stay_in_bounds_and_fill_them),
      cmocka_unit_test(draws_are_fixed),
      cmocka_unit_test(choices_may_be_any_values),
      cmocka_unit_test(each_draw_takes_all_seeds),
      cmocka_unit_test(bad_distributions_are_named),
      cmocka_unit_test(a_bad_draw_names_its_index),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
