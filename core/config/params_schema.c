#include <string.h>

#include "core/config/params_text.h"

static pl_json *word_array(const char *const *words) {
  pl_json *array = pl_json_new_array();
  bool ok = array != NULL;
  for (; ok && words && *words; words++) ok = pl_json_append(array, pl_json_new_string(*words));
  return pl_json_keep(array, ok);
}

static pl_json *schema_of_words(const char *const *words) {
  pl_json *schema = pl_json_new_object();
  return pl_json_keep(schema, pl_json_set(schema, "enum", word_array(words)));
}

/* {"type": TYPE}, or {"type": [TYPE, "null"]} where null is allowed. */
static pl_json *schema_of_type(const pl_param *row, const char *type) {
  const char *const types[] = {type, "null", NULL};
  pl_json *schema = pl_json_new_object();
  pl_json *named = pl_param_takes_null(row) ? word_array(types) : pl_json_new_string(type);
  return pl_json_keep(schema, pl_json_set(schema, "type", named));
}

static pl_json *schema_of_number(const pl_param *row, const char *type) {
  pl_json *schema = schema_of_type(row, type);
  const char *least = row->above_min ? "exclusiveMinimum" : "minimum";
  bool ok = schema != NULL;
  if (pl_param_has_lower(row)) ok = ok && pl_json_set(schema, least, pl_json_new_number(row->min));
  if (pl_param_has_upper(row)) ok = ok && pl_json_set(schema, "maximum", pl_json_new_number(row->max));
  return pl_json_keep(schema, ok);
}

/* {"anyOf": [one, {"type": "array", "items": one}, the words]}. Takes `one`. */
static pl_json *schema_of_list(pl_json *one, const char *const *words) {
  pl_json *schema = pl_json_new_object(), *options = pl_json_new_array(), *list = pl_json_new_object();
  bool ok = one && pl_json_set(list, "type", pl_json_new_string("array"));
  ok = ok && pl_json_set(list, "items", pl_json_retain(one));
  ok = pl_json_append(options, one) && ok;
  ok = pl_json_append(options, list) && ok;
  if (words && words[0]) ok = pl_json_append(options, schema_of_words(words)) && ok;
  ok = pl_json_set(schema, "anyOf", options) && ok;
  return pl_json_keep(schema, ok);
}

static pl_json *schema_of_kind(const pl_param *row) {
  switch (row->type) {
  case PL_INT:
    return schema_of_number(row, "integer");
  case PL_REAL:
    return schema_of_number(row, "number");
  case PL_BOOL:
    return schema_of_type(row, "boolean");
  case PL_TEXT:
    return schema_of_type(row, "string");
  case PL_CHOICE:
    return schema_of_words(row->choices);
  case PL_INT_LIST:
    return schema_of_list(schema_of_number(row, "integer"), row->choices);
  case PL_TEXT_LIST:
    return schema_of_list(schema_of_type(row, "string"), NULL);
  case PL_END:
    break;
  }
  return NULL;
}

static pl_json *schema_of_row(const pl_param *row) {
  pl_json *schema = schema_of_kind(row);
  bool ok = schema != NULL;
  if (row->help) ok = ok && pl_json_set(schema, "description", pl_json_new_string(row->help));
  if (!row->required) ok = ok && pl_json_set(schema, "default", pl_param_default(row));
  return pl_json_keep(schema, ok);
}

/* Puts the schema of the key "adamw.lr" at properties.adamw.properties.lr and makes adamw a closed object. */
static bool place(pl_json *properties, const char *name, pl_json *schema) {
  const char *dot = strchr(name, '.');
  if (!dot) return pl_json_set(properties, name, schema);
  char path[PL_WHERE];
  pl_str inner = {0};
  pl_str_append_bytes(&inner, name, (size_t)(dot - name));
  bool ok = !inner.failed &&
            pl_json_set_path(properties, pl_where(inner.text, "type", path), pl_json_new_string("object")) &&
            pl_json_set_path(properties, pl_where(inner.text, "additionalProperties", path), pl_json_new_bool(false));
  pl_str_printf(&inner, ".properties.%s", dot + 1);
  if (ok && !inner.failed)
    ok = pl_json_set_path(properties, inner.text, schema);
  else
    pl_json_release(schema);
  pl_str_free(&inner);
  return ok;
}

pl_json *pl_params_schema(const pl_param *table) {
  pl_json *properties = pl_json_new_object();
  bool ok = properties != NULL;
  for (; ok && table->type != PL_END; table++) ok = place(properties, table->name, schema_of_row(table));
  return pl_json_keep(properties, ok);
}
