#include "core/pipeline/trace.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/pipeline/schedule_marks.h"

enum { FIELDS = 6 };
static const char header[] = "update\top\tmicrobatch\tchunk\tstart\tend\n";
static const size_t most_bytes = (size_t)1 << 30;

struct pl_trace {
  char *path;
  pl_trace_row *rows;
  size_t count, room;
};

static void release(pl_trace *t) {
  pl_free(t->rows);
  pl_free(t->path);
  pl_free(t);
}

pl_status pl_trace_open(const char *path, size_t room, pl_trace **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_trace *t = NULL;
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *t, "a trace", &t, e));
  t->room = room;
  PL_TRY(pl_strdup(path, &t->path, e));
  PL_TRY(pl_alloc(room, sizeof *t->rows, "a trace", &t->rows, e));
  *out = t;
out:
  if (st != PL_OK && t) release(t);
  return st;
}

void pl_trace_add(pl_trace *t, const pl_trace_row *row) {
  if (t && t->count < t->room) t->rows[t->count++] = *row;
}

pl_status pl_trace_close(pl_trace *t, pl_err *e) {
  pl_str text = {0};
  if (!t) return PL_OK;
  pl_str_append(&text, header);
  for (size_t i = 0; i < t->count; i++) {
    const pl_trace_row *r = &t->rows[i];
    pl_str_printf(&text, "%" PRId64 "\t%s\t%zu\t%zu\t%.9f\t%.9f\n", r->update, pl_op_name(r->op), r->microbatch,
                  r->chunk, r->start, r->end);
  }
  pl_status st = pl_str_check(&text, e);
  if (st == PL_OK) st = pl_file_replace(t->path, text.text, text.length, e);
  pl_str_free(&text);
  release(t);
  return st;
}

static bool parse_op(const char *name, pl_op *out) {
  for (int op = 0; op < PL_OPS; op++)
    if (strcmp(name, pl_op_name((pl_op)op)) == 0) {
      *out = (pl_op)op;
      return true;
    }
  return false;
}

/* Cuts the line into its fields. */
static bool parse_row(char *line, pl_trace_row *out) {
  char *fields[FIELDS];
  int64_t microbatch, chunk;
  for (size_t i = 0; i < FIELDS; i++) {
    char *tab = strchr(line, '\t');
    if ((tab == NULL) != (i + 1 == FIELDS)) return false;
    fields[i] = line;
    if (!tab) break;
    *tab = '\0';
    line = tab + 1;
  }
  bool good = pl_parse_int(fields[0], &out->update) && parse_op(fields[1], &out->op) &&
              pl_parse_int(fields[2], &microbatch) && pl_parse_int(fields[3], &chunk) &&
              pl_parse_real(fields[4], &out->start) && pl_parse_real(fields[5], &out->end);
  if (!good || out->update < 0 || microbatch < 0 || microbatch >= PL_SCHEDULE_MICROBATCHES || chunk < 0 ||
      chunk >= PL_SCHEDULE_CHUNKS || !(out->end >= out->start))
    return false;
  out->microbatch = (size_t)microbatch;
  out->chunk = (size_t)chunk;
  return true;
}

static size_t count_lines(const char *text) {
  size_t lines = 0;
  for (; *text != '\0'; text++) lines += *text == '\n';
  return lines;
}

static pl_status parse(const char *path, char *text, pl_trace_rows *out, pl_err *e) {
  const size_t lines = count_lines(text);
  if (strncmp(text, header, strlen(header)) != 0)
    return pl_fail(e, PL_BAD, "%s: line 1 is not the header of a trace, \"%.*s\"", path, (int)strlen(header) - 1,
                   header);
  pl_status st = pl_alloc(lines, sizeof *out->rows, "a trace", &out->rows, e);
  if (st != PL_OK) return st;
  char *line = text + strlen(header);
  for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = '\0';
    if (!parse_row(line, &out->rows[out->count]))
      return pl_fail(e, PL_BAD,
                     "%s: line %zu is no instruction; allowed: update, op, microbatch, chunk, start and end, with tabs "
                     "between",
                     path, out->count + 2);
    out->count++;
  }
  if (*line == '\0') return PL_OK;
  return pl_fail(e, PL_BAD, "%s: its last line is cut off", path);
}

pl_status pl_trace_read(const char *path, pl_trace_rows *out, pl_err *e) {
  char *text = NULL;
  size_t length;
  *out = (pl_trace_rows){0};
  if (!pl_path_exists(path)) return PL_NOTHING;
  pl_status st = pl_file_read(path, most_bytes, &text, &length, e);
  if (st == PL_OK) st = parse(path, text, out, e);
  pl_free(text);
  return st;
}

void pl_trace_rows_free(pl_trace_rows *r) {
  pl_free(r->rows);
  *r = (pl_trace_rows){0};
}
