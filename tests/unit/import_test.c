/* Readers of other programs' files, and the way of a run through import, catalog, export and import again. */
#include "results_help.h"

#include "results/catalog.h"
#include "results/curves.h"
#include "results/export.h"
#include "results/import.h"
#include "results/import_read.h"
#include "results/imported.h"
#include "results/tensorboard.h"

typedef pl_status (*reader)(const pl_import_text *in, pl_import_table *t, pl_err *e);

static pl_status read_bytes_as(reader read, const char *bytes, size_t length, const pl_import_map *map,
                               pl_import_table *t, pl_err *e) {
  static const pl_import_map none = {{NULL}};
  char *copy;
  pl_str seen = {0};
  assert_int_equal(pl_alloc(length + 1, 1, "a file", &copy, NULL), PL_OK);
  memcpy(copy, bytes, length);
  const pl_import_text in = {.path = "some.file", .bytes = copy, .length = length, .map = map ? map : &none};
  pl_import_table_init(t);
  t->seen = &seen;
  pl_status st = read(&in, t, e);
  t->seen = NULL;
  pl_import_table_settle(t);
  pl_str_free(&seen);
  pl_free(copy);
  return st;
}

static void reads(reader read, const char *text, const pl_import_map *map, pl_import_table *t) {
  pl_err e = {0};
  if (read_bytes_as(read, text, strlen(text), map, t, &e) != PL_OK) fail_msg("%s", e.text);
}

static void refuses(reader read, const char *text, const char *says) {
  pl_import_table t;
  pl_err e = {0};
  assert_int_equal(read_bytes_as(read, text, strlen(text), NULL, &t, &e), PL_BAD);
  assert_says(&e, says);
  pl_import_table_free(&t);
}

static void assert_value(const pl_import_table *t, size_t row, int64_t step, pl_series series, double expected) {
  assert_true(row < t->count);
  assert_int_equal(t->rows[row].point.step, step);
  double value = t->rows[row].point.values[series];
  if (!(value == expected || (isnan(value) && isnan(expected)))) fail_msg("%g is not %g", value, expected);
}

static void csv_cells_are_read_as_rfc_4180_has_them(void **state) {
  (void)state;
  pl_import_table t;
  reads(pl_import_csv,
        "\xef\xbb\xbfstep,\"val/loss\",\"a \"\"note\"\", in\ntwo lines\",tokens,lr\r\n"
        "20,3.5,\"x,\ny\",2048,1e-3\r\n"
        "10,4.25,,1024,\"2e-3\"\r\n"
        "\r\n"
        "10,,,,3e-3",
        NULL, &t);
  assert_int_equal(t.count, 2);
  assert_value(&t, 0, 10, PL_SERIES_val_loss, 4.25); /* an empty cell does not replace a number */
  assert_value(&t, 0, 10, PL_SERIES_lr, 3e-3);       /* a later number does */
  assert_value(&t, 0, 10, PL_SERIES_train_loss, (double)NAN);
  assert_value(&t, 1, 20, PL_SERIES_val_loss, 3.5);
  assert_int_equal(t.rows[0].point.tokens, 1024);
  assert_int_equal(t.rows[1].point.tokens, 2048);
  pl_import_table_free(&t);
}

static void columns_of_wandb_are_found_by_their_ends(void **state) {
  (void)state;
  pl_import_table t;
  pl_import_map map = {{NULL}};
  const char *two = "\"Step\",\"a - val/loss\",\"a - val/loss__MIN\",\"b - val/loss\"\n\"5\",\"1.5\",\"1\",\"2.5\"\n";
  reads(pl_import_csv, "\"Step\",\"a - val/loss\",\"a - val/loss__MIN\"\n\"5\",\"1.5\",\"1\"\n", NULL, &t);
  assert_value(&t, 0, 5, PL_SERIES_val_loss, 1.5);
  pl_import_table_free(&t);
  refuses(pl_import_csv, two, "some.file:1: both \"a - val/loss\" and \"b - val/loss\" are val/loss");
  assert_int_equal(pl_import_map_set(&map, "val/loss", "b - val/loss", "--map", NULL), PL_OK);
  reads(pl_import_csv, two, &map, &t);
  assert_value(&t, 0, 5, PL_SERIES_val_loss, 2.5);
  pl_import_table_free(&t);
}

static void bad_lines_are_named(void **state) {
  (void)state;
  pl_err e = {0};
  pl_import_map map = {{NULL}};
  refuses(pl_import_csv, "step,val/loss\n1,2\n2,3,4\n", "some.file:3: has 3 cells; the header has 2");
  refuses(pl_import_csv, "step,val/loss\n1,2\n\n2,low\n", "some.file:4: \"low\" in column \"val/loss\" is no number");
  refuses(pl_import_csv, "step,val/loss\n1.5,2\n", "some.file:2: \"1.5\" in column \"step\" is no step");
  refuses(pl_import_csv, "step,val/loss\n-1,2\n", "is no step");
  refuses(pl_import_csv, "step,val/loss\n,2\n", "is no step");
  refuses(pl_import_csv, "step,val/loss\n1,\"2\n", "some.file:2: cell 2 begins with a quote that is never closed");
  refuses(pl_import_csv, "epoch,val/loss\n1,2\n", "no column is the step; the header has \"epoch\", \"val/loss\"");
  refuses(pl_import_csv, "", "is empty");
  refuses(pl_import_jsonl, "{\"step\": 1, \"val/loss\": 2}\n{\"step\": 2,\n", "some.file:2:");
  refuses(pl_import_jsonl, "{\"step\": 1}\n\n{\"val/loss\": 2}\n", "some.file:3: has no step");
  refuses(pl_import_jsonl, "{\"step\": 1, \"val/loss\": \"low\"}\n", "some.file:1: \"low\" of val/loss is no number");
  refuses(pl_import_jsonl, "[1]\n", "some.file:1: is no JSON object");
  refuses(pl_import_llmc, "s:0 tel:10.9\ntel:3\n", "some.file:2: \"tel:3\" cannot be read");
  refuses(pl_import_llmc, "s:0 tel:10.9\ns:1 trl:x lr:1\n", "some.file:2: \"x\" cannot be read");
  refuses(pl_import_nanogpt, "step:0/9 val_loss:1.2.3\n", "some.file:1: \"1.2.3\" cannot be read");
  assert_int_equal(pl_import_map_set(&map, "val/los", "x", "--map", &e), PL_BAD);
  assert_says(&e, "--map: saw the series \"val/los\"; did you mean \"val/loss\"?");
}

static void json_lines_may_be_nested_and_python_writes_nan(void **state) {
  (void)state;
  pl_import_table t;
  pl_import_map map = {{NULL}};
  assert_int_equal(pl_import_map_set(&map, "val/loss", "eval.loss", "--map", NULL), PL_OK);
  reads(pl_import_jsonl,
        "{\"_step\": 3, \"eval\": {\"loss\": 2.5}, \"note\": \"NaN, or \\\" Infinity\"}\n"
        "{\"_step\": 7, \"eval\": {\"loss\": NaN}, \"lr\": 1e-4}\n{\"_step\": 8, \"eval\": null}\n",
        &map, &t);
  assert_int_equal(t.count, 3);
  assert_value(&t, 0, 3, PL_SERIES_val_loss, 2.5);
  assert_value(&t, 1, 7, PL_SERIES_lr, 1e-4);
  assert_int_equal(t.bad_step, 7);
  pl_import_table_free(&t);
}

static void text_logs_are_read(void **state) {
  (void)state;
  pl_import_table t;
  reads(pl_import_llmc, "s:0 tel:10.9870\ns:0 eval:0.2441\ns:1 trl:9.5 lr:0.000002 norm:3.20\ns:1 tel:9.25\n", NULL,
        &t);
  assert_int_equal(t.count, 2);
  assert_value(&t, 0, 0, PL_SERIES_val_loss, 10.987);
  assert_value(&t, 1, 1, PL_SERIES_val_loss, 9.25);
  assert_value(&t, 1, 1, PL_SERIES_train_loss, 9.5);
  assert_value(&t, 1, 1, PL_SERIES_lr, 2e-6);
  assert_value(&t, 1, 1, PL_SERIES_grad_norm, 3.2);
  pl_import_table_free(&t);
  reads(pl_import_nanogpt,
        "import os\nprint0(f\"step:{step}/{steps} val_loss:{loss}\")\n====\n"
        "step:0/20 val_loss:10.8258 train_time:0ms step_avg:nanms\nstep:10/20 train_loss:5.5 train_time:1630ms "
        "step_avg:163.00ms\nstep:20/20 val_loss:3.27 train_time:3.5s step_avg:98.00ms\npeak memory: 39 GiB\n",
        NULL, &t);
  assert_int_equal(t.count, 3);
  assert_value(&t, 0, 0, PL_SERIES_val_loss, 10.8258);
  assert_value(&t, 1, 10, PL_SERIES_train_loss, 5.5);
  assert_value(&t, 1, 10, PL_SERIES_seconds, 1630 * 1e-3);
  assert_value(&t, 2, 20, PL_SERIES_val_loss, 3.27);
  assert_value(&t, 2, 20, PL_SERIES_seconds, 3.5);
  pl_import_table_free(&t);
}

static pl_curve_format guess(const char *text) {
  char bytes[256];
  snprintf(bytes, sizeof bytes, "%s", text);
  const pl_import_text in = {.path = "x", .bytes = bytes, .length = strlen(bytes)};
  return pl_import_guess(&in);
}

static void formats_are_known_by_their_beginning(void **state) {
  (void)state;
  assert_int_equal(guess("step,val/loss\n1,2\n"), PL_FORMAT_CSV);
  assert_int_equal(guess("\n {\"step\": 1}\n"), PL_FORMAT_JSONL);
  assert_int_equal(guess("s:0 tel:10.9\n"), PL_FORMAT_LLMC);
  assert_int_equal(guess("import os\nstep:0/10 val_loss:3\n"), PL_FORMAT_NANOGPT);
  assert_int_equal(guess("import os\nprint(f'step:{i}/10')\n"), PL_FORMAT_CSV);
}

/* What TFRecord stores instead of a CRC. */
static uint32_t mask(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

static void checksums_are_those_of_rfc_3720(void **state) {
  (void)state;
  unsigned char bytes[32] = {0};
  assert_int_equal(pl_crc32c_masked("123456789", 9), mask(0xe3069283u));
  assert_int_equal(pl_crc32c_masked(bytes, 32), mask(0x8a9136aau));
  memset(bytes, 0xff, 32);
  assert_int_equal(pl_crc32c_masked(bytes, 32), mask(0x62a8ab43u));
  for (size_t i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
  assert_int_equal(pl_crc32c_masked(bytes, 32), mask(0x46dd794eu));
}

/* Files that tensorboardX and tensorboard wrote. */
static void event_files_of_other_programs_are_read(void **state) {
  (void)state;
  static const char *const files[] = {PL_TESTS "/vectors/tensorboard/events.out.tfevents.1.simple",
                                      PL_TESTS "/vectors/tensorboard/events.out.tfevents.1.tensors"};
  pl_import_table t;
  pl_import_map map = {{NULL}};
  char *bytes;
  pl_err e = {0};
  size_t length = read_bytes(files[0], &bytes);
  assert_true(pl_event_file_begins(bytes, length));
  assert_int_equal(pl_import_map_set(&map, "val/loss", "val_loss", "--map", NULL), PL_OK);
  if (read_bytes_as(pl_import_tensorboard, bytes, length, &map, &t, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(t.count, 5);
  for (int i = 0; i < 5; i++) {
    assert_value(&t, (size_t)i, i * 10, PL_SERIES_val_loss, (double)(float)(4.0 / (i + 1)));
    assert_value(&t, (size_t)i, i * 10, PL_SERIES_train_loss, (double)(float)(3.5 / (i + 1)));
  }
  pl_import_table_free(&t);
  for (size_t i = 0; i < length; i++) { /* any damaged byte is seen */
    bytes[i] = (char)(bytes[i] ^ 4);
    e = (pl_err){0};
    assert_int_equal(read_bytes_as(pl_import_tensorboard, bytes, length, &map, &t, &e), PL_BAD);
    assert_says(&e, "some.file: the record at byte ");
    pl_import_table_free(&t);
    bytes[i] = (char)(bytes[i] ^ 4);
  }
  pl_free(bytes);
  length = read_bytes(files[1], &bytes); /* float_val, tensor_content; 20 again after a restart, as int64_val */
  if (read_bytes_as(pl_import_tensorboard, bytes, length, NULL, &t, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(t.count, 3);
  assert_value(&t, 0, 0, PL_SERIES_val_loss, 4.25);
  assert_value(&t, 1, 10, PL_SERIES_val_loss, 3.75);
  assert_value(&t, 2, 20, PL_SERIES_val_loss, 3);
  pl_import_table_free(&t);
  for (size_t cut = 1; cut < 16; cut++) {
    e = (pl_err){0};
    assert_int_equal(read_bytes_as(pl_import_tensorboard, bytes, length - cut, NULL, &t, &e), PL_BAD);
    assert_says(&e, "is torn");
    pl_import_table_free(&t);
  }
  pl_free(bytes);
}

/* Records with whole checksums and wild content are refused or read, never trusted. */
static void wild_protocol_buffers_do_no_harm(void **state) {
  (void)state;
  uint64_t seed = 1;
  for (int n = 0; n < 4000; n++) {
    char wild[64];
    pl_str file = {0};
    pl_import_table t;
    size_t length = (size_t)n % sizeof wild;
    for (size_t i = 0; i < length; i++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      wild[i] = (char)(i == 0 ? 0x2a : i == 1 ? (char)(length - 2) : i == 2 ? 0x0a : (char)(seed >> 33));
    }
    pl_record_append(&file, wild, length);
    pl_err e = {0};
    pl_status st = read_bytes_as(pl_import_tensorboard, file.text, file.length, NULL, &t, &e);
    assert_true(st == PL_OK || (st == PL_BAD && e.text[0] != '\0'));
    pl_import_table_free(&t);
    pl_str_free(&file);
  }
}

static pl_json *parse(const char *text) {
  pl_json *out = NULL;
  pl_err e = {0};
  if (pl_json_parse(text, strlen(text), "test", &out, &e) != PL_OK) fail_msg("%s", e.text);
  return out;
}

static uint64_t id_of(const char *settings) {
  pl_json *given = parse(settings), *document = pl_json_new_object();
  pl_imported *i = NULL;
  pl_err e = {0};
  if (pl_imported_merge(document, given, "run", &e) != PL_OK) fail_msg("%s", e.text);
  if (pl_imported_read(document, "run", &i, &e) != PL_OK) fail_msg("%s", e.text);
  uint64_t id = pl_run_config_id(pl_imported_config(i));
  pl_json *dump = pl_run_config_dump(pl_imported_config(i));
  pl_imported *again = NULL;
  if (pl_imported_read(dump, "run", &again, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(pl_run_config_id(pl_imported_config(again)), id);
  pl_imported_free(again);
  pl_imported_free(i);
  pl_json_release(dump);
  pl_json_release(document);
  pl_json_release(given);
  return id;
}

static void what_is_stated_is_the_identity(void **state) {
  (void)state;
  const uint64_t plain = id_of("{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001}");
  assert_int_equal(plain, id_of("{\"optimizer\": {\"lr\": 1e-3, \"type\": \"soap\"}}"));
  assert_int_equal(plain, id_of("{\"optimizer\": {\"lr\": 1e-3, \"type\": \"soap\"}, \"seed\": 0, \"delay\": [0]}"));
  static const char *const others[] = {
      "{\"optimizer\": \"soap\"}",
      "{\"optimizer\": \"adan\", \"optimizer.lr\": 0.001}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.002}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"optimizer.beta2\": 0.95}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"optimizer.inner.lr\": 0.95}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"seed\": 1}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"delay\": 1}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"delay\": [3, 2, 1, 0]}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"correction\": \"ef\"}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"correction\": [\"ef\", {\"type\": \"mine\", \"x\": 1}]}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"model.size\": \"360M\"}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"data.train\": [\"a\", \"b\"]}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"train.batch_tokens\": 1024}",
  };
  enum { COUNT = sizeof others / sizeof *others };
  uint64_t ids[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    ids[i] = id_of(others[i]);
    assert_true(ids[i] != plain);
    for (size_t k = 0; k < i; k++) assert_true(ids[i] != ids[k]);
  }
}

static void settings_that_make_no_sense_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *settings, *says;
  } cases[] = {
      {"{}", "run: no optimizer is stated"},
      {"{\"optimizer.lr\": 1}", "run: no optimizer is stated"},
      {"{\"optimizer\": 3}", "run.optimizer: must be a name or an object"},
      {"{\"optimizer\": \"soap\", \"optimizer.lr\": 0}", "run.optimizer.lr: must be a number > 0"},
      {"{\"optimizer\": \"soap\", \"optimizer.lr\": \"low\"}", "run.optimizer.lr: must be a number > 0"},
      {"{\"optimizer\": \"soap\", \"train.step\": 3}", "unknown key \"step\" (of train); did you mean \"steps\"?"},
      {"{\"optimizer\": \"soap\", \"sed\": 3}", "unknown key \"sed\""},
      {"{\"optimizer\": \"soap\", \"seed\": \"x\"}", "run.seed: must be"},
      {"{\"optimizer\": \"soap\", \"delay\": \"pipedream\"}", "pipedream needs pipeline.stages"},
      {"{\"optimizer\": \"soap\", \"delay\": [1, 0], \"pipeline.stages\": 3}", "run.delay: has 2 values"},
      {"{\"optimizer\": \"soap\", \"imported\": 1}", "pipelag's own"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_json *given = parse(cases[i].settings), *document = pl_json_new_object();
    pl_imported *out = NULL;
    pl_err e = {0};
    pl_status st = pl_imported_merge(document, given, "run", &e);
    if (st == PL_OK) st = pl_imported_read(document, "run", &out, &e);
    assert_int_equal(st, PL_BAD);
    assert_says(&e, cases[i].says);
    pl_imported_free(out);
    pl_json_release(document);
    pl_json_release(given);
  }
}

static const char curve_text[] = "step,val/loss,train/loss,seconds\n0,4.5,,0\n50,3.75,3.875,1.5\n100,3.25,3.125,3\n";

static pl_status import_one(void **state, const char *file, const char *settings, const char *dir,
                            pl_import_counts *counts, pl_err *e) {
  pl_status st = PL_OK;
  char path[256], out[256];
  pl_import *m = NULL;
  pl_json *config = parse(settings);
  const char *const paths[] = {in_temp(state, file, path)};
  const pl_import_spec spec = {.paths = paths, .path_count = 1, .config = config, .where = "run"};
  PL_TRY(pl_import_begin(&m, e));
  PL_TRY(pl_import_add(m, &spec, e));
  PL_TRY(pl_import_commit(m, in_temp(state, dir, out), NULL, counts, e));
out:
  pl_import_end(m);
  pl_json_release(config);
  return st;
}

static pl_catalog open_catalog(void **state, const char *name) {
  char path[256];
  pl_catalog c;
  pl_err e = {0};
  if (pl_catalog_open_any(&toys, in_temp(state, name, path), NULL, NULL, &c, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(c.unreadable, 0);
  return c;
}

static const char soap[] =
    "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.003, \"delay\": 1, \"train.batch_tokens\": 1024}";

static void an_imported_run_is_read_like_any_other(void **state) {
  char path[256];
  pl_err e = {0};
  pl_import_counts counts;
  write_bytes(in_temp(state, "a.csv", path), curve_text, strlen(curve_text));
  if (import_one(state, "a.csv", soap, "out", &counts, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(counts.added, 1);
  pl_catalog c = open_catalog(state, "out");
  assert_int_equal(c.count, 1);
  assert_string_equal(c.name, "out");
  const pl_catalog_run *r = &c.runs[0];
  assert_true(r->current && r->has_result && r->imported && r->state == PL_RUN_DONE);
  assert_int_equal(r->id, id_of(soap));
  assert_true(pl_run_config_lr(r->config) == 0.003);
  assert_string_equal(r->config->optimizer.type->name, "soap");
  const pl_outcome *o = &r->result.outcome;
  assert_true(o->initial_val_loss == 4.5 && o->final_val_loss == 3.25 && o->best_val_loss == 3.25);
  assert_true(o->final_train_loss == 3.125 && o->seconds == 3);
  assert_int_equal(o->steps, 100);
  assert_int_equal(o->tokens, 102400);
  assert_int_equal(r->config->train.steps, 100); /* for plots */
  assert_int_equal(r->config->train.val_every, 50);
  pl_curve curve;
  assert_int_equal(pl_catalog_curve(r, &curve, &e), PL_OK);
  assert_int_equal(curve.count, 3);
  assert_int_equal(curve.attempts, 1);
  assert_true(curve.rows[1].point.values[PL_SERIES_train_loss] == 3.875 && curve.rows[1].point.tokens == 51200);
  pl_curve_free(&curve);
  pl_catalog_free(&c);
}

static size_t count_results(void **state, const char *dir) {
  char path[256];
  pl_catalog c;
  if (!pl_path_exists(in_temp(state, dir, path))) return 0;
  c = open_catalog(state, dir);
  size_t n = 0;
  for (size_t i = 0; i < c.count; i++) n += c.runs[i].has_result;
  pl_catalog_free(&c);
  return n;
}

static void importing_again_changes_nothing(void **state) {
  char path[256];
  pl_err e = {0};
  pl_import_counts counts;
  write_bytes(in_temp(state, "a.csv", path), curve_text, strlen(curve_text));
  write_bytes(in_temp(state, "moved.csv", path), curve_text, strlen(curve_text));
  assert_int_equal(import_one(state, "a.csv", soap, "out", &counts, &e), PL_OK);
  assert_int_equal(import_one(state, "a.csv", soap, "out", &counts, &e), PL_OK);
  assert_true(counts.added == 0 && counts.known == 1);
  assert_int_equal(import_one(state, "moved.csv", soap, "out", &counts, &e), PL_OK);
  assert_int_equal(counts.known, 1);
  write_bytes(in_temp(state, "a.csv", path), "step,val/loss\n0,4.5\n100,3.2\n", 28);
  assert_int_equal(import_one(state, "a.csv", soap, "out", &counts, &e), PL_BAD);
  assert_says(&e, "was imported from ");
  assert_says(&e, "/a.csv (");
  assert_says(&e, "; now it would be ");
  e = (pl_err){0};
  assert_int_equal(import_one(state, "a.csv", "{\"optimizer\": \"soap\", \"seed\": 1}", "out", &counts, &e), PL_OK);
  pl_catalog c = open_catalog(state, "out");
  assert_int_equal(c.count, 2);
  assert_true(c.runs[0].current && c.runs[1].current && c.runs[0].result.outcome.final_val_loss == 3.25);
  pl_catalog_free(&c);
}

static void nothing_is_half_imported(void **state) {
  char path[256];
  pl_err e = {0};
  pl_import *m = NULL;
  char *name = NULL;
  const pl_import_map map = {{NULL}};
  const char *text = "{\"runs\": [{\"config\": {\"optimizer\": \"a\"}, \"final\": {\"final_val_loss\": 3}},"
                     " {\"config\": {\"optimizer\": \"b\"}, \"file\": \"bad.csv\"}]}";
  write_bytes(in_temp(state, "bad.csv", path), "step,val/loss\n1,x\n", 18);
  write_bytes(in_temp(state, "m.json", path), text, strlen(text));
  assert_int_equal(pl_import_begin(&m, &e), PL_OK);
  assert_int_equal(pl_import_add_manifest(m, path, NULL, &map, &name, &e), PL_BAD);
  assert_says(&e, "bad.csv:2: \"x\" in column \"val/loss\" is no number");
  pl_import_end(m);
  assert_int_equal(count_results(state, "out"), 0);
  text = "{\"runs\": [{\"config\": {\"optimizer\": \"a\"}, \"final\": {\"final_val_loss\": 3}},"
         " {\"config\": {\"optimizer\": \"a\", \"seed\": 0}, \"final\": {\"final_val_loss\": 4}}]}";
  write_bytes(path, text, strlen(text));
  e = (pl_err){0};
  assert_int_equal(pl_import_begin(&m, &e), PL_OK);
  assert_int_equal(pl_import_add_manifest(m, path, NULL, &map, &name, &e), PL_BAD);
  assert_says(&e, "m.json: runs[1]: has the same configuration as ");
  assert_says(&e, "m.json: runs[0]");
  pl_import_end(m);
}

static void a_loss_that_ends_as_nan_has_diverged(void **state) {
  static const struct {
    const char *text;
    pl_run_state state;
  } cases[] = {{"step,val/loss\n0,4\n10,3\n20,nan\n", PL_RUN_DIVERGED},
               {"step,val/loss\n0,4\n10,inf\n20,3\n", PL_RUN_DONE},
               {"step,val/loss\n0,4\n10,3\n20,\n", PL_RUN_DONE},
               {"step,val/loss,train/loss\n0,4,\n10,3,3\n15,,NaN\n", PL_RUN_DIVERGED},
               {"step,val/loss\n0,4\n10,5\n", PL_RUN_DIVERGED}, /* above where it began */
               {"step,val/loss\n5,4\n10,5\n", PL_RUN_DONE}};    /* where it began is not known */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[256], settings[64];
    pl_err e = {0};
    pl_import_counts counts;
    snprintf(settings, sizeof settings, "{\"optimizer\": \"soap\", \"seed\": %zu}", i);
    write_bytes(in_temp(state, "a.csv", path), cases[i].text, strlen(cases[i].text));
    if (import_one(state, "a.csv", settings, "out", &counts, &e) != PL_OK) fail_msg("%s", e.text);
    pl_catalog c = open_catalog(state, "out");
    assert_int_equal(c.runs[i].state, cases[i].state);
    pl_catalog_free(&c);
  }
}

static void assert_same_curves(const pl_catalog_run *a, const pl_catalog_run *b, double tolerance) {
  pl_curve x, y;
  assert_int_equal(pl_catalog_curve(a, &x, NULL), PL_OK);
  assert_int_equal(pl_catalog_curve(b, &y, NULL), PL_OK);
  assert_int_equal(x.count, y.count);
  for (size_t i = 0; i < x.count; i++) {
    assert_int_equal(x.rows[i].point.step, y.rows[i].point.step);
    assert_int_equal(x.rows[i].point.tokens, y.rows[i].point.tokens);
    for (size_t s = 0; s < PL_SERIES_COUNT; s++) {
      double p = x.rows[i].point.values[s], q = y.rows[i].point.values[s];
      if (!(isnan(p) && isnan(q)) && !(fabs(p - q) <= tolerance * fabs(p))) fail_msg("%.17g is not %.17g", p, q);
    }
  }
  pl_curve_free(&x);
  pl_curve_free(&y);
}

/* Through every form and back: the same runs with the same curves, in float32 where the form has no more. */
static void what_is_exported_can_be_imported(void **state) {
  static const struct {
    pl_curve_format format;
    double tolerance;
  } forms[] = {{PL_FORMAT_CSV, 0}, {PL_FORMAT_JSONL, 0}, {PL_FORMAT_TENSORBOARD, 0x1p-24}};
  char path[256], dir[256];
  pl_err e = {0};
  pl_import_counts counts;
  const char *text = "step,val/loss,lr\n0,4.1,\n7,3.3,0.0123456789\n9,,1e-300\n10,3.0000001,0.5\n";
  write_bytes(in_temp(state, "a.csv", path), curve_text, strlen(curve_text));
  assert_int_equal(import_one(state, "a.csv", soap, "out", &counts, &e), PL_OK);
  write_bytes(path, text, strlen(text));
  assert_int_equal(import_one(state, "a.csv",
                              "{\"optimizer\": {\"type\": \"adan\", \"b\": true, \"in\": {\"x\": \"y\"}},"
                              " \"correction\": [\"ef\", \"mine\"], \"delay\": [1, 0]}",
                              "out", &counts, &e),
                   PL_OK);
  pl_catalog c = open_catalog(state, "out");
  for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
    char name[32], again[32];
    pl_import *m = NULL;
    char *title = NULL;
    const pl_import_map map = {{NULL}};
    snprintf(name, sizeof name, "form%zu", f);
    snprintf(again, sizeof again, "again%zu", f);
    if (pl_export(&c, forms[f].format, in_temp(state, name, path), NULL, NULL, &e) != PL_OK) fail_msg("%s", e.text);
    strcat(path, "/import.json");
    assert_int_equal(pl_import_begin(&m, &e), PL_OK);
    if (pl_import_add_manifest(m, path, NULL, &map, &title, &e) != PL_OK) fail_msg("%s", e.text);
    assert_string_equal(title, "out");
    if (pl_import_commit(m, in_temp(state, again, dir), title, &counts, &e) != PL_OK) fail_msg("%s", e.text);
    pl_import_end(m);
    pl_free(title);
    pl_catalog d = open_catalog(state, again);
    assert_int_equal(d.count, 2);
    for (size_t i = 0; i < 2; i++) {
      assert_int_equal(c.runs[i].id, d.runs[i].id);
      assert_true(c.runs[i].result.outcome.final_val_loss == d.runs[i].result.outcome.final_val_loss);
      /* 1e-300 is no float32 */
      if (forms[f].tolerance == 0 || i == 0) assert_same_curves(&c.runs[i], &d.runs[i], forms[f].tolerance);
    }
    pl_catalog_free(&d);
  }
  pl_catalog_free(&c);
}

static void a_collected_file_is_a_catalog(void **state) {
  char path[256];
  pl_err e = {0};
  pl_import_counts counts;
  write_bytes(in_temp(state, "a.csv", path), curve_text, strlen(curve_text));
  assert_int_equal(import_one(state, "a.csv", soap, "out", &counts, &e), PL_OK);
  write_bytes(path, "step,val/loss\n0,4\n10,nan\n", 25);
  assert_int_equal(import_one(state, "a.csv", "{\"optimizer\": \"adan\"}", "out", &counts, &e), PL_OK);
  pl_catalog c = open_catalog(state, "out");
  if (pl_curves_collect(&c, in_temp(state, "all.h5", path), NULL, NULL, &e) != PL_OK) fail_msg("%s", e.text);
  pl_catalog d = open_catalog(state, "all.h5");
  assert_string_equal(d.name, "out");
  assert_int_equal(d.count, c.count);
  for (size_t i = 0; i < c.count; i++) {
    const pl_catalog_run *a = &c.runs[i], *b = &d.runs[i];
    pl_json *x = NULL, *y = NULL;
    assert_true(a->id == b->id && a->index == b->index && a->current == b->current && a->state == b->state);
    assert_true(a->has_result == b->has_result && b->imported);
    assert_string_equal(a->label, b->label);
    assert_memory_equal(&a->result.outcome.steps, &b->result.outcome.steps, sizeof(int64_t));
    assert_string_equal(a->result.outcome.reason, b->result.outcome.reason);
    assert_string_equal(a->result.ended, b->result.ended);
    assert_int_equal(pl_run_config_id(a->config), pl_run_config_id(b->config));
    assert_int_equal(pl_catalog_meta(a, &x, &e), PL_OK);
    assert_int_equal(pl_catalog_meta(b, &y, &e), PL_OK);
    assert_true(x && pl_json_equal(x, y));
    pl_json_release(x);
    pl_json_release(y);
    assert_same_curves(a, b, 0);
  }
  pl_catalog_free(&d);
  pl_catalog_free(&c);
}

static void other_files_are_no_catalogs(void **state) {
  char path[256], *bytes;
  pl_err e = {0};
  pl_import_counts counts;
  pl_catalog c;
  write_bytes(in_temp(state, "a.csv", path), curve_text, strlen(curve_text));
  assert_int_equal(pl_catalog_open_any(&toys, path, NULL, NULL, &c, &e), PL_BAD);
  assert_says(&e, "a.csv: is no HDF5 file");
  assert_int_equal(import_one(state, "a.csv", soap, "out", &counts, &e), PL_OK);
  e = (pl_err){0};
  char *curves;
  assert_int_equal(pl_run_path(in_temp(state, "out", path), id_of(soap), "curves.h5", &curves, NULL), PL_OK);
  assert_int_equal(pl_catalog_open_any(&toys, curves, NULL, NULL, &c, &e), PL_BAD);
  assert_says(&e, "was not made by `pipelag collect`");
  pl_free(curves);
  c = open_catalog(state, "out");
  assert_int_equal(pl_curves_collect(&c, in_temp(state, "all.h5", path), NULL, NULL, NULL), PL_OK);
  pl_catalog_free(&c);
  size_t length = read_bytes(path, &bytes);
  for (size_t cut = 1; cut < length; cut += length / 16) { /* never a crash, and mostly an error */
    write_bytes(path, bytes, length - cut);
    e = (pl_err){0};
    if (pl_catalog_open_any(&toys, path, NULL, NULL, &c, &e) == PL_OK)
      pl_catalog_free(&c);
    else
      assert_true(e.text[0] != '\0');
  }
  pl_free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(csv_cells_are_read_as_rfc_4180_has_them),
      cmocka_unit_test(columns_of_wandb_are_found_by_their_ends),
      cmocka_unit_test(bad_lines_are_named),
      cmocka_unit_test(json_lines_may_be_nested_and_python_writes_nan),
      cmocka_unit_test(text_logs_are_read),
      cmocka_unit_test(formats_are_known_by_their_beginning),
      cmocka_unit_test(checksums_are_those_of_rfc_3720),
      cmocka_unit_test(event_files_of_other_programs_are_read),
      cmocka_unit_test(wild_protocol_buffers_do_no_harm),
      cmocka_unit_test(what_is_stated_is_the_identity),
      cmocka_unit_test(settings_that_make_no_sense_are_refused),
      cmocka_unit_test_setup_teardown(an_imported_run_is_read_like_any_other, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(importing_again_changes_nothing, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(nothing_is_half_imported, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(a_loss_that_ends_as_nan_has_diverged, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(what_is_exported_can_be_imported, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(a_collected_file_is_a_catalog, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(other_files_are_no_catalogs, make_temp, remove_temp),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
