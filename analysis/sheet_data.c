/* Sheets for other programs: JSON, and CSV with the same fields. */
#include <string.h>

#include "analysis/sheet.h"

pl_json *pl_sheet_json(const pl_sheet *s) {
  pl_json *rows = pl_json_new_array();
  bool ok = rows != NULL;
  for (size_t i = 0; ok && i < s->count; i++) ok = pl_json_append(rows, pl_json_retain(s->rows[i].data));
  return pl_json_keep(rows, ok);
}

pl_json *pl_warnings_json(const pl_notes *warnings) {
  pl_json *list = pl_json_new_array();
  bool ok = list != NULL;
  for (size_t i = 0; ok && i < warnings->count; i++) ok = pl_json_append(list, pl_json_new_string(warnings->texts[i]));
  return pl_json_keep(list, ok);
}

void pl_csv_field(const char *text, pl_str *out) {
  if (!strpbrk(text, ",\"\r\n")) {
    pl_str_append(out, text);
    return;
  }
  pl_str_append(out, "\"");
  for (; *text; text++) pl_str_append(out, *text == '"' ? "\"\"" : (char[]){*text, '\0'});
  pl_str_append(out, "\"");
}

static void append_value(const pl_json *value, pl_str *out) {
  char number[32];
  switch (pl_json_kind_of(value)) {
  case PL_JSON_BOOL:
    pl_str_append(out, pl_json_bool(value) ? "true" : "false");
    break;
  case PL_JSON_INT:
  case PL_JSON_REAL:
    pl_str_append(out, pl_format_number(pl_json_number(value), number));
    break;
  case PL_JSON_STRING:
    pl_csv_field(pl_json_string(value), out);
    break;
  default:
    break; /* null is an empty field */
  }
}

/* Appends the keys ("loss.mean"), or the values; *begun: the line has a field. */
static void append_fields(const pl_json *object, const char *prefix, bool keys, bool *begun, pl_str *out) {
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) {
    const pl_json *value = pl_json_iter_value(it);
    const char *key = pl_json_iter_key(it);
    if (pl_json_kind_of(value) == PL_JSON_OBJECT) {
      append_fields(value, key, keys, begun, out);
      continue;
    }
    if (*begun) pl_str_append(out, ",");
    *begun = true;
    if (keys)
      pl_str_printf(out, "%s%s%s", prefix, prefix[0] ? "." : "", key);
    else
      append_value(value, out);
  }
}

static void append_line(const pl_json *object, bool keys, pl_str *out) {
  bool begun = false;
  append_fields(object, "", keys, &begun, out);
  pl_str_append(out, "\n");
}

void pl_sheet_csv(const pl_sheet *s, pl_str *out) {
  for (size_t i = 0; i < s->count; i++) {
    if (i == 0) append_line(s->rows[i].data, true, out);
    append_line(s->rows[i].data, false, out);
  }
}
