#include "sweep_support.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void expect_labels_with(const char *text, const char *const *sets, size_t count, const char *labels) {
  fixture f;
  const pl_sweep_run *run = NULL;
  pl_str seen = {0};
  pl_status st = load(&f, text, sets, count);
  assert_string_equal(f.e.text, "");
  assert_int_equal(st, PL_OK);
  for (st = pl_sweep_next(f.sweep, &run, &f.e); run != NULL; st = pl_sweep_next(f.sweep, &run, &f.e)) {
    pl_sweep_label(f.sweep, run, &seen);
    pl_str_append(&seen, "\n");
  }
  assert_string_equal(f.e.text, "");
  assert_int_equal(st, PL_OK);
  assert_string_equal(pl_str_text(&seen), labels);
  pl_str_free(&seen);
  unload(&f);
}

static void expect_set_error(const char *set, const char *message) {
  fixture f;
  const pl_sweep_run *run = NULL;
  pl_status st = load(&f, "{" BASE ",'grid':{'delay':[0,1]}}", &set, 1);
  if (st == PL_OK) st = pl_sweep_next(f.sweep, &run, &f.e);
  assert_string_equal(f.e.text, message);
  assert_int_equal(st, PL_BAD);
  unload(&f);
}

static void a_list_makes_an_axis_of_every_block(void **state) {
  (void)state;
  const char *sets[] = {"optimizer.lr=0.1,0.2"};
  expect_labels_with("{" BASE "}", sets, 1, "optimizer.lr=0.1\noptimizer.lr=0.2\n");
  expect_labels_with("{" BASE ",'grid':{'delay':[0,1]},'runs':[{'delay':5}]}", sets, 1,
                     "delay=0 optimizer.lr=0.1\ndelay=0 optimizer.lr=0.2\ndelay=1 optimizer.lr=0.1\n"
                     "delay=1 optimizer.lr=0.2\ndelay=5 optimizer.lr=0.1\ndelay=5 optimizer.lr=0.2\n");
}

static void a_range_makes_an_axis(void **state) {
  (void)state;
  const char *sets[] = {"optimizer.lr={\"log_range\":[0.01,1],\"n\":3}"}, *linear[] = {"delay={\"range\":[0,4,2]}"};
  expect_labels_with("{" BASE "}", sets, 1, "optimizer.lr=0.01\noptimizer.lr=0.1\noptimizer.lr=1\n");
  expect_labels_with("{" BASE "}", linear, 1, "delay=0\ndelay=2\ndelay=4\n");
}

static void it_replaces_the_axis_of_that_key(void **state) {
  (void)state;
  const char *sets[] = {"delay=7,8"}, *one[] = {"delay=7"};
  const char *text =
      "{" BASE ",'grid':{'delay':[0,1],'optimizer.lr':[0.5]},'zip':{'delay':[2,3],'optimizer.lr':[0.3,0.2]},"
      "'random':{'n':9,'delay':['int_uniform',0,5]},'runs':[{'delay':4}]}";
  expect_labels_with(
      text, sets, 1,
      "optimizer.lr=0.5 delay=7\noptimizer.lr=0.5 delay=8\noptimizer.lr=0.3 delay=7\n"
      "optimizer.lr=0.3 delay=8\noptimizer.lr=0.2 delay=7\noptimizer.lr=0.2 delay=8\ndelay=7\ndelay=8\n");
  expect_labels_with(text, one, 1, "optimizer.lr=0.5\noptimizer.lr=0.3\noptimizer.lr=0.2\n\n");
}

static void one_value_overrides_objects_too(void **state) {
  (void)state;
  fixture f;
  const char *sets[] = {"optimizer.lr=0.75"};
  const pl_sweep_run *run = NULL;
  assert_int_equal(load(&f,
                        "{" BASE ",'grid':{'optimizer':[{'type':'sgd','lr':0.1},{'type':'adamw','lr':0.2}]},"
                        "'runs':[{'optimizer':{'type':'muon','lr':0.3}}]}",
                        sets, 1),
                   PL_OK);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(pl_sweep_next(f.sweep, &run, &f.e), PL_OK);
    assert_true(pl_run_config_lr(run->config) == 0.75);
  }
  unload(&f);
}

static void seeds_replace_all_seeds(void **state) {
  (void)state;
  const char *text = "{" BASE ",'grid':{'delay':[0],'seeds':[5,6]},'runs':[{'seed':9,'delay':1}],'seeds':[1,2,3]}";
  const char *forms[] = {"seeds=3,4", "seed=3,4", "seeds=[3,4]", "seeds={\"range\":[3,4]}"};
  for (size_t i = 0; i < COUNT(forms); i++)
    expect_labels_with(text, &forms[i], 1, "delay=0 seed=3\ndelay=0 seed=4\ndelay=1 seed=3\ndelay=1 seed=4\n");
}

static void values_are_json_or_text(void **state) {
  (void)state;
  fixture f;
  const char *sets[] = {"notes=\"a,b=c\"",        "name=other",         "slurm.time=01:00:00", "slurm.gpus=2",
                        "optimizer.lr=1e-3,3e-3", "delay=pipedream, 2", "delay_start=1"};
  assert_int_equal(load(&f, "{" BASE ",'slurm':{'partition':'gpu'}}", sets, COUNT(sets)), PL_OK);
  const pl_json *document = pl_sweep_document(f.sweep), *slurm = pl_json_get(document, "slurm");
  assert_string_equal(pl_json_string(pl_json_get(document, "notes")), "a,b=c");
  assert_string_equal(pl_sweep_name(f.sweep), "other");
  assert_string_equal(pl_json_string(pl_json_get(slurm, "time")), "01:00:00");
  assert_string_equal(pl_json_string(pl_json_get(slurm, "partition")), "gpu");
  assert_int_equal(pl_json_int(pl_json_get(slurm, "gpus")), 2);
  assert_int_equal(pl_sweep_upper_count(f.sweep), 4);
  unload(&f);
  const char *comma[] = {"model.problem_seed=1", "notes=x", "delay=[1]"};
  assert_int_equal(load(&f, "{" BASE "}", comma, COUNT(comma)), PL_OK);
  assert_int_equal(pl_sweep_upper_count(f.sweep), 1);
  unload(&f);
}

/* What is frozen as sweep.json gives the same runs without any --set. */
static void the_document_holds_it_all(void **state) {
  (void)state;
  fixture f, again;
  const char *sets[] = {"optimizer.lr=0.1,0.2", "delay=3", "seeds=0,1"};
  const pl_sweep_run *run = NULL, *other = NULL;
  assert_int_equal(load(&f, "{" BASE ",'grid':{'delay':[0,1],'train.clip':[1,2]},'seeds':[5]}", sets, COUNT(sets)),
                   PL_OK);
  pl_str text = {0};
  pl_json_write_canonical(pl_sweep_document(f.sweep), &text);
  assert_int_equal(load(&again, pl_str_text(&text), NULL, 0), PL_OK);
  for (size_t i = 0; i < 9; i++) {
    assert_int_equal(pl_sweep_next(f.sweep, &run, &f.e), PL_OK);
    assert_int_equal(pl_sweep_next(again.sweep, &other, &again.e), PL_OK);
    assert_true((run == NULL) == (i == 8) && (other == NULL) == (i == 8));
    if (run != NULL) assert_true(run->id == other->id);
  }
  pl_str_free(&text);
  unload(&again);
  unload(&f);
}

static void the_callers_document_stays(void **state) {
  (void)state;
  fixture f = {.registries = registries()};
  const char *text = "{\"base\":{},\"slurm\":{\"a\":1},\"set\":{\"delay\":[1]}}", *sets[] = {"slurm.a=2", "delay=2"};
  pl_json *document = NULL;
  assert_int_equal(pl_json_parse(text, strlen(text), "x", &document, &f.e), PL_OK);
  pl_json *before = pl_json_copy(document);
  assert_int_equal(pl_sweep_from_json(&f.registries, document, "x", (pl_sets){sets, 2}, &f.sweep, &f.e), PL_OK);
  assert_true(pl_json_equal(before, document));
  assert_false(pl_json_equal(before, pl_sweep_document(f.sweep)));
  pl_json_release(before);
  pl_json_release(document);
  unload(&f);
}

static void bad_arguments_are_shown(void **state) {
  (void)state;
  expect_set_error("delay",
                   "dir/demo.json: --set delay: no key with a value; allowed: key=value, as in train.steps=100");
  expect_set_error("=3", "dir/demo.json: --set =3: no key with a value; allowed: key=value, as in train.steps=100");
  expect_set_error("delay=", "dir/demo.json: --set delay=: a value is missing; write \"\" for an empty text");
  expect_set_error("delay=1,,2", "dir/demo.json: --set delay=1,,2: a value is missing; write \"\" for an empty text");
  expect_set_error("slurm.nodes=a,b",
                   "dir/demo.json: --set slurm.nodes=a,b: 2 values; allowed: one; quotes keep a comma: "
                   "'slurm.nodes=\"a,b\"'");
  expect_set_error("seeds=2.5", "dir/demo.json: --set seeds=2.5: element 0 is 2.5; allowed: whole numbers from 0");
  expect_set_error("name=a/b", "dir/demo.json: name: \"a/b\"; allowed: 1 to 100 bytes without slash and control "
                               "characters, not \".\" or \"..\", since it names a folder");
  expect_set_error("name=5", "dir/demo.json: name: 5; allowed: a string");
  expect_set_error(" delay=1", "dir/demo.json: --set  delay=1: the key \" delay\" has the character \" \"; allowed: "
                               "letters, digits, _ and dots");
  expect_set_error("d\xc3\xa9=1", "dir/demo.json: --set d\xc3\xa9=1: the key \"d\xc3\xa9\" has the character "
                                  "\"\xc3\xa9\"; allowed: letters, digits, _ and dots");
  expect_set_error("base.delay=1", "dir/demo.json: --set base.delay=1: \"base\" is a place in a sweep file; allowed: a "
                                   "key of a run, as in train.steps=100");
  expect_set_error("slurm=1", "dir/demo.json: slurm: 1; allowed: an object");
  expect_set_error("delay={\"range\":[0]}",
                   "dir/demo.json: --set delay: {\"range\":[0]} is no list and no range; allowed: {\"range\": [first, "
                   "last]}, {\"range\": [first, last, step]}, {\"range\": [first, last], \"n\": N}, {\"log_range\": "
                   "[first, last], \"n\": N}");
  expect_set_error("optimizer.lr=abc",
                   "dir/demo.json: --set optimizer.lr: must be a number from 0 to 1000000, not the string \"abc\"");
}

static void half_json_is_an_error(void **state) {
  (void)state;
  fixture f;
  const char *sets[] = {"delay=[1,2", "notes=\"a", "model={\"type\":\"mlp\",\"type\":\"mlp\"}"};
  for (size_t i = 0; i < COUNT(sets); i++) {
    assert_int_equal(load(&f, "{" BASE "}", &sets[i], 1), PL_BAD);
    assert_non_null(strstr(f.e.text, "value:1:"));
    unload(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_list_makes_an_axis_of_every_block),
      cmocka_unit_test(a_range_makes_an_axis),
      cmocka_unit_test(it_replaces_the_axis_of_that_key),
      cmocka_unit_test(one_value_overrides_objects_too),
      cmocka_unit_test(seeds_replace_all_seeds),
      cmocka_unit_test(values_are_json_or_text),
      cmocka_unit_test(the_document_holds_it_all),
      cmocka_unit_test(the_callers_document_stays),
      cmocka_unit_test(bad_arguments_are_shown),
      cmocka_unit_test(half_json_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
