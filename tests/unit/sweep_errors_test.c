#include "sweep_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void top_level_keys_are_checked(void **state) {
  (void)state;
  expect_error(
      "{'gird':{'delay':[0]}," BASE "}",
      "dir/demo.json: top level: unknown key \"gird\"; did you mean \"grid\"?; allowed: name, notes, base, grid, "
      "zip, random, runs, exclude, only_if, seeds, slurm, set");
  expect_error("{" BASE ",'optimizer':'sgd'}",
               "dir/demo.json: \"optimizer\" at the top of a sweep file; allowed: inside \"base\"");
  expect_error("{" BASE ",'train.steps':4}",
               "dir/demo.json: \"train.steps\" at the top of a sweep file; allowed: inside \"base\"");
  expect_error("{'base':[]}", "dir/demo.json: base: []; allowed: an object");
  expect_error("{" BASE ",'slurm':'gpu'}", "dir/demo.json: slurm: \"gpu\"; allowed: an object");
  expect_error("{" BASE ",'notes':3}", "dir/demo.json: notes: 3; allowed: a string");
  expect_labels("{" BASE ",'name':null,'notes':null}", "\n"); /* as config.json of a run has them */
  expect_error("[1]", "dir/demo.json: the file holds [1]; allowed: an object, a sweep or a run");
  expect_error("null", "dir/demo.json: the file holds null; allowed: an object, a sweep or a run");
}

static void names_are_safe_as_folders(void **state) {
  (void)state;
  const char *bad[] = {"", ".", "..", "a/b", "a\\u0007b", "a\\nb", "a\\u007fb"};
  char text[300], hundred[102];
  fixture f;
  memset(hundred, 'x', 101);
  hundred[101] = '\0';
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    snprintf(text, sizeof text, "{" BASE ",'name':'%s'}", bad[i]);
    assert_int_equal(load(&f, text, NULL, 0), PL_BAD);
    assert_non_null(strstr(f.e.text, "dir/demo.json: name: \""));
  }
  snprintf(text, sizeof text, "{" BASE ",'name':'%s'}", hundred);
  assert_int_equal(load(&f, text, NULL, 0), PL_BAD);
  hundred[100] = '\0';
  snprintf(text, sizeof text, "{" BASE ",'name':'%s'}", hundred);
  assert_int_equal(load(&f, text, NULL, 0), PL_OK);
  unload(&f);
}

static void axes_are_lists_or_ranges(void **state) {
  (void)state;
  expect_error("{" BASE ",'grid':[{'delay':[0],'optimizer.lr':[]}]}",
               "dir/demo.json: grid[0].optimizer.lr: the list is empty; allowed: at least one value");
  expect_error(
      "{" BASE ",'grid':{'optimizer.lr':0.1}}",
      "dir/demo.json: grid.optimizer.lr: 0.1 is one value; allowed: a list of values, as in [0.1], or a range");
  expect_error(
      "{" BASE ",'grid':{'optimizer.lr':{'range':[1]}}}",
      "dir/demo.json: grid.optimizer.lr: {\"range\":[1]} is no list and no range; allowed: {\"range\": [first, "
      "last]}, {\"range\": [first, last, step]}, {\"range\": [first, last], \"n\": N}, {\"log_range\": [first, "
      "last], \"n\": N}");
  expect_error(
      "{" BASE ",'grid':{'optimizer.lr':{'range':[1,0]}}}",
      "dir/demo.json: grid.optimizer.lr: the step 1 does not lead from 1 to 0; allowed: a step in that direction");
  expect_error(
      "{" BASE ",'grid':{'optimizer.lr':{'range':[0,1,0]}}}",
      "dir/demo.json: grid.optimizer.lr: the step 0 does not lead from 0 to 1; allowed: a step in that direction");
  expect_error("{" BASE ",'grid':{'optimizer.lr':{'range':[0,1,1e-9]}}}",
               "dir/demo.json: grid.optimizer.lr: the range has more than 10000000 values; allowed: at most that many");
  expect_error("{" BASE ",'grid':{'optimizer.lr':{'range':[-1e308,1e308],'n':3}}}",
               "dir/demo.json: grid.optimizer.lr: {\"n\":3,\"range\":[-1e+308,1e+308]} is too wide a range");
  expect_error("{" BASE ",'grid':{'optimizer.lr':{'log_range':[0,1],'n':3}}}",
               "dir/demo.json: grid.optimizer.lr: log_range from 0 to 1; allowed: ends above 0");
  expect_error("{" BASE ",'grid':{'optimizer.lr':{'range':[0,1],'n':1}}}",
               "dir/demo.json: grid.optimizer.lr: \"n\" is 1; allowed: a whole number from 2 to 10000000");
}

static void every_shape_but_a_range_is_refused(void **state) {
  (void)state;
  const char *bad[] = {"{}",
                       "{'range':[0,1],'n':2,'m':1}",
                       "{'range':[0,1],'log_range':[1,2],'n':2}",
                       "{'log_range':[1,2]}",
                       "{'log_range':[1,2,3],'n':2}",
                       "{'range':[0,1,0.5],'n':2}",
                       "{'range':['0','1']}",
                       "{'range':3}",
                       "{'n':3}"};
  char text[300];
  fixture f;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    snprintf(text, sizeof text, "{" BASE ",'grid':{'optimizer.lr':%s}}", bad[i]);
    assert_int_equal(load(&f, text, NULL, 0), PL_BAD);
    assert_non_null(strstr(f.e.text, "is no list and no range; allowed: "));
  }
}

static void blocks_are_objects(void **state) {
  (void)state;
  expect_error("{" BASE ",'grid':[]}",
               "dir/demo.json: grid: the list is empty; allowed: at least one object, or leaving the key out");
  expect_error("{" BASE ",'grid':{}}", "dir/demo.json: grid: {}; allowed: at least one axis");
  expect_error("{" BASE ",'grid':[{'delay':[0]},3]}", "dir/demo.json: grid[1]: 3; allowed: an object of axes");
  expect_error("{" BASE ",'runs':[null]}", "dir/demo.json: runs[0]: null; allowed: an object of settings");
  expect_error("{" BASE ",'grid':{'base':3}}", "dir/demo.json: grid.base: 3; allowed: an object of settings");
  expect_error("{" BASE ",'grid':{'zip':[3]}}", "dir/demo.json: grid.zip: 3; allowed: an object of equally long lists");
}

static void a_key_stands_once_and_is_short(void **state) {
  (void)state;
  expect_error("{'base':{'optimizer':{'type':'sgd','lr':1},'optimizer.lr':2}}",
               "dir/demo.json: base.optimizer.lr: given twice, with dots and inside optimizer; allowed: once");
  expect_error("{" BASE ",'runs':[{'train.lr_schedule.min':0,'train':{'lr_schedule':{'type':'cosine','min':1}}}]}",
               "dir/demo.json: runs[0].train.lr_schedule.min: given twice, with dots and inside train; allowed: once");
  expect_error("{'model':{'type':'mlp'},'model.type':'mlp'}",
               "dir/demo.json: model.type: given twice, with dots and inside model; allowed: once");
  pl_str text = {0};
  pl_str_append(&text, "{" BASE ",'grid':{'");
  for (int i = 0; i < 5000; i++) pl_str_append(&text, "k");
  pl_str_append(&text, "':[1]}}");
  fixture f;
  assert_int_equal(load(&f, text.text, NULL, 0), PL_BAD);
  assert_non_null(strstr(f.e.text, ": a key of 5000 bytes that starts with \"kkk"));
  assert_non_null(strstr(f.e.text, "; allowed: at most 200"));
  pl_str_free(&text);
  unload(&f);
}

static void zipped_lists_are_equally_long(void **state) {
  (void)state;
  expect_error("{" BASE ",'zip':[{'delay':[0,1,2],'optimizer.lr':[1,2]}]}",
               "dir/demo.json: zip[0].optimizer.lr: 2 values, but delay has 3; allowed: lists of equal length");
  expect_error("{" BASE ",'grid':{'zip':{'delay':[0],'optimizer.lr':[1,2]}}}",
               "dir/demo.json: grid.zip.optimizer.lr: 2 values, but delay has 1; allowed: lists of equal length");
  expect_error("{" BASE ",'grid':{'delay':[0],'zip':{'delay':[1]}}}",
               "dir/demo.json: grid.zip.delay: the key is already an axis of this block; allowed: once");
  expect_error("{" BASE ",'zip':{}}", "dir/demo.json: zip: no keys; allowed: at least one");
}

static void seeds_are_whole_numbers(void **state) {
  (void)state;
  expect_error("{" BASE ",'seeds':2.5}",
               "dir/demo.json: seeds: 2.5 is no list; allowed: a list of seeds, as in [0, 1, 2], "
               "or {\"range\": [0, 2]}");
  expect_error("{" BASE ",'seeds':[0,2.5]}", "dir/demo.json: seeds: element 1 is 2.5; allowed: whole numbers from 0");
  expect_error("{" BASE ",'seeds':[-1]}", "dir/demo.json: seeds: element 0 is -1; allowed: whole numbers from 0");
  expect_error("{" BASE ",'grid':[{'seeds':['a']}]}",
               "dir/demo.json: grid[0].seeds: element 0 is \"a\"; allowed: whole numbers from 0");
  expect_error("{" BASE ",'seeds':[]}", "dir/demo.json: seeds: the list is empty; allowed: at least one value");
  expect_error("{" BASE ",'grid':{'seed':[1],'seeds':[2]}}",
               "dir/demo.json: grid: both \"seed\" and \"seeds\"; allowed: one of them");
  expect_labels("{" BASE ",'seeds':[1e3,2.0]}", "seed=1000\nseed=2\n");
}

/* The start of the message: the rest lists every key of a table. */
static void expect_start(const char *text, const char *start) {
  fixture f;
  assert_int_equal(expand(&f, text, NULL, NULL, 0), PL_BAD);
  f.e.text[strlen(start)] = '\0';
  assert_string_equal(f.e.text, start);
  unload(&f);
}

static void a_bad_combination_names_where_it_was_written(void **state) {
  (void)state;
  expect_start("{'base':{'optimizr':'sgd','model':'quadratic','train.steps':4}}",
               "dir/demo.json: base.optimizr: unknown key");
  expect_start("{'optimizr':'sgd','model':'quadratic','train.steps':4}", "dir/demo.json: optimizr: unknown key");
  expect_start("{" BASE ",'grid':[{'delay':[0]},{'optimizer.lr':[0.1,0.2,'1e-3']}]}",
               "dir/demo.json: grid[1].optimizer.lr[2]: must be a number");
  expect_start("{" BASE ",'grid':{'delay':[0,1],'optimizer':['sgd','adamw'],'optimizer.momentum':[0.5]}}",
               "dir/demo.json: grid.optimizer.momentum[0]: unknown key \"momentum\" (of optimizer adamw)");
  expect_start("{" BASE ",'grid':{'zip':{'delay':[0,-1],'optimizer.lr':[1,2]}}}",
               "dir/demo.json: grid.zip.delay[1]: -1");
  expect_start("{" BASE ",'zip':{'delay':[0,-1],'optimizer.lr':[1,2]}}", "dir/demo.json: zip.delay[1]: -1");
  expect_start("{" BASE ",'grid':{'delay':[0],'base':{'train.steps':0}}}", "dir/demo.json: grid.base.train.steps: 0");
  expect_start("{" BASE ",'runs':[{},{'train':{'steps':0}}]}", "dir/demo.json: runs[1].train.steps: 0");
  expect_start("{" BASE ",'grid':{'seed':[0,-3]}}", "dir/demo.json: grid.seed[1]: -3");
  expect_start("{" BASE ",'set':{'delay':[0,-1]}}", "dir/demo.json: --set delay[1]: -1");
}

static void a_relation_names_the_combination(void **state) {
  (void)state;
  const char *text = "{'base':{'data':'synthetic','optimizer':'sgd','train.steps':4},"
                     "'grid':{'model':['transformer'],'model.d_model':[32,33],'delay':[0,1]}}";
  expect_start(text, "dir/demo.json: model.d_model=33 delay=0: model.d_model: 33 is not a multiple of heads 2");
}

/* After a failure the sweep can still be rewound and freed. */
static void a_failure_leaves_the_sweep_usable(void **state) {
  (void)state;
  fixture f;
  const pl_sweep_run *run = NULL;
  assert_int_equal(load(&f, "{" BASE ",'grid':{'delay':[0,-1,2]}}", NULL, 0), PL_OK);
  assert_int_equal(pl_sweep_next(f.sweep, &run, &f.e), PL_OK);
  assert_int_equal(pl_sweep_next(f.sweep, &run, &f.e), PL_BAD);
  assert_null(run);
  pl_sweep_rewind(f.sweep);
  assert_int_equal(pl_sweep_next(f.sweep, &run, &f.e), PL_OK);
  assert_int_equal(run->index, 0);
  unload(&f);
}

static void files_are_read_and_named(void **state) {
  (void)state;
  char folder[] = "/tmp/pl_sweep_XXXXXX";
  fixture f = {.registries = registries()};
  pl_str path = {0};
  assert_non_null(mkdtemp(folder));
  pl_str_printf(&path, "%s/trailing.json", folder);
  FILE *file = fopen(path.text, "w");
  assert_non_null(file);
  fputs("{\"base\": {},\n \"grid\": {\"delay\": [0,]}}\n", file);
  fclose(file);
  assert_int_equal(pl_sweep_load(&f.registries, path.text, (pl_sets){0}, &f.sweep, &f.e), PL_BAD);
  assert_non_null(strstr(f.e.text, "/trailing.json:2:"));
  unlink(path.text);
  f.e = (pl_err){0};
  assert_int_equal(pl_sweep_load(&f.registries, path.text, (pl_sets){0}, &f.sweep, &f.e), PL_BAD);
  assert_non_null(strstr(f.e.text, "/trailing.json"));
  assert_null(f.sweep);
  rmdir(folder);
  pl_str_free(&path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(top_level_keys_are_checked),
      cmocka_unit_test(names_are_safe_as_folders),
      cmocka_unit_test(axes_are_lists_or_ranges),
      cmocka_unit_test(every_shape_but_a_range_is_refused),
      cmocka_unit_test(blocks_are_objects),
      cmocka_unit_test(a_key_stands_once_and_is_short),
      cmocka_unit_test(zipped_lists_are_equally_long),
      cmocka_unit_test(seeds_are_whole_numbers),
      cmocka_unit_test(a_bad_combination_names_where_it_was_written),
      cmocka_unit_test(a_relation_names_the_combination),
      cmocka_unit_test(a_failure_leaves_the_sweep_usable),
      cmocka_unit_test(files_are_read_and_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
