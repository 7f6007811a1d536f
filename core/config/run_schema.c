#include "core/config/run_parts.h"

/* The required keys of a table (without a dot) as an array, put into `schema` when there are any. */
static bool set_required(const pl_param *table, const char *first, pl_json *schema) {
  pl_json *required = pl_json_new_array();
  bool ok = required && (!first || pl_json_append(required, pl_json_new_string(first)));
  for (; ok && table->type != PL_END; table++)
    if (table->required) ok = pl_json_append(required, pl_json_new_string(table->name));
  if (ok && pl_json_size(required) > 0) return pl_json_set(schema, "required", required);
  pl_json_release(required);
  return ok;
}

/* A closed object with the table's properties and a few more. Takes `properties`. */
static pl_json *closed_object(pl_json *properties, const pl_param *table, const char *first) {
  pl_json *schema = pl_json_new_object();
  bool ok = pl_json_set(schema, "properties", properties);
  ok = ok && pl_json_set(schema, "type", pl_json_new_string("object")) &&
       pl_json_set(schema, "additionalProperties", pl_json_new_bool(false)) && set_required(table, first, schema);
  return pl_json_keep(schema, ok);
}

static pl_json *component_schema(const pl_component *component) {
  pl_json *properties = pl_params_schema(component->params), *type = pl_json_new_object();
  bool ok = pl_json_set(type, "const", pl_json_new_string(component->name));
  ok = pl_json_set(properties, "type", type) && ok;
  pl_json *schema = closed_object(properties, component->params, "type");
  return pl_json_keep(schema, ok && pl_json_set(schema, "description", pl_json_new_string(component->summary)));
}

/* The names of a registry's components, and one more. */
static pl_json *name_schema(const pl_registry *r, const char *extra) {
  pl_json *names = pl_json_new_array(), *schema = pl_json_new_object();
  bool ok = !extra || pl_json_append(names, pl_json_new_string(extra));
  for (size_t i = 0; ok && i < r->count; i++) ok = pl_json_append(names, pl_json_new_string(r->items[i]->name));
  ok = pl_json_set(schema, "enum", names) && ok;
  return pl_json_keep(schema, ok);
}

/* The options of a part with a type: a name, or one of the objects. */
static pl_json *options_of(const pl_registry *r, const char *extra) {
  pl_json *options = pl_json_new_array();
  bool ok = pl_json_append(options, name_schema(r, extra));
  for (size_t i = 0; ok && i < r->count; i++) ok = pl_json_append(options, component_schema(r->items[i]));
  return pl_json_keep(options, ok);
}

static pl_json *one_of(pl_json *options) {
  pl_json *schema = pl_json_new_object();
  return pl_json_keep(schema, pl_json_set(schema, "oneOf", options));
}

static pl_json *chain_schema(const pl_registry *r) {
  pl_json *options = options_of(r, "none"), *list = pl_json_new_object();
  bool ok = pl_json_set(list, "type", pl_json_new_string("array")) &&
            pl_json_set(list, "items", one_of(options_of(r, "none"))) &&
            pl_json_set(list, "maxItems", pl_json_new_int(PL_MAX_CORRECTIONS));
  ok = pl_json_append(options, list) && ok;
  return pl_json_keep(one_of(options), ok);
}

static pl_json *train_schema(const pl_registries *r) {
  pl_json *properties = pl_params_schema(pl_train_params);
  bool ok = pl_json_set(properties, "lr_schedule", one_of(options_of(&r->lr_schedules, NULL)));
  return pl_json_keep(closed_object(properties, pl_train_params, NULL), ok);
}

/* Dotted keys are checked by pipelag alone. */
static pl_json *dotted_keys(void) {
  pl_json *patterns = pl_json_new_object();
  bool ok = pl_json_set(patterns, "^(model|data|optimizer|correction|train|pipeline)\\.", pl_json_new_bool(true));
  return pl_json_keep(patterns, ok);
}

pl_json *pl_run_config_schema(const pl_registries *r) {
  pl_json *properties = pl_params_schema(pl_root_params);
  bool ok = pl_json_set(properties, "model", one_of(options_of(&r->models, NULL))) &&
            pl_json_set(properties, "data", one_of(options_of(&r->datasets, NULL))) &&
            pl_json_set(properties, "optimizer", one_of(options_of(&r->optimizers, NULL))) &&
            pl_json_set(properties, "correction", chain_schema(&r->corrections)) &&
            pl_json_set(properties, "train", train_schema(r)) &&
            pl_json_set(properties, "pipeline",
                        closed_object(pl_params_schema(pl_pipeline_params), pl_pipeline_params, NULL));
  pl_json *schema = closed_object(properties, pl_root_params, NULL);
  ok = ok && pl_json_set(schema, "$schema", pl_json_new_string("https://json-schema.org/draft/2020-12/schema")) &&
       pl_json_set(schema, "title", pl_json_new_string("pipelag run")) &&
       pl_json_set(schema, "patternProperties", dotted_keys());
  return pl_json_keep(schema, ok);
}
