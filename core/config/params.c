#include "core/config/params.h"

#include <math.h>
#include <string.h>

#include "core/config/params_text.h"

size_t pl_params_count(const pl_param *table) {
  size_t count = 0;
  while (table[count].type != PL_END) count++;
  return count;
}

size_t pl_params_find(const pl_param *table, const char *key) {
  for (size_t i = 0; table[i].type != PL_END; i++)
    if (table[i].name[0] == key[0] && strcmp(table[i].name, key) == 0) return i;
  return SIZE_MAX;
}

bool pl_params_is_group(const pl_param *table, const char *key) {
  size_t length = strlen(key);
  for (; table->type != PL_END; table++)
    if (strncmp(table->name, key, length) == 0 && table->name[length] == '.') return true;
  return false;
}

int pl_param_choice(const pl_param *row, const char *word) {
  for (int i = 0; row->choices && row->choices[i]; i++)
    if (strcmp(row->choices[i], word) == 0) return i;
  return -1;
}

static void set_default(const pl_param *row, void *field) {
  switch (row->type) {
  case PL_INT:
    *(int64_t *)field = (int64_t)row->def;
    break;
  case PL_REAL:
    *(double *)field = row->def;
    break;
  case PL_BOOL:
    *(bool *)field = row->def != 0;
    break;
  case PL_TEXT:
    *(const char **)field = row->def_text;
    break;
  case PL_CHOICE:
    *(int *)field = (int)row->def;
    break;
  case PL_INT_LIST: {
    pl_int_list *list = field;
    list->count = row->def_text == NULL;
    list->word = row->def_text ? pl_param_choice(row, row->def_text) : -1;
    list->values[0] = (int64_t)row->def;
    list->is_list = false;
    break;
  }
  case PL_TEXT_LIST: {
    pl_text_list *list = field;
    list->count = row->def_text != NULL;
    list->values[0] = row->def_text;
    break;
  }
  case PL_END:
    break;
  }
}

void pl_params_defaults(const pl_param *table, void *config) {
  for (; table->type != PL_END; table++) set_default(table, (char *)config + table->offset);
}

static pl_json *get_int_list(const pl_param *row, const pl_int_list *list) {
  if (list->count == 0) return pl_json_new_string(row->choices[list->word]);
  if (!list->is_list) return pl_json_new_int(list->values[0]);
  pl_json *array = pl_json_new_array();
  bool ok = array != NULL;
  for (size_t i = 0; i < list->count && ok; i++) ok = pl_json_append(array, pl_json_new_int(list->values[i]));
  return pl_json_keep(array, ok);
}

static pl_json *get_text_list(const pl_text_list *list) {
  if (list->count == 1) return pl_json_new_string(list->values[0]);
  pl_json *array = pl_json_new_array();
  bool ok = array != NULL;
  for (size_t i = 0; i < list->count && ok; i++) ok = pl_json_append(array, pl_json_new_string(list->values[i]));
  return pl_json_keep(array, ok);
}

pl_json *pl_param_get(const pl_param *row, const void *config) {
  const void *field = (const char *)config + row->offset;
  switch (row->type) {
  case PL_INT:
    return pl_json_new_int(*(const int64_t *)field);
  case PL_REAL: {
    double value = *(const double *)field;
    return isnan(value) ? pl_json_new_null() : pl_json_new_number(value);
  }
  case PL_BOOL:
    return pl_json_new_bool(*(const bool *)field);
  case PL_TEXT: {
    const char *text = *(const char *const *)field;
    return text ? pl_json_new_string(text) : pl_json_new_null();
  }
  case PL_CHOICE:
    return pl_json_new_string(row->choices[*(const int *)field]);
  case PL_INT_LIST:
    return get_int_list(row, field);
  case PL_TEXT_LIST:
    return get_text_list(field);
  case PL_END:
    break;
  }
  return NULL;
}

bool pl_params_dump(const pl_param *table, const void *config, pl_json *object) {
  for (; table->type != PL_END; table++)
    if (!pl_json_set_path(object, table->name, pl_param_get(table, config))) return false;
  return true;
}

pl_status pl_params_unknown(const pl_param *table, const char *owner, const char *key, const char *where, pl_err *e) {
  enum { MOST = 64 };
  const char *names[MOST];
  size_t count = 0;
  for (; table->type != PL_END && count < MOST; table++) names[count++] = table->name;
  pl_str seen = {0};
  pl_str_printf(&seen, "unknown key \"%s\" (of %s)", key, owner);
  pl_fail_name(names, count, key, where, pl_str_text(&seen), e);
  pl_str_free(&seen);
  return PL_BAD;
}
