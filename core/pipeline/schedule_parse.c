#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/pipeline/schedule_marks.h"
#include "core/pipeline/schedule_text.h"

enum { LARGEST_FILE = 256 << 20, LARGEST_NUMBER = 1 << 20 };

/* The word that is looked at; length 0 at the end of the text. */
typedef struct reader {
  const char *file, *word;
  size_t length, line, column;
  const char *line_start;
  pl_schedule *out;
  bool seen[PL_SCHEDULE_STAGES];
  pl_err *e;
} reader;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static void next(reader *r) {
  const char *c = r->word + r->length;
  bool comment = false;
  for (; *c != '\0' && (comment || is_blank(*c) || *c == '#'); c++) {
    comment = (comment || *c == '#') && *c != '\n';
    if (*c != '\n') continue;
    r->line++;
    r->line_start = c + 1;
  }
  r->word = c;
  for (r->length = 0; c[r->length] != '\0' && !is_blank(c[r->length]) && c[r->length] != '#';) r->length++;
  r->column = (size_t)(c - r->line_start) + 1;
}

static bool is(const reader *r, const char *text) {
  return strlen(text) == r->length && memcmp(r->word, text, r->length) == 0;
}

/* "FILE:LINE:COLUMN: saw "WORD"; allowed: ...", of the place `at` in the word. */
static PL_PRINTF(3, 4) pl_status refuse(const reader *r, size_t at, const char *format, ...) {
  char allowed[512], seen[64] = "the end of the text";
  va_list args;
  va_start(args, format);
  vsnprintf(allowed, sizeof allowed, format, args);
  va_end(args);
  if (r->length > 0) snprintf(seen, sizeof seen, "\"%.*s\"", (int)(r->length < 40 ? r->length : 40), r->word);
  return pl_fail(r->e, PL_BAD, "%s:%zu:%zu: saw %s; allowed: %s", r->file, r->line, r->column + at, seen, allowed);
}

/* Digits from *at on; false when there are none or too many. */
static bool digits(const reader *r, size_t *at, size_t *value) {
  size_t start = *at;
  *value = 0;
  for (; *at < r->length && r->word[*at] >= '0' && r->word[*at] <= '9' && *value <= LARGEST_NUMBER; (*at)++)
    *value = *value * 10 + (size_t)(r->word[*at] - '0');
  return *at > start && *value <= LARGEST_NUMBER;
}

/* The word `name` and the number behind it. */
static pl_status take_number(reader *r, const char *name, size_t least, size_t most, size_t *out) {
  size_t at = 0;
  if (!is(r, name)) return refuse(r, 0, "%s", name);
  next(r);
  if (!digits(r, &at, out) || at != r->length || *out < least || *out > most)
    return refuse(r, 0, "%s from %zu to %zu", name, least, most);
  next(r);
  return PL_OK;
}

static pl_status read_head(reader *r) {
  pl_status st = PL_OK;
  pl_schedule *s = r->out;
  if (!is(r, "schedule")) return refuse(r, 0, "schedule and its name, stages, microbatches, chunks, then the stages");
  next(r);
  if (r->length == 0 || r->length >= PL_SCHEDULE_NAME)
    return refuse(r, 0, "a name of at most %d characters", PL_SCHEDULE_NAME - 1);
  snprintf(s->name, sizeof s->name, "%.*s", (int)r->length, r->word);
  next(r);
  size_t stages = 0;
  PL_TRY(take_number(r, "stages", 1, PL_SCHEDULE_STAGES, &stages));
  s->stages = stages;
  PL_TRY(take_number(r, "microbatches", 1, PL_SCHEDULE_MICROBATCHES, &s->microbatches));
  s->chunks = 1;
  if (is(r, "chunks")) PL_TRY(take_number(r, "chunks", 1, PL_SCHEDULE_CHUNKS, &s->chunks));
out:
  return st;
}

static pl_status read_suffixes(const reader *r, size_t at, pl_instruction *in) {
  size_t lag = 0, ahead = 0;
  struct {
    char mark;
    size_t *value;
    size_t most;
    bool allowed;
  } suffixes[] = {{'+', &ahead, LARGEST_NUMBER, true},
                  {'@', &lag, LARGEST_NUMBER, pl_op_computes(in->op)},
                  {':', &in->chunk, pl_schedule_chunks(r->out) - 1, true}};
  for (size_t i = 0; i < 3 && at < r->length; i++) {
    if (r->word[at] != suffixes[i].mark || !suffixes[i].allowed) continue;
    size_t from = ++at;
    if (!digits(r, &at, suffixes[i].value) || *suffixes[i].value > suffixes[i].most)
      return refuse(r, from, "a number from 0 to %zu after %c", suffixes[i].most, suffixes[i].mark);
  }
  in->lag = (int64_t)lag;
  in->ahead = (int64_t)ahead;
  if (at == r->length) return PL_OK;
  return refuse(r, at,
                pl_op_computes(in->op) ? "+AHEAD, @LAG, :CHUNK, in this order" : "+AHEAD, :CHUNK, in this order");
}

static pl_status read_instruction(const reader *r, pl_instruction *in) {
  size_t at = 0;
  *in = (pl_instruction){0};
  size_t op = 0, length = 0;
  for (; op < PL_OPS; op++) {
    length = strlen(pl_op_marks[op]);
    if (r->length >= length && memcmp(r->word, pl_op_marks[op], length) == 0) break;
  }
  if (op == PL_OPS)
    return refuse(r, 0, "F, B, I, W, >a, <a, >g, <g with a microbatch (F0), U, prologue, body, epilogue, stage");
  in->op = (pl_op)op;
  at = length;
  if (in->op == PL_OP_UPDATE) return at == r->length ? PL_OK : refuse(r, at, "U alone");
  if (!digits(r, &at, &in->microbatch) || in->microbatch >= r->out->microbatches)
    return refuse(r, length, "a microbatch from 0 to %zu after %s", r->out->microbatches - 1, pl_op_marks[op]);
  return read_suffixes(r, at, in);
}

static int part_of(const reader *r) {
  for (int part = 0; part < 3; part++)
    if (is(r, pl_part_words[part])) return part;
  return -1;
}

/* Instructions until the next part or stage. */
static pl_status read_part(reader *r, pl_instructions *list) {
  pl_status st = PL_OK;
  for (next(r); r->length > 0 && part_of(r) < 0 && !is(r, "stage"); next(r)) {
    pl_instruction in;
    PL_TRY(read_instruction(r, &in));
    PL_TRY(pl_instructions_add(list, in, r->e));
  }
out:
  return st;
}

static pl_status read_stage(reader *r) {
  pl_status st = PL_OK;
  size_t stage = 0;
  const reader start = *r;
  if (r->length > 0 && !is(r, "stage")) return refuse(r, 0, "stage and its number");
  PL_TRY(take_number(r, "stage", 0, r->out->stages - 1, &stage));
  if (r->seen[stage]) return refuse(&start, 0, "every stage once, but stage %zu came before", stage);
  r->seen[stage] = true;
  pl_program *program = &r->out->program[stage];
  if (is(r, "versions")) PL_TRY(take_number(r, "versions", 1, LARGEST_NUMBER, &program->versions));
  if (is(r, "slots")) PL_TRY(take_number(r, "slots", 1, LARGEST_NUMBER, &program->slots));
  pl_instructions *const parts[] = {&program->prologue, &program->body, &program->epilogue};
  for (int last = -1; r->length > 0 && !is(r, "stage");) {
    int part = part_of(r);
    if (part <= last) return refuse(r, 0, "prologue, body, epilogue, in this order, then the next stage");
    last = part;
    PL_TRY(read_part(r, parts[part]));
  }
out:
  return st;
}

pl_status pl_schedule_parse(const char *text, const char *file, pl_schedule *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_schedule){0};
  reader r = {.file = file, .word = text, .line = 1, .line_start = text, .out = out, .e = e};
  next(&r);
  PL_TRY(read_head(&r));
  while (r.length > 0) PL_TRY(read_stage(&r));
  for (size_t p = 0; p < out->stages; p++)
    if (!r.seen[p]) PL_TRY(refuse(&r, 0, "all stages, but stage %zu is missing", p));
out:
  return st;
}

pl_status pl_schedule_read(const char *path, pl_schedule *out, pl_err *e) {
  pl_status st = PL_OK;
  char *text = NULL;
  size_t length = 0;
  *out = (pl_schedule){0};
  PL_TRY(pl_file_read(path, LARGEST_FILE, &text, &length, e));
  if (strlen(text) != length)
    PL_TRY(pl_fail(e, PL_BAD, "%s: the file holds a NUL character; allowed: the text of a schedule", path));
  PL_TRY(pl_schedule_parse(text, path, out, e));
out:
  pl_free(text);
  return st;
}
