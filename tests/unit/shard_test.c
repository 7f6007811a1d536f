/* Token shards: both formats read, every bad header refused by name, windows that stay inside a shard, the writer. */
#include "tests/unit/data_files.h"

#include "models/data/parts/corpus.h"

enum { CONTEXT = 6, WINDOW = CONTEXT + 1 };

static void put_u32(unsigned char *p, uint32_t value) {
  for (int i = 0; i < 4; i++) p[i] = (unsigned char)(value >> 8 * i);
}

/* Tokens from, from + 1, ... */
static void write_tokens(folder *f, const char *name, bool header, size_t width, uint32_t from, uint32_t count) {
  unsigned char bytes[1024 + 4 * 512] = {0};
  size_t start = header ? 1024 : 0;
  assert_true(count <= 512);
  if (header) {
    put_u32(bytes, width == 4 ? 20240801 : 20240520);
    put_u32(bytes + 4, width == 4 ? 7 : 1);
    put_u32(bytes + 8, count);
  }
  for (uint32_t i = 0; i < count; i++) {
    unsigned char token[4];
    put_u32(token, from + i);
    memcpy(bytes + start + width * i, token, width);
  }
  write_file(f, name, bytes, start + width * count);
}

/* Overwrites four bytes, or with `size` below the file's size cuts it there, or above it lengthens it. */
static void spoil(folder *f, const char *name, long at, uint32_t value, long size) {
  unsigned char word[4];
  put_u32(word, value);
  FILE *file = fopen(in_folder(f, name), "r+b");
  assert_non_null(file);
  if (at >= 0) {
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fwrite(word, 1, 4, file), 4);
  }
  fclose(file);
  if (size >= 0) assert_int_equal(truncate(in_folder(f, name), size), 0);
}

static void assert_run(const int32_t *w, size_t length) {
  for (size_t i = 1; i < length; i++) assert_int_equal(w[i], w[0] + (int32_t)i);
}

static void check_reads_all_formats(void **state) {
  folder *f = *state;
  opened o;
  int32_t w[WINDOW];
  const char *format[] = {"llmc", "nanogpt", "llmc"};
  for (size_t kind = 0; kind < 3; kind++) {
    for (size_t named = 0; named < 2; named++) {
      char json[200];
      uint32_t base = kind == 2 ? 100000 : 40000;
      write_tokens(f, "t_1.bin", kind != 1, kind == 2 ? 4 : 2, base, 50);
      write_tokens(f, "v.bin", kind != 1, kind == 2 ? 4 : 2, base + 1000, 31);
      snprintf(json, sizeof json, "{'train': 't_*.bin', 'val': 'v.bin', 'vocab': 130000, 'format': '%s'}",
               named ? format[kind] : "auto");
      must_open(f, &pl_dataset_tokens, json, CONTEXT, 30, &o);
      assert_int_equal(o.type->vocab(o.set), 130000);
      for (size_t i = 0; i < 5; i++) {
        o.type->val_window(o.set, i, w);
        assert_int_equal(w[0], (int32_t)base + 1000 + (int32_t)(CONTEXT * i));
        assert_run(w, WINDOW);
      }
      o.type->train_window(o.set, 1, 0, 0, w);
      assert_in_range(w[0], base, base + 50 - WINDOW);
      assert_run(w, WINDOW);
      close_opened(&o);
    }
  }
}

static void check_windows_stay_inside_a_shard(void **state) {
  folder *f = *state;
  opened o;
  int32_t w[WINDOW];
  enum { DRAWS = 6600 };
  size_t hits[3] = {0}, count[3] = {10, 50, 7}; /* 4, 44 and 1 positions */
  write_tokens(f, "t_1.bin", true, 2, 0, 10);
  write_tokens(f, "t_2.bin", false, 2, 1000, 50);
  write_tokens(f, "t_3.bin", true, 2, 2000, 7);
  write_tokens(f, "v_1.bin", true, 2, 3000, 25);
  write_tokens(f, "v_2.bin", true, 2, 4000, 25);
  must_open(f, &pl_dataset_tokens, "{'train': 't_*.bin', 'val': 'v_*.bin'}", CONTEXT, 36, &o);
  for (int64_t step = 0; step < DRAWS; step++) {
    o.type->train_window(o.set, 5, step, 2, w);
    assert_run(w, WINDOW);
    size_t shard = (size_t)w[0] / 1000;
    assert_in_range(w[WINDOW - 1] % 1000, 6, count[shard] - 1);
    hits[shard]++;
  }
  /* Binomial, five standard deviations. */
  size_t positions[3] = {4, 44, 1};
  for (size_t s = 0; s < 3; s++) {
    double p = (double)positions[s] / 49, sd = sqrt(DRAWS * p * (1 - p));
    assert_true(fabs((double)hits[s] - DRAWS * p) < 5 * sd);
  }
  for (size_t i = 0; i < 6; i++) {
    o.type->val_window(o.set, i, w);
    assert_run(w, WINDOW);
    assert_int_equal(w[0] / 1000, i < 3 ? 3 : 4);
  }
  o.type->val_window(o.set, 0, w);
  assert_int_equal(w[0], 3000);
  o.type->val_window(o.set, 5, w);
  assert_int_equal(w[WINDOW - 1], 4024);
  close_opened(&o);
}

typedef struct bad_shard {
  long at; /* byte of the word that is replaced; -1: none */
  uint32_t value;
  long size; /* of the file; -1: as it is */
  const char *format, *part;
} bad_shard;

static void check_bad_headers(void **state) {
  folder *f = *state;
  static const bad_shard cases[] = {
      {0, 12345, -1, "llmc", "starts with magic 12345; llm.c shards start with 20240520"},
      {0, 20240522, -1, "auto", "is an llm.c evaluation file (magic 20240522)"},
      {0, 20240326, -1, "auto", "is an llm.c model checkpoint (magic 20240326)"},
      {0, 20240522, -1, "llmc", "is an llm.c evaluation file"},
      {4, 2, -1, "auto", "of version 2; version 1 is allowed"},
      {0, 20240801, -1, "auto", "of version 1; version 7 is allowed"},
      {8, 41, -1, "auto", "says 41 tokens, which is a file of 1106 bytes, but it has 1104"},
      {-1, 0, 1103, "auto", "says 40 tokens, which is a file of 1104 bytes, but it has 1103"},
      {-1, 0, 1105, "auto", "but it has 1105"},
      {8, 0xFFFFFFFF, -1, "auto", "says -1 tokens; 0 to 2147483647 are allowed"},
      {-1, 0, 1023, "auto", "has 1023 bytes, less than the 1024 bytes of an llm.c header"},
      {-1, 0, 1103, "nanogpt", "has 1103 bytes; a nanoGPT file of uint16 tokens has an even number"},
      {1024 + 2 * 30, 70 | 500u << 16, -1, "auto", "token 31 is 500; with data.vocab 100 tokens are 0 to 99"},
      {-1, 0, -1, "nanogpt", "token 0 is 55432"}, /* the magic read as a token */
  };
  write_tokens(f, "v.bin", true, 2, 0, 40);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char json[200];
    write_tokens(f, "t.bin", true, 2, 0, 40);
    spoil(f, "t.bin", cases[i].at, cases[i].value, cases[i].size);
    snprintf(json, sizeof json, "{'train': 't.bin', 'val': 'v.bin', 'vocab': 100, 'format': '%s'}", cases[i].format);
    must_refuse(f, &pl_dataset_tokens, json, CONTEXT, 12, cases[i].part);
    must_refuse(f, &pl_dataset_tokens, json, CONTEXT, 12, in_folder(f, "t.bin"));
  }
}

static void check_bad_lists(void **state) {
  folder *f = *state;
  const pl_dataset_type *t = &pl_dataset_tokens;
  write_tokens(f, "t.bin", true, 2, 0, 40);
  write_tokens(f, "short.bin", true, 2, 0, CONTEXT);
  write_tokens(f, "v.bin", true, 2, 0, 25);
  must_refuse(f, t, "{'train': 'shard_*.bin', 'val': 'v.bin'}", CONTEXT, 12,
              "data.train: no file matches \"shard_*.bin\"");
  must_refuse(f, t, "{'train': 't.bin', 'val': 'w.bin'}", CONTEXT, 12, in_folder(f, "w.bin"));
  must_refuse(f, t, "{'train': ['t.bin', 'short.bin'], 'val': 'v.bin'}", CONTEXT, 12,
              "has 6 tokens, less than one window of context + 1 = 7");
  must_refuse(f, t, "{'train': 't.bin', 'val': 't.bin'}", CONTEXT, 12, "name one file twice");
  must_refuse(f, t, "{'train': 't.bin', 'val': 'v.bin'}", CONTEXT, 30, "holds 4 sequences of 6 tokens (24 tokens)");
}

static void check_written_shards_read_back(void **state) {
  folder *f = *state;
  opened o;
  pl_err e = {0};
  size_t written = 0;
  char a[400], b[400], prefix[400];
  write_text_file(f, "a.txt", 0, 130);
  write_text_file(f, "b.txt", 130, 115);
  strcpy(a, in_folder(f, "a.txt"));
  strcpy(b, in_folder(f, "b.txt"));
  strcpy(prefix, in_folder(f, "corpus"));
  const char *paths[] = {a, b};
  /* 245 bytes in shards of 50: validation 50, then 50, 50, 50 and the rest of 45. */
  assert_int_equal(pl_corpus_write_shards(paths, 2, prefix, 50, &written, &e), PL_OK);
  assert_int_equal(written, 5);
  /* Windows of the whole shard show every token. */
  size_t sizes[] = {50, 50, 50, 50, 45}, from = 0;
  for (size_t s = 0; s < 5; s++) {
    char json[200];
    int32_t w[50];
    snprintf(json, sizeof json, "{'train': 'corpus_%s_00000%zu.bin', 'val': '*_00000%d.bin', 'format': 'llmc'}",
             s == 0 ? "val" : "train", s, s == 1 ? 2 : 1);
    must_open(f, &pl_dataset_tokens, json, sizes[s] - 1, (int64_t)sizes[s] - 1, &o);
    o.type->train_window(o.set, 0, 0, 0, w);
    for (size_t i = 0; i < sizes[s]; i++) assert_int_equal(w[i], text_byte(from + i));
    from += sizes[s];
    close_opened(&o);
  }
  assert_int_equal(from, 245);
  /* A rest of 5 goes into the last shard. */
  assert_int_equal(pl_corpus_write_shards(paths, 2, prefix, 60, &written, &e), PL_OK);
  assert_int_equal(written, 4);
  assert_int_equal(pl_corpus_write_shards(paths, 2, prefix, 80, &written, &e), PL_OK);
  assert_int_equal(written, 3);
  assert_int_equal(pl_corpus_write_shards(paths, 2, prefix, 245, &written, &e), PL_BAD);
  assert_non_null(strstr(e.text, "nothing would be left to train on"));
  e = (pl_err){0};
  const char *shard[] = {in_folder(f, "corpus_val_000000.bin")};
  assert_int_equal(pl_corpus_write_shards(shard, 1, prefix, 10, &written, &e), PL_BAD);
  assert_non_null(strstr(e.text, "is already llm.c uint16"));
}

static void check_describes(void **state) {
  folder *f = *state;
  pl_err e = {0};
  pl_corpus_facts facts, shards;
  char text[400], half[400], rest[400], prefix[400];
  size_t written;
  write_file(f, "a.txt", "aabbbbcdcccc", 12); /* a 2, b 4, c 5, d 1 */
  strcpy(text, in_folder(f, "a.txt"));
  const char *paths[] = {text};
  assert_int_equal(pl_corpus_describe(paths, 1, &facts, &e), PL_OK);
  assert_string_equal(facts.format, "text");
  assert_int_equal(facts.bytes, 12);
  assert_int_equal(facts.tokens, 12);
  assert_int_equal(facts.distinct, 4);
  assert_int_equal(facts.largest, 'd');
  double h = 0, n[] = {2, 4, 5, 1};
  for (size_t i = 0; i < 4; i++) h -= n[i] / 12 * log(n[i] / 12);
  assert_true(fabs(facts.unigram_entropy - h) < 1e-15);
  strcpy(prefix, in_folder(f, "c"));
  assert_int_equal(pl_corpus_write_shards(paths, 1, prefix, 6, &written, &e), PL_OK);
  strcpy(half, in_folder(f, "c_val_000000.bin"));
  strcpy(rest, in_folder(f, "c_train_000001.bin"));
  const char *both[] = {half, rest}, *mixed[] = {half, text}, *gone[] = {"/tmp/pl_data_none/x"};
  assert_int_equal(pl_corpus_describe(both, 2, &shards, &e), PL_OK);
  assert_string_equal(shards.format, "llm.c uint16");
  assert_int_equal(shards.bytes, 2 * 1024 + 24);
  assert_int_equal(shards.tokens, 12);
  assert_int_equal(shards.distinct, 4);
  assert_true(fabs(shards.unigram_entropy - h) < 1e-15);
  assert_int_equal(pl_corpus_describe(mixed, 2, &shards, &e), PL_BAD);
  assert_non_null(strstr(e.text, "describe them apart"));
  e = (pl_err){0};
  assert_int_equal(pl_corpus_describe(gone, 1, &shards, &e), PL_BAD);
  assert_non_null(strstr(e.text, gone[0]));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(check_reads_all_formats), IN_FOLDER(check_windows_stay_inside_a_shard), IN_FOLDER(check_bad_headers),
      IN_FOLDER(check_bad_lists),         IN_FOLDER(check_written_shards_read_back),    IN_FOLDER(check_describes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
