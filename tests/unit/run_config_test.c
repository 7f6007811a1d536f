#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/run_schedule.h"

/* Every allocation of pipelag's own is counted here, and the one at `failing` fails. The linker takes this definition
 * instead of libc's. */
static long allocations, failing = -1;

void *aligned_alloc(size_t alignment, size_t size) {
  void *memory = NULL;
  if (allocations++ == failing || posix_memalign(&memory, alignment, size) != 0) return NULL;
  return memory;
}

/* jansson's are counted by its own hook; a prototype of it here keeps jansson.h to core/base/json.c. */
void json_set_alloc_funcs(void *(*take)(size_t), void (*give)(void *));
static void *counted_malloc(size_t size) { return allocations++ == failing ? NULL : malloc(size); }

typedef struct fake_adamw {
  double lr, beta1, beta2, eps;
} fake_adamw;

typedef struct fake_muon {
  double lr, momentum, adamw_lr;
  int scale;
} fake_muon;

typedef struct fake_model {
  int64_t width, heads;
} fake_model;

typedef struct fake_ef {
  double lambda;
} fake_ef;

typedef struct fake_data {
  pl_text_list train;
} fake_data;

typedef struct fake_cosine {
  double final;
} fake_cosine;

static const char *const scales[] = {"keller", "moonlight", NULL};
static const pl_param no_params[] = {{0}};
static const pl_param adamw_params[] = {
    {.name = "lr", .type = PL_REAL, .offset = 0, .def = 1e-3, .max = (double)INFINITY, .above_min = true},
    {.name = "beta1", .type = PL_REAL, .offset = offsetof(fake_adamw, beta1), .def = 0.9, .max = 1},
    {.name = "beta2", .type = PL_REAL, .offset = offsetof(fake_adamw, beta2), .def = 0.95, .max = 1},
    {.name = "eps", .type = PL_REAL, .offset = offsetof(fake_adamw, eps), .def = 1e-8, .max = 1},
    {0}};
static const pl_param muon_params[] = {
    {.name = "lr", .type = PL_REAL, .offset = 0, .def = 2e-2, .max = (double)INFINITY, .above_min = true},
    {.name = "momentum", .type = PL_REAL, .offset = offsetof(fake_muon, momentum), .def = 0.95, .max = 1},
    {.name = "adamw.lr", .type = PL_REAL, .offset = offsetof(fake_muon, adamw_lr), .def = (double)NAN},
    {.name = "scale", .type = PL_CHOICE, .offset = offsetof(fake_muon, scale), .def = 1, .choices = scales},
    {0}};
static const pl_param model_params[] = {
    {.name = "width", .type = PL_INT, .offset = offsetof(fake_model, width), .def = 64, .min = 1, .max = 4096},
    {.name = "heads", .type = PL_INT, .offset = offsetof(fake_model, heads), .def = 2, .min = 1, .max = 64},
    {0}};
static const pl_param ef_params[] = {{.name = "lambda", .type = PL_REAL, .def = 1, .max = 1}, {0}};
static const pl_param data_params[] = {{.name = "train", .type = PL_TEXT_LIST, .required = true}, {0}};
static const pl_param cosine_params[] = {{.name = "final", .type = PL_REAL, .def = 0.1, .max = 1}, {0}};

static pl_status check_model(const void *config, pl_err *e) {
  const fake_model *m = config;
  if (m->width % m->heads == 0) return PL_OK;
  return pl_fail(e, PL_BAD, "heads: %d heads do not divide width %d", (int)m->heads, (int)m->width);
}

static const pl_component adamw = {"adamw", "AdamW", "", adamw_params, sizeof(fake_adamw), NULL};
static const pl_component muon = {"muon", "Muon", "", muon_params, sizeof(fake_muon), NULL};
static const pl_component net = {"net", "a net", "", model_params, sizeof(fake_model), check_model};
static const pl_component ef = {"ef", "EF", "", ef_params, sizeof(fake_ef), NULL};
static const pl_component ahead = {"ahead", "look-ahead", "", no_params, 0, NULL};
static const pl_component none = {"none", "no data", "", no_params, 0, NULL};
static const pl_component bytes = {"bytes", "text", "", data_params, sizeof(fake_data), NULL};
static const pl_component cosine = {"cosine", "cosine", "", cosine_params, sizeof(fake_cosine), NULL};
static const pl_component constant = {"constant", "constant", "", no_params, 0, NULL};

static const pl_component *const optimizers[] = {&adamw, &muon}, *const models[] = {&net},
                                 *const chain[] = {&ef, &ahead}, *const datasets[] = {&none, &bytes},
                                 *const schedules[] = {&cosine, &constant};
static const pl_registries registries = {{"model", models, 1},
                                         {"dataset", datasets, 2},
                                         {"optimizer", optimizers, 2},
                                         {"correction", chain, 2},
                                         {"lr_schedule", schedules, 2}};

#define RUN "\"model\":\"net\",\"train\":{\"steps\":10},\"optimizer\":"

/* A document and the config that borrows from it. */
typedef struct built {
  pl_json *document;
  pl_run_config config;
} built;

static pl_json *parse(const char *text) {
  pl_err e = {0};
  pl_json *value = NULL;
  if (pl_json_parse(text, strlen(text), "t", &value, &e) != PL_OK) fail_msg("%s: %s", text, e.text);
  return value;
}

static void build(const char *text, built *b) {
  pl_err e = {0};
  b->document = parse(text);
  if (pl_run_config_from_json(&registries, b->document, "r", &b->config, &e) != PL_OK) fail_msg("%s", e.text);
}

static uint64_t id_of(const char *text) {
  built b;
  build(text, &b);
  uint64_t id = pl_run_config_id(&b.config);
  pl_json_release(b.document);
  return id;
}

static void expect_bad(const char *text, const char *message) {
  pl_err e = {0};
  pl_run_config c;
  pl_json *document = parse(text);
  assert_int_equal(pl_run_config_from_json(&registries, document, "r", &c, &e), PL_BAD);
  assert_string_equal(e.text, message);
  pl_json_release(document);
}

static void defaults_are_filled_in(void **state) {
  (void)state;
  built b;
  build("{" RUN "\"adamw\"}", &b);
  const fake_adamw *o = (const void *)b.config.optimizer.config;
  assert_ptr_equal(b.config.optimizer.type, &adamw);
  assert_true(o->lr == 1e-3 && o->beta2 == 0.95 && pl_run_config_lr(&b.config) == 1e-3);
  assert_ptr_equal(b.config.data.type, &none);
  assert_ptr_equal(b.config.lr_schedule.type, &cosine);
  assert_int_equal(b.config.correction_count, 0);
  assert_int_equal(b.config.train.steps, 10);
  assert_int_equal(b.config.train.batch_tokens, 1024);
  assert_int_equal(b.config.train.data_seed, -1);
  assert_int_equal(b.config.pipeline.stages, 1);
  assert_int_equal(b.config.root.delay.count, 1);
  assert_string_equal(pl_run_config_schedule_name(&b.config), "lagged");
  assert_int_equal(b.config.pipeline.replicas, 1);
  assert_int_equal(b.config.pipeline.partition.count, 0);
  assert_int_equal(b.config.pipeline.partition.word, PL_PARTITION_FLOPS);
  assert_true(b.config.pipeline.watchdog == 600);
  assert_null(b.config.root.name);
  pl_json_release(b.document);
}

static void bad_runs_say_why(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"[]", "r: must be an object, not a list"},
      {"{}", "r: model: missing; allowed: net"},
      {"{\"model\":\"net\"}", "r: optimizer: missing; allowed: adamw, muon"},
      {"{\"model\":\"net\",\"optimizer\":\"adamw\"}",
       "r: train.steps: missing; a whole number from 1 to 1000000000 is needed"},
      {"{" RUN "\"admaw\"}",
       "r: optimizer: unknown optimizer \"admaw\"; did you mean \"adamw\"?; allowed: adamw, muon"},
      {"{" RUN "3}", "r: optimizer: must be a name or an object with \"type\", not a whole number"},
      {"{" RUN "{\"lr\":1}}", "r: optimizer: \"type\" is missing; allowed: adamw, muon"},
      {"{" RUN "{\"type\":1}}", "r: optimizer.type: must be a string, not a whole number"},
      {"{" RUN "[\"adamw\"]}", "r: optimizer: must be a name or an object with \"type\", not a list"},
      {"{" RUN "{\"type\":\"adamw\",\"beta\":1}}",
       "r: optimizer.beta: unknown key \"beta\" (of optimizer adamw); did you "
       "mean \"beta1\"?; allowed: lr, beta1, beta2, eps"},
      {"{" RUN "\"adamw\",\"optimizer.momentum\":0.5}",
       "r: optimizer.momentum: unknown key \"momentum\" (of optimizer adamw); allowed: lr, beta1, beta2, eps"},
      {"{" RUN "{\"type\":\"muon\",\"adamw\":{\"rl\":1}}}",
       "r: optimizer.adamw.rl: unknown key \"adamw.rl\" (of optimizer muon); did you mean \"adamw.lr\"?; allowed: lr, "
       "momentum, adamw.lr, scale"},
      {"{" RUN "\"adamw\",\"optimizer.lr\":\"1e-3\"}",
       "r: optimizer.lr: must be a number > 0, not the string \"1e-3\""},
      {"{" RUN "\"adamw\",\"optimizer.lr\":null}", "r: optimizer.lr: must be a number > 0, not null"},
      {"{" RUN "\"adamw\",\"train.step\":2}",
       "r: train.step: unknown key \"step\" (of train); did you mean \"steps\"?; allowed: steps, batch_tokens, warmup, "
       "clip, clip_scope, weight_decay, weight_decay_form, nonfinite, data_seed, val_every, val_tokens, log_every, "
       "checkpoint_every, probe_every"},
      {"{" RUN "\"adamw\",\"optimiser\":2}",
       "r: optimiser: unknown key \"optimiser\" (of a run); did you mean \"optimizer\"?; allowed: model, data, "
       "optimizer, "
       "correction, train, pipeline, name, notes, seed, delay, delay_start, simulate_only, precision, threads, device"},
      {"{" RUN "\"adamw\",\"delay\":-1}", "r: delay: -1 is out of range; allowed: from 0 to 1024"},
      {"{" RUN "\"adamw\",\"seed\":2.5}", "r: seed: must be a whole number >= 0, not 2.5"},
      {"{" RUN "\"adamw\",\"pipeline.schedule\":\"2wb\"}",
       "r: pipeline.schedule: \"2wb\"; did you mean \"2bw\"?; allowed: lagged, gpipe, 1f1b, interleaved-1f1b, zb-h1, "
       "2bw, pipedream, pipedream-vertical, accumulate-newest, wpipe, custom"},
      {"{" RUN "\"adamw\",\"pipeline.partition\":[3,0]}",
       "r: pipeline.partition[1]: 0 is out of range; allowed: from 1 to 65536"},
      {"{" RUN "\"adamw\",\"pipeline.partition\":\"flop\"}",
       "r: pipeline.partition: must be a whole number from 1 to 65536, a list of these, or flops, even, not the string "
       "\"flop\"; did you mean \"flops\"?"},
      {"{" RUN "\"adamw\",\"pipeline.watchdog\":-1}", "r: pipeline.watchdog: -1 is out of range; allowed: >= 0"},
      {"{" RUN "\"adamw\",\"pipeline\":4}", "r: pipeline: must be an object, not a whole number"},
      {"{" RUN "\"adamw\",\"model.heads\":3}", "r: model.heads: 3 heads do not divide width 64"},
      {"{" RUN "\"adamw\",\"data\":\"bytes\"}", "r: data.train: missing; a string or a list of strings is needed"},
      {"{" RUN "\"adamw\",\"data\":{\"type\":\"bytes\",\"train\":[]}}",
       "r: data.train: the list is empty; at least one string is needed"},
      {"{" RUN "\"adamw\",\"correction.lambda\":0.5}",
       "r: correction.lambda: a key of the correction needs exactly one correction, not 0 of them; allowed: an "
       "object in the list, as in [\"lookahead\", {\"type\": \"ef\", \"lambda\": 0.5}]"},
      {"{" RUN "\"adamw\",\"correction\":[\"ef\",\"ahead\"],\"correction.lambda\":0.5}",
       "r: correction.lambda: a key of the correction needs exactly one correction, not 2 of them; allowed: an "
       "object in the list, as in [\"lookahead\", {\"type\": \"ef\", \"lambda\": 0.5}]"},
      {"{" RUN "\"adamw\",\"correction\":[\"ef\",\"fe\"]}",
       "r: correction[1]: unknown correction \"fe\"; did you mean \"ef\"?; allowed: ef, ahead"},
      {"{" RUN "\"adamw\",\"correction\":[1]}",
       "r: correction[0]: must be a name or an object with \"type\", not a whole number"},
      {"{" RUN "\"adamw\",\"correction\":[\"ef\",\"ef\",\"ef\",\"ef\",\"ef\"]}",
       "r: correction[4]: too many corrections; at most 4 may be chained"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_bad(cases[i][0], cases[i][1]);
}

static void writing_does_not_change_the_id(void **state) {
  (void)state;
  uint64_t base = id_of("{" RUN "\"adamw\"}");
  static const char *const same[] = {
      "{\"optimizer\":\"adamw\",\"train\":{\"steps\":1e1},\"model\":{\"type\":\"net\"}}",
      "{\"optimizer\":{\"beta2\":0.950,\"type\":\"adamw\",\"lr\":1e-3},\"train.steps\":10.0,\"model\":\"net\"}",
      "{" RUN "\"adamw\",\"name\":\"x\",\"notes\":\"y\",\"train.log_every\":7,\"train.checkpoint_every\":3,"
      "\"train.probe_every\":2}",
      "{" RUN "\"adamw\",\"pipeline\":{\"trace\":5,\"watchdog\":0,\"schedule\":\"lagged\",\"partition\":\"flops\"}}",
      "{" RUN
      "\"adamw\",\"correction\":\"none\",\"data\":\"none\",\"train.lr_schedule\":{\"type\":\"cosine\",\"final\":0.1}}",
      "{" RUN
      "\"adamw\",\"delay\":0.0,\"seed\":0,\"pipeline\":{\"stages\":1},\"precision\":\"fp32\",\"correction\":[]}",
  };
  static const char *const other[] = {
      "{" RUN "\"muon\"}",
      "{" RUN "\"adamw\",\"optimizer.lr\":2e-3}",
      "{" RUN "\"adamw\",\"seed\":1}",
      "{" RUN "\"adamw\",\"delay\":1}",
      "{" RUN "\"adamw\",\"correction\":\"ef\"}",
      "{" RUN "\"adamw\",\"correction\":\"ahead\"}",
      "{" RUN "\"adamw\",\"correction\":[\"ef\",\"ahead\"]}",
      "{" RUN "\"adamw\",\"correction\":[\"ahead\",\"ef\"]}",
      "{" RUN "\"adamw\",\"train.lr_schedule\":\"constant\"}",
      "{" RUN "\"adamw\",\"train.lr_schedule.final\":0}",
      "{" RUN "\"adamw\",\"device\":\"paranoid\"}",
      "{" RUN "\"adamw\",\"pipeline.stages\":2}",
      "{" RUN "\"adamw\",\"pipeline.replicas\":2}",
      "{" RUN "\"adamw\",\"pipeline.partition\":\"even\"}",
      "{" RUN "\"adamw\",\"pipeline.partition\":[2]}",
      "{" RUN "\"adamw\",\"pipeline.allow_min_microbatches\":true}",
      "{" RUN "\"adamw\",\"pipeline.schedule\":\"1f1b\"}",
      "{" RUN "\"adamw\",\"pipeline.schedule\":\"1f1b\",\"pipeline.chunks\":1}",
      "{" RUN "\"adamw\",\"pipeline.schedule\":\"custom\",\"pipeline.schedule_file\":\"a\"}",
      "{" RUN "\"adamw\",\"pipeline.schedule\":\"custom\",\"pipeline.schedule_file\":\"b\"}",
  };
  enum { OTHERS = sizeof other / sizeof *other };
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    if (id_of(same[i]) != base) fail_msg("another id: %s", same[i]);
  uint64_t ids[OTHERS];
  for (size_t i = 0; i < OTHERS; i++) {
    ids[i] = id_of(other[i]);
    if (ids[i] == base) fail_msg("the same id: %s", other[i]);
    for (size_t j = 0; j < i; j++) assert_true(ids[i] != ids[j]);
  }
}

/* Builds from "path=json" layers and gives the config. */
static void layer(const char *const *layers, size_t count, pl_run_config *out, pl_json **values) {
  pl_entry entries[8];
  char paths[8][64];
  pl_err e = {0};
  for (size_t i = 0; i < count; i++) {
    const char *equals = strchr(layers[i], '=');
    memcpy(paths[i], layers[i], (size_t)(equals - layers[i]));
    paths[i][equals - layers[i]] = '\0';
    values[i] = parse(equals + 1);
    entries[i] = (pl_entry){.path = paths[i], .value = values[i], .where = paths[i]};
  }
  if (pl_run_config_build(&registries, entries, count, out, &e) != PL_OK) fail_msg("%s", e.text);
}

/* What three layers about the optimizer, after the model and the steps, make of it. */
static void expect_optimizer(const char *first, const char *second, const char *third, const pl_component *type,
                             double lr, double second_value) {
  const char *const layers[] = {"model=\"net\"", "train.steps=1", first, second, third};
  pl_json *values[5];
  pl_run_config c;
  layer(layers, 5, &c, values);
  double stored[2];
  memcpy(stored, c.optimizer.config, sizeof stored);
  assert_ptr_equal(c.optimizer.type, type);
  assert_true(stored[0] == lr && stored[1] == second_value);
  for (int i = 0; i < 5; i++) pl_json_release(values[i]);
}

static void later_layers_win(void **state) {
  (void)state;
  /* a short name keeps earlier dotted keys, an object drops them */
  expect_optimizer("optimizer.lr=0.5", "optimizer=\"muon\"", "seed=1", &muon, 0.5, 0.95);
  expect_optimizer("optimizer.lr=0.5", "optimizer={\"type\":\"muon\"}", "seed=1", &muon, 2e-2, 0.95);
  expect_optimizer("optimizer={\"type\":\"muon\",\"lr\":1}", "optimizer.lr=0.5", "optimizer.lr=0.25", &muon, 0.25,
                   0.95);
  /* the keys of an object go with its type */
  expect_optimizer("optimizer={\"type\":\"adamw\",\"beta1\":0.5}", "optimizer=\"adamw\"", "seed=1", &adamw, 1e-3, 0.5);
  expect_optimizer("optimizer={\"type\":\"adamw\",\"lr\":0.5}", "optimizer=\"muon\"", "seed=1", &muon, 2e-2, 0.95);
  expect_optimizer("optimizer=\"adamw\"", "optimizer.type=\"muon\"", "optimizer.momentum=0.5", &muon, 2e-2, 0.5);
  /* a dotted key of an earlier type that the last one lacks was dropped by the object between */
  expect_optimizer("optimizer.beta1=0.5", "optimizer={\"type\":\"muon\"}", "optimizer.lr=1", &muon, 1, 0.95);
}

static void train_objects_are_their_keys(void **state) {
  (void)state;
  const char *const layers[] = {"model=\"net\"",
                                "optimizer=\"muon\"",
                                "train={\"steps\":5,\"clip\":2}",
                                "train.lr_schedule.final=0.5",
                                "train={\"clip\":3,\"lr_schedule\":\"cosine\"}",
                                "optimizer.adamw={\"lr\":0.25}",
                                "correction.lambda=0.5",
                                "correction=\"ef\""};
  pl_json *values[8];
  pl_run_config c;
  layer(layers, 8, &c, values);
  assert_int_equal(c.train.steps, 5);
  assert_true(c.train.clip == 3);
  assert_true(((const fake_cosine *)(const void *)c.lr_schedule.config)->final == 0.5);
  assert_true(((const fake_muon *)(const void *)c.optimizer.config)->adamw_lr == 0.25);
  assert_true(((const fake_ef *)(const void *)c.corrections[0].config)->lambda == 0.5);
  for (int i = 0; i < 8; i++) pl_json_release(values[i]);
}

static const char rich[] =
    "{\"name\":\"n\\u00e9\",\"model\":{\"type\":\"net\",\"width\":96,\"heads\":3},\"optimizer\":{\"type\":\"muon\","
    "\"lr\":4e-3,\"adamw\":{\"lr\":null}},\"train\":{\"steps\":12,\"lr_schedule\":{\"type\":\"cosine\",\"final\":0}},"
    "\"delay\":[3,2,1,0],\"correction\":[{\"type\":\"ef\",\"lambda\":0.5},\"ahead\"],\"pipeline\":{\"stages\":4,"
    "\"schedule\":\"pipedream\"},"
    "\"data\":{\"type\":\"bytes\",\"train\":\"t.txt\"}}";

static void dumps_build_the_same_config(void **state) {
  (void)state;
  static const char *const runs[] = {rich, "{" RUN "\"adamw\"}",
                                     "{" RUN "\"muon\",\"correction\":\"ef\",\"delay\":[1]}",
                                     "{" RUN "\"muon\",\"delay\":\"pipedream\"}",
                                     "{" RUN "\"muon\",\"pipeline\":{\"schedule\":\"custom\",\"schedule_file\":\"s\","
                                     "\"stages\":2,\"chunks\":2,\"partition\":[1,2,3,4]},\"delay\":[1,1]}"};
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    built b, again;
    build(runs[i], &b);
    pl_json *dump = pl_run_config_dump(&b.config);
    pl_str text = {0}, second = {0};
    pl_json_write_pretty(dump, &text);
    build(pl_str_text(&text), &again);
    assert_true(pl_run_config_id(&again.config) == pl_run_config_id(&b.config));
    pl_json *redump = pl_run_config_dump(&again.config);
    pl_json_write_pretty(redump, &second);
    assert_string_equal(pl_str_text(&text), pl_str_text(&second));
    pl_str_free(&text);
    pl_str_free(&second);
    pl_json_release(dump);
    pl_json_release(redump);
    pl_json_release(b.document);
    pl_json_release(again.document);
  }
}

static void expect_delays(const char *delay, const char *name, const int64_t *expected) {
  built b;
  int64_t delays[4];
  pl_str text = {0};
  pl_str_printf(&text, "{" RUN "\"adamw\",\"pipeline.stages\":4,\"delay\":%s}", delay);
  build(pl_str_text(&text), &b);
  pl_str_free(&text);
  pl_run_config_delays(&b.config, delays);
  for (int i = 0; i < 4; i++) assert_int_equal(delays[i], expected[i]);
  pl_run_config_delay_name(&b.config, &text);
  assert_string_equal(pl_str_text(&text), name);
  pl_str_free(&text);
  pl_json_release(b.document);
}

static void delays_and_names(void **state) {
  (void)state;
  expect_delays("2", "2", (const int64_t[]){2, 2, 2, 2});
  expect_delays("[7,5,3,1]", "[7,5,3,1]", (const int64_t[]){7, 5, 3, 1});
  expect_delays("\"pipedream\"", "pipedream", (const int64_t[]){3, 2, 1, 0});
  built b;
  pl_str text = {0};
  build(rich, &b);
  pl_run_config_correction_name(&b.config, &text);
  assert_string_equal(pl_str_text(&text), "ef+ahead");
  pl_str_free(&text);
  pl_json_release(b.document);
}

static void too_large_components_are_internal_errors(void **state) {
  (void)state;
  static const pl_component huge = {"huge", "", "", no_params, PL_SECTION_SIZE + 1, NULL};
  static const pl_component *const items[] = {&huge};
  pl_registries with = registries;
  with.models = (pl_registry){"model", items, 1};
  pl_json *run = parse("{\"model\":\"huge\"}");
  pl_run_config c;
  pl_err e = {0};
  assert_int_equal(pl_run_config_from_json(&with, run, "", &c, &e), PL_FAIL);
  assert_non_null(strstr(e.text, "internal error"));
  pl_json_release(run);
}

static void schema_lists_components(void **state) {
  (void)state;
  pl_json *schema = pl_run_config_schema(&registries);
  const pl_json *properties = pl_json_get(schema, "properties");
  const pl_json *options = pl_json_get(pl_json_get(properties, "optimizer"), "oneOf");
  assert_int_equal(pl_json_size(options), 3);
  const pl_json *second = pl_json_get(pl_json_at(options, 2), "properties");
  assert_string_equal(pl_json_get_string(pl_json_get(second, "type"), "const", ""), "muon");
  assert_non_null(pl_json_get(second, "momentum"));
  assert_int_equal(pl_json_kind_of(pl_json_get(schema, "additionalProperties")), PL_JSON_BOOL);
  assert_string_equal(pl_json_string(pl_json_at(pl_json_get(pl_json_get(properties, "train"), "required"), 0)),
                      "steps");
  pl_json_release(schema);
}

/* One pass over everything that allocates, its results in `text`; false when memory was out somewhere. jansson's parser
 * takes some of its own failures for syntax errors, so that only a sentence is asked of parsing. */
static bool whole_walk(pl_str *text) {
  pl_json *run = NULL, *dump = NULL, *schema = NULL;
  pl_run_config c;
  pl_err e = {0};
  bool parsed = pl_json_parse(rich, strlen(rich), "rich", &run, &e) == PL_OK;
  bool ok = parsed && pl_run_config_from_json(&registries, run, "rich", &c, &e) == PL_OK;
  if (!ok && !strstr(e.text, parsed ? "memory" : "rich")) fail_msg("allocation %ld: %s", failing, e.text);
  if (ok) {
    dump = pl_run_config_dump(&c);
    schema = pl_run_config_schema(&registries);
    if (dump) pl_json_write_pretty(dump, text);
    if (schema) pl_json_write_canonical(schema, text);
    ok = dump && schema && !text->failed;
  }
  pl_json_release(run);
  pl_json_release(dump);
  pl_json_release(schema);
  return ok;
}

/* A failure is said, or it was made good and the result is the same. */
static void every_allocation_may_fail(void **state) {
  (void)state;
  pl_str expected = {0};
  json_set_alloc_funcs(counted_malloc, free);
  allocations = 0;
  failing = -1;
  assert_true(whole_walk(&expected));
  long all = allocations, said = 0;
  for (long n = 0; n < all; n++) {
    pl_str text = {0};
    allocations = 0;
    failing = n;
    bool ok = whole_walk(&text);
    failing = -1;
    if (ok) assert_string_equal(pl_str_text(&text), pl_str_text(&expected));
    said += !ok;
    pl_str_free(&text);
  }
  assert_true(all > 500 && said > all / 2);
  json_set_alloc_funcs(malloc, free);
  pl_str_free(&expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(defaults_are_filled_in),
      cmocka_unit_test(bad_runs_say_why),
      cmocka_unit_test(writing_does_not_change_the_id),
      cmocka_unit_test(later_layers_win),
      cmocka_unit_test(train_objects_are_their_keys),
      cmocka_unit_test(dumps_build_the_same_config),
      cmocka_unit_test(delays_and_names),
      cmocka_unit_test(too_large_components_are_internal_errors),
      cmocka_unit_test(schema_lists_components),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
