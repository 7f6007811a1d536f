#include <math.h>
#include <string.h>

#include "sweeps/parts.h"

static bool is_number(const pl_json *value) {
  return pl_json_kind_of(value) == PL_JSON_INT || pl_json_kind_of(value) == PL_JSON_REAL;
}

static bool is_int(const pl_json *value, int64_t stored) {
  if (pl_json_kind_of(value) == PL_JSON_INT) return pl_json_int(value) == stored;
  return is_number(value) && pl_json_number(value) == (double)stored;
}

static bool is_text(const pl_json *value, const char *stored) {
  const char *text = pl_json_string(value);
  if (stored == NULL) return pl_json_kind_of(value) == PL_JSON_NULL;
  return text != NULL && strcmp(text, stored) == 0;
}

static bool is_real(const pl_json *value, double stored) {
  if (isnan(stored)) return pl_json_kind_of(value) == PL_JSON_NULL;
  return is_number(value) && pl_json_number(value) == stored;
}

static bool is_int_list(const pl_json *value, const pl_int_list *stored, const char *const *words) {
  if (stored->word >= 0) return is_text(value, words[stored->word]);
  if (pl_json_kind_of(value) != PL_JSON_ARRAY) return stored->count == 1 && is_int(value, stored->values[0]);
  if (pl_json_size(value) != stored->count) return false;
  for (size_t i = 0; i < stored->count; i++)
    if (!is_int(pl_json_at(value, i), stored->values[i])) return false;
  return true;
}

static bool is_text_list(const pl_json *value, const pl_text_list *stored) {
  if (pl_json_kind_of(value) != PL_JSON_ARRAY) return stored->count == 1 && is_text(value, stored->values[0]);
  if (pl_json_size(value) != stored->count) return false;
  for (size_t i = 0; i < stored->count; i++)
    if (!is_text(pl_json_at(value, i), stored->values[i])) return false;
  return true;
}

bool pl_param_matches(const pl_param *row, const void *config, const pl_json *wanted) {
  const void *stored = (const char *)config + row->offset;
  switch (row->type) {
  case PL_INT:
    return is_int(wanted, *(const int64_t *)stored);
  case PL_REAL:
    return is_real(wanted, *(const double *)stored);
  case PL_BOOL:
    return pl_json_kind_of(wanted) == PL_JSON_BOOL && pl_json_bool(wanted) == *(const bool *)stored;
  case PL_TEXT:
    return is_text(wanted, *(const char *const *)stored);
  case PL_CHOICE:
    return is_text(wanted, row->choices[*(const int *)stored]);
  case PL_INT_LIST:
    return is_int_list(wanted, stored, row->choices);
  case PL_TEXT_LIST:
    return is_text_list(wanted, stored);
  case PL_END:
    break;
  }
  return false;
}
