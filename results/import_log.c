/* Text logs whose lines are a step and figures "name:value". */
#include <stdlib.h>
#include <string.h>

#include "results/import_read.h"

/* What the program calls a series. */
typedef struct alias {
  const char *name;
  size_t column;
} alias;

typedef struct log_format {
  const char *start; /* of a line with figures, before the step */
  const char *form;  /* for messages */
  bool others;       /* there are lines of another kind */
  alias aliases[8];  /* closed by a NULL name */
} log_format;

static const log_format llmc = {
    "s:",
    "s:STEP NAME:NUMBER ...",
    false,
    {{"tel", PL_SERIES_val_loss}, {"trl", PL_SERIES_train_loss}, {"lr", PL_SERIES_lr}, {"norm", PL_SERIES_grad_norm}}};

static const log_format nanogpt = {"step:",
                                   "step:STEP/STEPS NAME:NUMBER ...",
                                   true,
                                   {{"val_loss", PL_SERIES_val_loss},
                                    {"train_loss", PL_SERIES_train_loss},
                                    {"train_time", PL_SERIES_seconds},
                                    {"lr", PL_SERIES_lr},
                                    {"grad_norm", PL_SERIES_grad_norm}}};

static size_t column_of(const log_format *f, const pl_import_map *m, const char *name) {
  for (size_t i = 0; i < PL_IMPORT_COLUMNS; i++)
    if (m->columns[i] && strcmp(m->columns[i], name) == 0) return i;
  for (const alias *a = f->aliases; a->name; a++)
    if (strcmp(a->name, name) == 0 && !m->columns[a->column]) return a->column;
  return PL_IMPORT_COLUMNS;
}

/* Times carry their unit. */
static bool value_of(char *text, pl_import_cell *out) {
  size_t length = strlen(text);
  double scale = 1;
  if (length > 2 && strcmp(text + length - 2, "ms") == 0) {
    scale = 1e-3;
    text[length - 2] = '\0';
  } else if (length > 1 && text[length - 1] == 's' && text[length - 2] >= '0' && text[length - 2] <= '9') {
    text[length - 1] = '\0';
  }
  if (text[0] == '\0' || !pl_import_number(text, out)) return false;
  out->value *= scale;
  return true;
}

static pl_status broken(const pl_import_text *in, const log_format *f, size_t line, const char *what, pl_err *e) {
  return pl_fail(e, PL_BAD, "%s:%zu: \"%.80s\" cannot be read; expected is %s", in->path, line, what, f->form);
}

/* "10" or "10/1000" behind the start of a line; *rest is what follows. */
static bool step_of(char *text, int64_t *out, char **rest) {
  size_t digits = strspn(text, "0123456789");
  char *after = text + digits;
  if (digits == 0 || digits > 15) return false;
  *out = strtoll(text, NULL, 10);
  if (*after == '/') after += 1 + strspn(after + 1, "0123456789");
  *rest = after;
  return *after == '\0' || *after == ' ';
}

static pl_status read_line(const pl_import_text *in, const log_format *f, size_t number, char *figures, pl_point *p,
                           pl_import_table *t, pl_err *e) {
  char *left = NULL;
  for (char *word = strtok_r(figures, " \t", &left); word; word = strtok_r(NULL, " \t", &left)) {
    char *colon = strchr(word, ':');
    pl_import_cell value;
    if (!colon && f->others) continue;
    if (!colon) return broken(in, f, number, word, e);
    *colon = '\0';
    pl_import_saw(t, word);
    size_t column = column_of(f, in->map, word);
    if (column == PL_IMPORT_COLUMNS) continue;
    if (!value_of(colon + 1, &value)) return broken(in, f, number, colon + 1, e);
    t->found[column] = true;
    pl_import_put(t, p, column, value);
  }
  return PL_OK;
}

static pl_status read_log(const pl_import_text *in, const log_format *f, pl_import_table *t, pl_err *e) {
  pl_import_lines lines = {.next = in->bytes, .end = in->bytes + in->length};
  const size_t start = strlen(f->start);
  t->found[PL_IMPORT_STEP] = true;
  for (char *line; (line = pl_import_next_line(&lines));) {
    int64_t step = 0;
    char *figures = NULL;
    pl_point *p;
    bool ours = strncmp(line, f->start, start) == 0 && step_of(line + start, &step, &figures);
    if (!ours && (f->others || line[0] == '\0')) continue;
    if (!ours) return broken(in, f, lines.number, line, e);
    pl_status st = pl_import_table_add(t, step, &p, e);
    if (st == PL_OK) st = read_line(in, f, lines.number, figures, p, t, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

pl_status pl_import_llmc(const pl_import_text *in, pl_import_table *t, pl_err *e) { return read_log(in, &llmc, t, e); }

pl_status pl_import_nanogpt(const pl_import_text *in, pl_import_table *t, pl_err *e) {
  return read_log(in, &nanogpt, t, e);
}
