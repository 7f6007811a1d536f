#include <math.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/config/params.h"

/* The value as 64 bits that are equal exactly when the values are. */
static uint64_t real_bits(double value) {
  if (isnan(value)) return UINT64_MAX; /* one NaN of many: "not given" */
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint64_t text_bits(const char *text) { return text ? pl_hash_text(text) : 0; }

static uint64_t texts_bits(const pl_text_list *list) {
  uint64_t bits = list->count;
  for (size_t i = 0; i < list->count; i++) bits = pl_hash_join(bits, text_bits(list->values[i]));
  return bits;
}

/* 1 and [1] are the same value. */
static uint64_t ints_bits(const pl_param *row, const pl_int_list *list) {
  if (list->count == 0) return text_bits(row->choices[list->word]);
  return pl_hash(list->values, list->count * sizeof *list->values);
}

static uint64_t value_bits(const pl_param *row, const void *field) {
  switch (row->type) {
  case PL_INT:
    return (uint64_t) * (const int64_t *)field;
  case PL_REAL:
    return real_bits(*(const double *)field);
  case PL_BOOL:
    return *(const bool *)field;
  case PL_TEXT:
    return text_bits(*(const char *const *)field);
  case PL_CHOICE:
    return text_bits(row->choices[*(const int *)field]);
  case PL_INT_LIST:
    return ints_bits(row, field);
  case PL_TEXT_LIST:
    return texts_bits(field);
  case PL_END:
    break;
  }
  return 0;
}

uint64_t pl_params_identity(const pl_param *table, const void *config, const char *prefix) {
  uint64_t sum = 0, section = pl_hash_text(prefix);
  for (; table->type != PL_END; table++) {
    if (table->not_identity) continue;
    const void *field = (const char *)config + table->offset;
    const uint64_t row[4] = {section, pl_hash_text(table->name), table->type, value_bits(table, field)};
    sum += pl_hash(row, sizeof row);
  }
  return sum;
}
