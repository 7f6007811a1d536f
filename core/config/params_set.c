#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/config/params_text.h"

static pl_status wrong_kind(const pl_param *row, const pl_json *value, const char *where, pl_err *e) {
  char shown[80];
  pl_json_kind kind = pl_json_kind_of(value);
  bool plain = kind == PL_JSON_NULL || kind == PL_JSON_INT || kind == PL_JSON_REAL || kind == PL_JSON_BOOL;
  const char *noun = kind == PL_JSON_STRING ? "the string " : kind == PL_JSON_ARRAY ? "the list " : "the object ";
  pl_str allowed = {0};
  pl_param_append_allowed(row, &allowed);
  size_t count = 0;
  while (row->choices && row->choices[count]) count++;
  size_t near = kind == PL_JSON_STRING ? pl_nearest(pl_json_string(value), row->choices, count) : SIZE_MAX;
  pl_fail(e, PL_BAD, "%s: must be %s, not %s%s%s%s%s", where, pl_str_text(&allowed), plain ? "" : noun,
          pl_json_show(value, shown), near == SIZE_MAX ? "" : "; did you mean \"",
          near == SIZE_MAX ? "" : row->choices[near], near == SIZE_MAX ? "" : "\"?");
  pl_str_free(&allowed);
  return PL_BAD;
}

static pl_status out_of_range(const pl_param *row, const pl_json *value, const char *where, pl_err *e) {
  char shown[80];
  pl_str range = {0};
  pl_param_append_range(row, &range);
  pl_fail(e, PL_BAD, "%s: %s is out of range; allowed:%s", where, pl_json_show(value, shown), pl_str_text(&range));
  pl_str_free(&range);
  return PL_BAD;
}

static bool is_number(const pl_json *value) {
  pl_json_kind kind = pl_json_kind_of(value);
  return kind == PL_JSON_INT || kind == PL_JSON_REAL;
}

/* Integers may be written like 1e3; beyond 2^53 such a text does not name one integer. */
static bool read_int(const pl_json *value, int64_t *out) {
  if (pl_json_kind_of(value) == PL_JSON_REAL) {
    double real = pl_json_number(value);
    if (real != trunc(real) || fabs(real) > 0x1p53) return false;
    *out = (int64_t)real;
    return true;
  }
  *out = pl_json_int(value);
  return pl_json_kind_of(value) == PL_JSON_INT;
}

static pl_status set_int(const pl_param *row, const pl_json *value, const char *where, int64_t *out, pl_err *e) {
  int64_t read;
  if (!read_int(value, &read)) return wrong_kind(row, value, where, e);
  if (!pl_param_in_range(row, (double)read)) return out_of_range(row, value, where, e);
  *out = read;
  return PL_OK;
}

static pl_status set_real(const pl_param *row, const pl_json *value, const char *where, double *out, pl_err *e) {
  if (pl_json_kind_of(value) == PL_JSON_NULL && pl_param_takes_null(row)) {
    *out = row->def;
    return PL_OK;
  }
  if (!is_number(value)) return wrong_kind(row, value, where, e);
  double read = pl_json_number(value);
  if (!pl_param_in_range(row, read)) return out_of_range(row, value, where, e);
  *out = read + 0.0; /* minus zero is zero */
  return PL_OK;
}

static pl_status set_bool(const pl_param *row, const pl_json *value, const char *where, bool *out, pl_err *e) {
  if (pl_json_kind_of(value) != PL_JSON_BOOL) return wrong_kind(row, value, where, e);
  *out = pl_json_bool(value);
  return PL_OK;
}

static pl_status set_text(const pl_param *row, const pl_json *value, const char *where, const char **out, pl_err *e) {
  const char *text = pl_json_string(value);
  bool null = pl_json_kind_of(value) == PL_JSON_NULL && pl_param_takes_null(row);
  if (!text && !null) return wrong_kind(row, value, where, e);
  *out = text;
  return PL_OK;
}

static pl_status set_choice(const pl_param *row, const pl_json *value, const char *where, int *out, pl_err *e) {
  const char *word = pl_json_string(value);
  if (!word) return wrong_kind(row, value, where, e);
  int choice = pl_param_choice(row, word);
  if (choice >= 0) {
    *out = choice;
    return PL_OK;
  }
  char seen[80];
  size_t count = 0;
  while (row->choices[count]) count++;
  return pl_fail_name(row->choices, count, word, where, pl_json_show(value, seen), e);
}

static pl_status set_int_array(const pl_param *row, const pl_json *value, const char *where, pl_int_list *out,
                               pl_err *e) {
  char place[PL_WHERE];
  size_t count = pl_json_size(value);
  if (count == 0) return pl_fail(e, PL_BAD, "%s: the list is empty; 1 to %d values are allowed", where, PL_MAX_STAGES);
  if (count > PL_MAX_STAGES)
    return pl_fail(e, PL_BAD, "%s: a list of %zu values; at most %d are allowed", where, count, PL_MAX_STAGES);
  for (size_t i = 0; i < count; i++) {
    const pl_json *element = pl_json_at(value, i);
    int64_t read;
    if (!read_int(element, &read) || !pl_param_in_range(row, (double)read)) {
      pl_param single = *row;
      single.type = PL_INT;
      single.choices = NULL;
      snprintf(place, sizeof place, "%s[%zu]", where, i);
      return set_int(&single, element, place, &read, e);
    }
    out->values[i] = read;
  }
  out->count = count;
  out->word = -1;
  out->is_list = true;
  return PL_OK;
}

static pl_status set_int_list(const pl_param *row, const pl_json *value, const char *where, pl_int_list *out,
                              pl_err *e) {
  const char *word = pl_json_string(value);
  if (pl_json_kind_of(value) == PL_JSON_ARRAY) return set_int_array(row, value, where, out, e);
  int choice = word ? pl_param_choice(row, word) : -1;
  if (choice >= 0) {
    *out = (pl_int_list){.count = 0, .word = choice};
    return PL_OK;
  }
  int64_t read = 0;
  pl_status st = set_int(row, value, where, &read, e);
  if (st != PL_OK) return st;
  out->count = 1;
  out->word = -1;
  out->values[0] = read;
  out->is_list = false;
  return PL_OK;
}

static pl_status set_text_list(const pl_param *row, const pl_json *value, const char *where, pl_text_list *out,
                               pl_err *e) {
  bool array = pl_json_kind_of(value) == PL_JSON_ARRAY;
  bool null = pl_json_kind_of(value) == PL_JSON_NULL && pl_param_takes_null(row);
  size_t count = array ? pl_json_size(value) : !null;
  if (count > PL_MAX_TEXTS)
    return pl_fail(e, PL_BAD, "%s: a list of %zu strings; at most %d are allowed", where, count, PL_MAX_TEXTS);
  if (count == 0 && row->required)
    return pl_fail(e, PL_BAD, "%s: the list is empty; at least one string is needed", where);
  for (size_t i = 0; i < count; i++) {
    const char *text = pl_json_string(array ? pl_json_at(value, i) : value);
    if (!text) return wrong_kind(row, value, where, e);
    out->values[i] = text;
  }
  out->count = count;
  return PL_OK;
}

pl_status pl_param_set(const pl_param *row, void *config, const pl_json *value, const char *where, pl_err *e) {
  void *field = (char *)config + row->offset;
  switch (row->type) {
  case PL_INT:
    return set_int(row, value, where, field, e);
  case PL_REAL:
    return set_real(row, value, where, field, e);
  case PL_BOOL:
    return set_bool(row, value, where, field, e);
  case PL_TEXT:
    return set_text(row, value, where, field, e);
  case PL_CHOICE:
    return set_choice(row, value, where, field, e);
  case PL_INT_LIST:
    return set_int_list(row, value, where, field, e);
  case PL_TEXT_LIST:
    return set_text_list(row, value, where, field, e);
  case PL_END:
    break;
  }
  return pl_fail(e, PL_FAIL, "%s: internal error: no such kind of parameter", where);
}
