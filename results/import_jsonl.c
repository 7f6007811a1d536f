/* JSON lines: an object a line. */
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "results/import_read.h"

enum { NAME = 256 };

/* The member of that name, or along its dots. */
static const pl_json *member(const pl_json *object, const char *name) {
  const pl_json *found = pl_json_get(object, name);
  const char *dot = strchr(name, '.');
  char head[NAME];
  if (found || !dot || dot - name >= NAME) return found;
  snprintf(head, sizeof head, "%.*s", (int)(dot - name), name);
  const pl_json *below = pl_json_get(object, head);
  return below ? member(below, dot + 1) : NULL;
}

static const pl_json *column_of(const pl_import_map *m, size_t column, const pl_json *object) {
  if (m->columns[column]) return member(object, m->columns[column]);
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it))
    if (pl_import_map_takes(m, column, pl_json_iter_key(it))) return pl_json_iter_value(it);
  return NULL;
}

/* Numbers, the words that stand for those that JSON does not have, and null for none. */
static bool number_of(const pl_json *value, pl_import_cell *out) {
  const char *text = pl_json_string(value);
  pl_json_kind kind = pl_json_kind_of(value);
  if (text) return text[0] != '\0' && pl_import_number(text, out);
  *out = (pl_import_cell){.given = kind != PL_JSON_NULL, .value = pl_json_number(value)};
  return kind == PL_JSON_NULL || kind == PL_JSON_INT || kind == PL_JSON_REAL;
}

static pl_status read_values(const pl_import_text *in, size_t line, const pl_json *object, pl_import_table *t,
                             pl_err *e) {
  pl_import_cell values[PL_IMPORT_COLUMNS] = {{0}};
  const pl_import_cell *step = &values[PL_IMPORT_STEP];
  char shown[80];
  int64_t at;
  pl_point *p;
  for (size_t i = 0; i < PL_IMPORT_COLUMNS; i++) {
    const pl_json *value = column_of(in->map, i, object);
    if (!value) continue;
    t->found[i] = true;
    if (!number_of(value, &values[i]))
      return pl_fail(e, PL_BAD, "%s:%zu: %s of %s is no number", in->path, line, pl_json_show(value, shown),
                     pl_import_column_name(i));
  }
  if (!step->given || !pl_import_step(step->value, &at))
    return pl_fail(e, PL_BAD, "%s:%zu: has no step; allowed: a whole number from 0 named step, or --map step=KEY",
                   in->path, line);
  pl_status st = pl_import_table_add(t, at, &p, e);
  for (size_t i = 0; st == PL_OK && i < PL_IMPORT_COLUMNS; i++) pl_import_put(t, p, i, values[i]);
  return st;
}

/* Python writes NaN and Infinity bare; in quotes they are JSON. */
static void quote_words(const char *line, pl_str *out) {
  static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
  bool quoted = false;
  out->length = 0;
  for (const char *c = line; *c;) {
    size_t length = 0;
    for (size_t i = 0; !quoted && i < sizeof words / sizeof *words; i++)
      if (strncmp(c, words[i], strlen(words[i])) == 0) length = strlen(words[i]);
    if (length > 0) {
      pl_str_printf(out, "\"%.*s\"", (int)length, c);
      c += length;
      continue;
    }
    if (*c == '\\' && quoted && c[1])
      pl_str_append_bytes(out, c++, 1);
    else if (*c == '"')
      quoted = !quoted;
    pl_str_append_bytes(out, c++, 1);
  }
}

static pl_status read_line(const pl_import_text *in, size_t number, const pl_str *line, pl_import_table *t, pl_err *e) {
  pl_json *object = NULL;
  pl_err own = {0};
  pl_status st = pl_str_check(line, e);
  if (st != PL_OK) return st;
  if (pl_json_parse(line->text, line->length, "JSON", &object, &own) != PL_OK)
    return pl_fail(e, own.status, "%s:%zu: %s", in->path, number, own.text);
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) pl_import_saw(t, pl_json_iter_key(it));
  st = pl_json_kind_of(object) == PL_JSON_OBJECT ? read_values(in, number, object, t, e)
                                                 : pl_fail(e, PL_BAD, "%s:%zu: is no JSON object", in->path, number);
  pl_json_release(object);
  return st;
}

pl_status pl_import_jsonl(const pl_import_text *in, pl_import_table *t, pl_err *e) {
  pl_import_lines lines = {.next = in->bytes, .end = in->bytes + in->length};
  pl_status st = PL_OK;
  pl_str text = {0};
  for (char *line; st == PL_OK && (line = pl_import_next_line(&lines));) {
    if (line[strspn(line, " \t")] == '\0') continue;
    quote_words(line, &text);
    st = read_line(in, lines.number, &text, t, e);
  }
  pl_str_free(&text);
  return st;
}
