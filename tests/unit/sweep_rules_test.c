#include "sweep_support.h"

#include <stdio.h>

/* What is left of optimizer x delay x correction under some rules. */
#define ARMS "'grid':{'optimizer':['sgd','adamw'],'delay':[0,1],'correction':['none','ef',['ef','lookahead']]}"

static void expect_left(const char *rules, uint64_t left) {
  fixture f;
  char text[1000];
  snprintf(text, sizeof text, "{" BASE "," ARMS ",%s}", rules);
  pl_status st = expand(&f, text, NULL, NULL, 0);
  assert_string_equal(f.e.text, "");
  assert_int_equal(st, PL_OK);
  pl_sweep_counts c = pl_sweep_counted(f.sweep);
  assert_int_equal(c.produced, 12);
  assert_int_equal(c.runs, left);
  assert_int_equal(c.excluded, 12 - left);
  unload(&f);
}

static void excluding_by_all_kinds_of_keys(void **state) {
  (void)state;
  expect_left("'exclude':[]", 12);
  expect_left("'exclude':{'delay':0}", 6);
  expect_left("'exclude':{'delay':0.0,'optimizer':'sgd'}", 9);
  expect_left("'exclude':{'delay':[0,3]}", 6);
  expect_left("'exclude':[{'delay':0,'correction':['ef','ef+lookahead']}]", 8);
  expect_left("'exclude':{'correction':'ef'}", 8);
  expect_left("'exclude':{'correction':'none'}", 8);
  expect_left("'exclude':{'correction':'lookahead'}", 12);
  expect_left("'exclude':{'correction.gamma':0.9}", 8);
  expect_left("'exclude':{'correction.gamma':0.8}", 12);
  expect_left("'exclude':{'optimizer.type':'adamw'}", 6);
  expect_left("'exclude':[{'optimizer':'sgd','delay':0},{'optimizer':'adamw','delay':1}]", 6);
  expect_left("'exclude':{'train.clip_scope':'global','optimizer':'sgd'}", 6);
  expect_left("'exclude':{'train.lr_schedule':'cosine','optimizer':'sgd'}", 6);
  expect_left("'exclude':{'train.lr_schedule':'linear'}", 12);
  expect_left("'exclude':{'model':'quadratic','pipeline.stages':1,'simulate_only':false,'delay':1}", 6);
  expect_left("'exclude':{'device':'paranoid'}", 12);
}

static void a_key_that_the_type_lacks_does_not_match(void **state) {
  (void)state;
  expect_left("'exclude':{'optimizer.momentum':[0,0.5,0.9]}", 6); /* sgd has it, adamw has not */
  expect_left("'exclude':{'optimizer.beta2':[0.95,0.99,0.999]}", 6);
}

static void only_if_keeps_what_one_rule_describes(void **state) {
  (void)state;
  expect_left("'only_if':{'delay':0}", 6);
  expect_left("'only_if':[{'delay':0,'optimizer':'sgd'},{'correction':'none'}]", 6);
  expect_left("'only_if':{'delay':0},'exclude':{'optimizer':'sgd'}", 3);
}

static void profiles_match_as_written(void **state) {
  (void)state;
#define PROFILES                                                                                                       \
  "{'base':{'model':{'type':'mlp','layers':4},'data':'synthetic','optimizer':'sgd','train':{'steps':10},"              \
  "'pipeline.stages':4,'simulate_only':true},'grid':{'delay':[1,[3,2,1,0],[1,1,1,0],'pipedream']},"
  expect_labels(PROFILES "'exclude':{'delay':[[3,2,1,0]]}}", "delay=1\ndelay=[1,1,1,0]\ndelay=pipedream\n");
  expect_labels(PROFILES "'exclude':{'delay':[1,'pipedream']}}", "delay=[3,2,1,0]\ndelay=[1,1,1,0]\n");
  expect_labels(PROFILES "'exclude':{'delay':[[3,2,1],3,0]}}",
                "delay=1\ndelay=[3,2,1,0]\ndelay=[1,1,1,0]\ndelay=pipedream\n");
}

static void excluding_comes_before_the_relations_between_sections(void **state) {
  (void)state;
#define STARTS "{" BASE ",'grid':{'train.steps':[10,100],'delay_start':[0,50]}"
  expect_error(STARTS "}", "dir/demo.json: train.steps=10 delay_start=50: delay_start: 50 is after the last update; "
                           "allowed: 0 to train.steps, 10");
  expect_labels(STARTS ",'exclude':{'train.steps':10,'delay_start':50}}",
                "train.steps=10 delay_start=0\ntrain.steps=100 delay_start=0\ntrain.steps=100 delay_start=50\n");
}

static void removing_everything_is_an_error(void **state) {
  (void)state;
  expect_error("{" BASE ",'grid':{'delay':[0,1,4]},'exclude':{'optimizer':'sgd'}}",
               "dir/demo.json: exclude removes all 3 runs; allowed: at least one run left");
  expect_error("{" BASE ",'grid':{'delay':[0,1]},'only_if':{'delay':2}}",
               "dir/demo.json: only_if removes all 2 runs; allowed: at least one run left");
  expect_error("{" BASE ",'exclude':{'delay':0}}",
               "dir/demo.json: exclude removes the only run; allowed: at least one run left");
  expect_error("{" BASE ",'grid':{'delay':[0,1]},'only_if':{'delay':0},'exclude':{'delay':0}}",
               "dir/demo.json: exclude and only_if remove all 2 runs; allowed: at least one run left");
}

static void rules_that_can_never_hold_are_errors(void **state) {
  (void)state;
  expect_error("{" BASE ",'exclude':[{'delay':0},{}]}",
               "dir/demo.json: exclude[1]: {}; allowed: an object of dotted keys with a value, or a list of values");
  expect_error("{" BASE ",'exclude':{'delay':[]}}",
               "dir/demo.json: exclude.delay: the list is empty; allowed: at least one value");
  expect_error(
      "{" BASE ",'exclude':{'optimizer':'adamm'}}",
      "dir/demo.json: exclude.optimizer: unknown optimizer \"adamm\"; did you mean \"adamw\"?; allowed: adamw, "
      "muon, sgd");
  expect_error(
      "{" BASE ",'exclude':{'correction':'ef+lokahead'}}",
      "dir/demo.json: exclude.correction: unknown correction \"lokahead\"; did you mean \"lookahead\"?; allowed: "
      "ef, lookahead");
  expect_error("{" BASE ",'only_if':[{'train':{'steps':3}}]}",
               "dir/demo.json: only_if[0].train: a whole section; allowed: one of its keys, as in train.steps");
  expect_error("{" BASE ",'only_if':[{'optimizer':3}]}",
               "dir/demo.json: only_if[0].optimizer: 3; allowed: the name of a type, or a list of these");
}

/* The start is enough where the rest lists every key. */
static void expect_start(const char *text, const char *start) {
  fixture f;
  assert_int_equal(expand(&f, text, NULL, NULL, 0), PL_BAD);
  f.e.text[strlen(start)] = '\0';
  assert_string_equal(f.e.text, start);
  unload(&f);
}

static void unknown_keys_in_rules_get_the_nearest(void **state) {
  (void)state;
  expect_start("{" BASE ",'exclude':{'optimizer.momentun':0}}",
               "dir/demo.json: exclude.optimizer.momentun: unknown key \"momentun\" (of any optimizer); did you mean "
               "\"momentum\"?; allowed: lr, ");
  expect_start("{" BASE ",'exclude':{'dealy':0}}",
               "dir/demo.json: exclude.dealy: unknown key \"dealy\" (of a run); did you mean \"delay\"?; allowed: ");
  expect_start("{" BASE ",'exclude':{'modle':'mlp'}}",
               "dir/demo.json: exclude.modle: unknown key \"modle\" (of a run); did you mean \"model\"?; allowed: ");
  expect_start(
      "{" BASE ",'exclude':{'train.stesp':1}}",
      "dir/demo.json: exclude.train.stesp: unknown key \"stesp\" (of train); did you mean \"steps\"?; allowed: ");
  expect_start("{" BASE ",'exclude':{'delay':'zero'}}", "dir/demo.json: exclude.delay: ");
  expect_start("{" BASE ",'exclude':{'optimizer.momentum':'high'}}", "dir/demo.json: exclude.optimizer.momentum: ");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(excluding_by_all_kinds_of_keys),
      cmocka_unit_test(a_key_that_the_type_lacks_does_not_match),
      cmocka_unit_test(only_if_keeps_what_one_rule_describes),
      cmocka_unit_test(profiles_match_as_written),
      cmocka_unit_test(excluding_comes_before_the_relations_between_sections),
      cmocka_unit_test(removing_everything_is_an_error),
      cmocka_unit_test(rules_that_can_never_hold_are_errors),
      cmocka_unit_test(unknown_keys_in_rules_get_the_nearest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
