#include "sweep_support.h"

#include <stdio.h>

static void first_axis_is_slowest_and_seeds_fastest(void **state) {
  (void)state;
  expect_labels("{" BASE ",'grid':{'delay':[0,2],'optimizer.lr':[0.25,0.5]},'seeds':[3,1]}",
                "delay=0 optimizer.lr=0.25 seed=3\ndelay=0 optimizer.lr=0.25 seed=1\n"
                "delay=0 optimizer.lr=0.5 seed=3\ndelay=0 optimizer.lr=0.5 seed=1\n"
                "delay=2 optimizer.lr=0.25 seed=3\ndelay=2 optimizer.lr=0.25 seed=1\n"
                "delay=2 optimizer.lr=0.5 seed=3\ndelay=2 optimizer.lr=0.5 seed=1\n");
}

static void blocks_are_united_in_order(void **state) {
  (void)state;
  expect_labels("{" BASE ",'runs':[{'delay':9},{'seed':8}],'random':{'n':1,'delay':['int_uniform',6,6]},"
                "'zip':{'delay':[4,5],'optimizer.lr':[0.1,0.2]},'seeds':[0],"
                "'grid':[{'delay':[1]},{'delay':[2,3],'seeds':[0,7],'base':{'optimizer.momentum':0.5}}]}",
                "delay=1 seed=0\n"
                "delay=2 optimizer.momentum=0.5 seed=0\ndelay=2 optimizer.momentum=0.5 seed=7\n"
                "delay=3 optimizer.momentum=0.5 seed=0\ndelay=3 optimizer.momentum=0.5 seed=7\n"
                "delay=4 optimizer.lr=0.1 seed=0\ndelay=5 optimizer.lr=0.2 seed=0\n"
                "delay=6 seed=0\ndelay=9 seed=0\nseed=8\n");
}

static void zip_inside_a_grid_is_one_axis(void **state) {
  (void)state;
  expect_labels("{" BASE ",'grid':{'delay':[0,1],'zip':{'optimizer.lr':[0.1,0.2],'optimizer.momentum':[0.9,0.8]}}}",
                "delay=0 optimizer.lr=0.1 optimizer.momentum=0.9\ndelay=0 optimizer.lr=0.2 optimizer.momentum=0.8\n"
                "delay=1 optimizer.lr=0.1 optimizer.momentum=0.9\ndelay=1 optimizer.lr=0.2 optimizer.momentum=0.8\n");
}

static void sections_come_before_their_keys_in_any_order(void **state) {
  (void)state;
  fixture f;
  const pl_sweep_run *run = NULL;
  assert_int_equal(
      load(&f, "{" BASE ",'grid':{'optimizer.lr':[0.5],'optimizer':[{'type':'sgd','lr':0.1,'momentum':0}]}}", NULL, 0),
      PL_OK);
  assert_int_equal(pl_sweep_next(f.sweep, &run, &f.e), PL_OK);
  assert_true(pl_run_config_lr(run->config) == 0.5);
  unload(&f);
}

static void list_values_stand_inside_the_axis(void **state) {
  (void)state;
  expect_labels("{'base':{'model':{'type':'mlp','layers':4},'data':'synthetic','optimizer':'sgd','train':{'steps':10},"
                "'pipeline.stages':4,'simulate_only':true},"
                "'grid':{'delay':[1,[3,2,1,0],'pipedream'],'correction':['none',['ef','lookahead']]}}",
                "delay=1 correction=none\ndelay=1 correction=[\"ef\",\"lookahead\"]\n"
                "delay=[3,2,1,0] correction=none\ndelay=[3,2,1,0] correction=[\"ef\",\"lookahead\"]\n"
                "delay=pipedream correction=none\ndelay=pipedream correction=[\"ef\",\"lookahead\"]\n");
}

/* The learning rates of a grid, as labels show them. */
static void expect_axis(const char *range, const char *values) {
  char text[400];
  snprintf(text, sizeof text, "{" BASE ",'grid':{'optimizer.lr':%s,'delay':[0]}}", range);
  expect_labels(text, values);
}

static void ranges_have_both_ends_and_nice_numbers(void **state) {
  (void)state;
  expect_axis("{'range':[1,3]}", "optimizer.lr=1\noptimizer.lr=2\noptimizer.lr=3\n");
  expect_axis("{'range':[0.1,0.35,0.1]}", "optimizer.lr=0.1\noptimizer.lr=0.2\noptimizer.lr=0.3\n");
  expect_axis("{'range':[0.3,0,-0.1]}", "optimizer.lr=0.3\noptimizer.lr=0.2\noptimizer.lr=0.1\noptimizer.lr=0\n");
  expect_axis("{'range':[0.1,0.3],'n':3}", "optimizer.lr=0.1\noptimizer.lr=0.2\noptimizer.lr=0.3\n");
  expect_axis("{'log_range':[1e-4,0.1],'n':4}",
              "optimizer.lr=0.0001\noptimizer.lr=0.001\noptimizer.lr=0.01\noptimizer.lr=0.1\n");
  expect_axis("{'log_range':[0.03,0.3],'n':3}", "optimizer.lr=0.03\noptimizer.lr=0.0948683298051\noptimizer.lr=0.3\n");
  expect_axis("{'range':[0.123456789012345,0.223456789012345],'n':2}",
              "optimizer.lr=0.123456789012345\noptimizer.lr=0.223456789012345\n");
}

static void equal_runs_are_given_once(void **state) {
  (void)state;
  fixture f;
  assert_int_equal(expand(&f, "{" BASE ",'grid':[{'delay':[0,1,0.0]},{'delay':[1,2]}],'seeds':[0,1]}", NULL, NULL, 0),
                   PL_OK);
  pl_sweep_counts c = pl_sweep_counted(f.sweep);
  assert_int_equal(pl_sweep_upper_count(f.sweep), 10);
  assert_int_equal(c.produced, 10);
  assert_int_equal(c.merged, 4);
  assert_int_equal(c.excluded, 0);
  assert_int_equal(c.runs, 6);
  unload(&f);
}

static void rewinding_gives_the_same_runs(void **state) {
  (void)state;
  fixture f;
  const pl_sweep_run *run = NULL;
  uint64_t ids[12], again[12];
  const char *text = "{" BASE ",'random':{'n':6,'delay':['int_uniform',0,900]},'grid':{'delay':[0,1],'seed':[4,5,6]}}";
  assert_int_equal(expand(&f, text, NULL, ids, 12), PL_OK);
  assert_int_equal(pl_sweep_counted(f.sweep).runs, 12);
  pl_sweep_rewind(f.sweep);
  for (size_t i = 0; i < 12; i++) {
    assert_int_equal(pl_sweep_next(f.sweep, &run, &f.e), PL_OK);
    again[i] = run->id;
  }
  assert_memory_equal(ids, again, sizeof ids);
  assert_int_equal(pl_sweep_next(f.sweep, &run, &f.e), PL_OK);
  assert_null(run);
  assert_int_equal(pl_sweep_next(f.sweep, &run, &f.e), PL_OK);
  assert_null(run);
  unload(&f);
}

static bool is_among(uint64_t id, const uint64_t *ids, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (ids[i] == id) return true;
  return false;
}

static void a_new_axis_keeps_the_ids_of_its_default(void **state) {
  (void)state;
  fixture f;
  uint64_t old[4], new[12];
  assert_int_equal(expand(&f, "{" BASE ",'grid':{'optimizer.lr':[0.1,0.2]},'seeds':[0,1]}", NULL, old, 4), PL_OK);
  unload(&f);
  assert_int_equal(
      expand(&f, "{" BASE ",'grid':{'delay':[0,3],'optimizer.lr':[0.1,0.2,0.3]},'seeds':[0,1]}", NULL, new, 12), PL_OK);
  unload(&f);
  for (size_t i = 0; i < 4; i++) assert_true(is_among(old[i], new, 12));
  assert_true(is_among(old[3], new, 6));      /* delay 0 comes first */
  assert_false(is_among(old[3], new + 6, 6)); /* and delay 3 is another run */
}

static void near_values_give_distinct_ids_and_labels(void **state) {
  (void)state;
  fixture f;
  uint64_t ids[2];
  pl_str labels = {0};
  assert_int_equal(expand(&f, "{" BASE ",'grid':{'optimizer.lr':[1.2e-5,1.4e-5]}}", &labels, ids, 2), PL_OK);
  assert_string_equal(pl_str_text(&labels), "optimizer.lr=1.2e-05\noptimizer.lr=1.4e-05\n");
  assert_int_not_equal(ids[0], ids[1]);
  pl_str_free(&labels);
  unload(&f);
}

static void odd_texts_are_quoted_in_labels(void **state) {
  (void)state;
  expect_labels("{" BASE
                ",'zip':{'delay':[0,1,2,3,4,5],'notes':['a/b','a b','x=1','tab\\there','d\u00e9lai-\u03c48','']}}",
                "delay=0 notes=a/b\ndelay=1 notes=\"a b\"\ndelay=2 notes=\"x=1\"\ndelay=3 notes=\"tab\\there\"\n"
                "delay=4 notes=d\u00e9lai-\u03c48\ndelay=5 notes=\"\"\n");
}

static void booleans_are_values(void **state) {
  (void)state;
  fixture f;
  uint64_t ids[2];
  assert_int_equal(expand(&f, "{" BASE ",'grid':{'optimizer.nesterov':[true,false]}}", NULL, ids, 2), PL_OK);
  assert_int_equal(pl_sweep_counted(f.sweep).runs, 2);
  assert_int_not_equal(ids[0], ids[1]);
  unload(&f);
}

static void forty_axes_expand(void **state) {
  (void)state;
  fixture f;
  pl_str text = {0};
  pl_str_append(&text, "{" BASE ",'zip':{");
  for (int i = 0; i < 40; i++) pl_str_printf(&text, "%s'train.k%d':[1,2]", i > 0 ? "," : "", i);
  pl_str_append(&text, "}}");
  assert_int_equal(load(&f, pl_str_text(&text), NULL, 0), PL_OK);
  assert_int_equal(pl_sweep_axis_count(f.sweep), 40);
  assert_string_equal(pl_sweep_axis(f.sweep, 39), "train.k39");
  unload(&f);
  pl_str_free(&text);
}

static void huge_products_saturate(void **state) {
  (void)state;
  fixture f;
  pl_str text = {0};
  const pl_sweep_run *run = NULL;
  pl_str_append(&text, "{" BASE ",'grid':{'seed':{'range':[0,999]}");
  const char *keys[] = {"optimizer.lr", "optimizer.momentum", "train.weight_decay", "train.clip",
                        "delay_start",  "train.warmup",       "train.val_every",    "train.data_seed"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    pl_str_printf(&text, ",'%s':{'range':[0,0.9],'n':1000}", keys[i]);
  pl_str_append(&text, "}}");
  assert_int_equal(load(&f, pl_str_text(&text), NULL, 0), PL_OK);
  assert_true(pl_sweep_upper_count(f.sweep) == UINT64_MAX);
  assert_int_equal(pl_sweep_next(f.sweep, &run, &f.e), PL_OK);
  assert_non_null(run);
  unload(&f);
  pl_str_free(&text);
}

static void axes_are_the_keys_that_vary(void **state) {
  (void)state;
  fixture f;
  assert_int_equal(load(&f,
                        "{" BASE ",'grid':[{'train.clip':[1],'delay':[0],'optimizer.lr':[0.1]},"
                        "{'train.clip':[1.0],'delay':[1],'optimizer.momentum':[0.5]}],'seeds':[7]}",
                        NULL, 0),
                   PL_OK);
  assert_int_equal(pl_sweep_axis_count(f.sweep), 3);
  assert_string_equal(pl_sweep_axis(f.sweep, 0), "delay");
  assert_string_equal(pl_sweep_axis(f.sweep, 1), "optimizer.lr");
  assert_string_equal(pl_sweep_axis(f.sweep, 2), "optimizer.momentum");
  unload(&f);
}

static void a_run_file_is_a_sweep_of_one(void **state) {
  (void)state;
  fixture f;
  uint64_t wrapped, plain;
  assert_int_equal(expand(&f,
                          "{'model':'quadratic','optimizer':'sgd','train':{'steps':10},'delay':2,'seed':5,'notes':'x'}",
                          NULL, &plain, 1),
                   PL_OK);
  assert_int_equal(pl_sweep_counted(f.sweep).runs, 1);
  assert_string_equal(pl_sweep_name(f.sweep), "demo");
  assert_int_equal(pl_sweep_axis_count(f.sweep), 0);
  unload(&f);
  assert_int_equal(
      expand(&f, "{" BASE ",'name':'d\u00e9lai-\u03c48','grid':{'delay':[2]},'seeds':[5]}", NULL, &wrapped, 1), PL_OK);
  assert_string_equal(pl_sweep_name(f.sweep), "d\u00e9lai-\u03c48");
  unload(&f);
  assert_int_equal(plain, wrapped);
}

static void the_schema_knows_every_key(void **state) {
  (void)state;
  pl_registries r = registries();
  pl_json *schema = pl_sweep_schema(&r);
  const char *keys[] = {"name", "notes",   "base",    "grid",  "zip",   "random",
                        "runs", "exclude", "only_if", "seeds", "slurm", "set"};
  const pl_json *properties = pl_json_get(schema, "properties");
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) assert_non_null(pl_json_get(properties, keys[i]));
  assert_int_equal(pl_json_size(properties), sizeof keys / sizeof *keys);
  const pl_json *run = pl_json_get(pl_json_get(schema, "$defs"), "run");
  assert_non_null(pl_json_get(pl_json_get(run, "properties"), "optimizer"));
  pl_json_release(schema);
}

/* The delay of a run follows from its schedule: it need not be an axis to be known. */
static void schedules_are_an_axis(void **state) {
  (void)state;
  static const char sweep[] = "{'base':{'model':{'type':'quadratic','layers':4},'optimizer':'sgd','train':{'steps':10},"
                              "'pipeline':{'stages':4}},"
                              "'grid':{'pipeline.microbatches':[2,4],'pipeline.schedule':['1f1b','2bw']},"
                              "'exclude':{'pipeline.schedule':'2bw','pipeline.microbatches':2}}";
  static const char *const delays[] = {"0", "0", "1"};
  pl_str labels = {0};
  fixture f;
  const pl_sweep_run *run = NULL;
  assert_int_equal(load(&f, sweep, NULL, 0), PL_OK);
  for (size_t i = 0; i < 3; i++) {
    pl_str delay = {0};
    if (pl_sweep_next(f.sweep, &run, &f.e) != PL_OK) fail_msg("%s", f.e.text);
    pl_sweep_label(f.sweep, run, &labels);
    pl_str_append(&labels, "\n");
    pl_run_config_delay_name(run->config, &delay);
    assert_string_equal(pl_str_text(&delay), delays[i]);
    pl_str_free(&delay);
  }
  assert_string_equal(pl_str_text(&labels), "pipeline.microbatches=2 pipeline.schedule=1f1b\n"
                                            "pipeline.microbatches=4 pipeline.schedule=1f1b\n"
                                            "pipeline.microbatches=4 pipeline.schedule=2bw\n");
  assert_int_equal(pl_sweep_next(f.sweep, &run, &f.e), PL_OK);
  assert_null(run);
  pl_str_free(&labels);
  unload(&f);
  expect_labels("{'base':{'model':{'type':'quadratic','layers':4},'optimizer':'sgd','train':{'steps':10},"
                "'pipeline':{'stages':4,'microbatches':4}},'grid':{'pipeline.schedule':['1f1b','2bw']},"
                "'only_if':{'delay':1}}",
                "pipeline.schedule=2bw\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(first_axis_is_slowest_and_seeds_fastest),
      cmocka_unit_test(blocks_are_united_in_order),
      cmocka_unit_test(zip_inside_a_grid_is_one_axis),
      cmocka_unit_test(sections_come_before_their_keys_in_any_order),
      cmocka_unit_test(list_values_stand_inside_the_axis),
      cmocka_unit_test(ranges_have_both_ends_and_nice_numbers),
      cmocka_unit_test(equal_runs_are_given_once),
      cmocka_unit_test(rewinding_gives_the_same_runs),
      cmocka_unit_test(a_new_axis_keeps_the_ids_of_its_default),
      cmocka_unit_test(near_values_give_distinct_ids_and_labels),
      cmocka_unit_test(odd_texts_are_quoted_in_labels),
      cmocka_unit_test(booleans_are_values),
      cmocka_unit_test(forty_axes_expand),
      cmocka_unit_test(huge_products_saturate),
      cmocka_unit_test(axes_are_the_keys_that_vary),
      cmocka_unit_test(a_run_file_is_a_sweep_of_one),
      cmocka_unit_test(the_schema_knows_every_key),
      cmocka_unit_test(schedules_are_an_axis),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
