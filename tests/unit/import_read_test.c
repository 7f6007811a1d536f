/* Readers of the files of other programs. */
#include "results_help.h"

#include "results/import_read.h"
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
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
