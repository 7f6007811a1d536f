#include "core/config/params_text.h"

#include <math.h>
#include <string.h>

const char *pl_where(const char *where, const char *key, char out[PL_WHERE]) {
  size_t left = strnlen(where, PL_WHERE / 2), right = strnlen(key, PL_WHERE / 2 - 2);
  bool dot = left > 0 && right > 0;
  memcpy(out, where, left);
  if (dot) out[left] = '.';
  memcpy(out + left + dot, key, right);
  out[left + dot + right] = '\0';
  return out;
}

static bool has_range(const pl_param *row) { return row->above_min || row->min != 0 || row->max != 0; }
bool pl_param_has_lower(const pl_param *row) { return has_range(row) && isfinite(row->min); }
bool pl_param_has_upper(const pl_param *row) { return has_range(row) && row->max > row->min && isfinite(row->max); }

bool pl_param_in_range(const pl_param *row, double value) {
  if (pl_param_has_lower(row) && (row->above_min ? value <= row->min : value < row->min)) return false;
  return !pl_param_has_upper(row) || value <= row->max;
}

void pl_param_append_range(const pl_param *row, pl_str *out) {
  char least[32], most[32];
  bool lower = pl_param_has_lower(row), upper = pl_param_has_upper(row);
  pl_format_number(row->min, least);
  pl_format_number(row->max, most);
  if (lower && upper && !row->above_min)
    pl_str_printf(out, " from %s to %s", least, most);
  else if (lower)
    pl_str_printf(out, " %s %s", row->above_min ? ">" : ">=", least);
  if (upper && (!lower || row->above_min)) pl_str_printf(out, "%s <= %s", lower ? " and" : "", most);
}

static void append_names(const char *const *names, size_t count, const char *between, pl_str *out) {
  for (size_t i = 0; i < count; i++) pl_str_printf(out, "%s%s", i > 0 ? between : "", names[i]);
}

static size_t choice_count(const pl_param *row) {
  size_t count = 0;
  while (row->choices && row->choices[count]) count++;
  return count;
}

bool pl_param_takes_null(const pl_param *row) {
  bool text = row->type == PL_TEXT || row->type == PL_TEXT_LIST;
  return !row->required && (text ? !row->def_text : row->type == PL_REAL && isnan(row->def));
}

pl_json *pl_param_default(const pl_param *row) {
  union {
    int64_t number;
    double real;
    const char *text;
    pl_int_list ints;
    pl_text_list texts;
  } field;
  pl_param single[2] = {*row, {0}};
  single[0].offset = 0;
  pl_params_defaults(single, &field);
  return pl_param_get(single, &field);
}

/* What a row takes, in the short words of help or the sentence's words of messages. */
static void append_kind(const pl_param *row, bool brief, pl_str *out) {
  static const char *const words[][2] = {
      [PL_END] = {"nothing", "nothing"},
      [PL_INT] = {"a whole number", "integer"},
      [PL_REAL] = {"a number", "real"},
      [PL_BOOL] = {"true or false", "true or false"},
      [PL_TEXT] = {"a string", "text"},
      [PL_CHOICE] = {"one of ", "one of "},
      [PL_INT_LIST] = {"a whole number", "integer"},
      [PL_TEXT_LIST] = {"a string or a list of strings", "text or list of texts"},
  };
  pl_str_append(out, words[row->type][brief]);
  bool number = row->type == PL_INT || row->type == PL_REAL || row->type == PL_INT_LIST;
  if (number) pl_param_append_range(row, out);
  if (row->type == PL_INT_LIST)
    pl_str_append(out, choice_count(row) ? ", a list of these, or " : " or a list of these");
  append_names(row->choices, choice_count(row), ", ", out);
  if (pl_param_takes_null(row)) pl_str_append(out, " or null");
}

void pl_param_append_allowed(const pl_param *row, pl_str *out) { append_kind(row, false, out); }

void pl_param_describe(const pl_param *row, pl_str *out) {
  append_kind(row, true, out);
  if (row->required) {
    pl_str_append(out, ", required");
    return;
  }
  pl_json *value = pl_param_default(row);
  pl_str_append(out, ", default ");
  if (pl_json_string(value))
    pl_str_append(out, pl_json_string(value));
  else
    pl_json_write_canonical(value, out);
  out->failed |= !value;
  pl_json_release(value);
}

pl_status pl_fail_name(const char *const *names, size_t count, const char *name, const char *where, const char *seen,
                       pl_err *e) {
  pl_str text = {0};
  size_t nearest = pl_nearest(name, names, count);
  if (nearest != SIZE_MAX) pl_str_printf(&text, "; did you mean \"%s\"?", names[nearest]);
  pl_str_append(&text, "; allowed: ");
  append_names(names, count, ", ", &text);
  if (count == 0) pl_str_append(&text, "none, it has no parameters");
  pl_fail(e, PL_BAD, "%s: %s%s", where, seen, pl_str_text(&text));
  pl_str_free(&text);
  return PL_BAD;
}
