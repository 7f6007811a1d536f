#include <string.h>

#include "sweeps/parts.h"

/* All but the definition of "run", which comes from the tables. */
static const char SCHEMA[] =
    "{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\","
    " \"title\": \"pipelag sweep\", \"type\": \"object\", \"additionalProperties\": false,"
    " \"properties\": {"
    "  \"name\": {\"type\": [\"string\", \"null\"], \"minLength\": 1, \"maxLength\": 100, \"pattern\": \"^[^/]*$\","
    "   \"description\": \"names the folder of the results; default: the file's name without .json\"},"
    "  \"notes\": {\"type\": [\"string\", \"null\"]},"
    "  \"base\": {\"$ref\": \"#/$defs/run\"},"
    "  \"grid\": {\"description\": \"products of axes\", \"anyOf\": [{\"$ref\": \"#/$defs/grid\"},"
    "   {\"type\": \"array\", \"minItems\": 1, \"items\": {\"$ref\": \"#/$defs/grid\"}}]},"
    "  \"zip\": {\"description\": \"equally long lists that step together\", \"anyOf\": [{\"$ref\": \"#/$defs/zip\"},"
    "   {\"type\": \"array\", \"minItems\": 1, \"items\": {\"$ref\": \"#/$defs/zip\"}}]},"
    "  \"random\": {\"description\": \"n draws\", \"anyOf\": [{\"$ref\": \"#/$defs/random\"},"
    "   {\"type\": \"array\", \"minItems\": 1, \"items\": {\"$ref\": \"#/$defs/random\"}}]},"
    "  \"runs\": {\"description\": \"single runs\", \"type\": \"array\", \"minItems\": 1,"
    "   \"items\": {\"$ref\": \"#/$defs/run\"}},"
    "  \"exclude\": {\"description\": \"drops every run that one of these describes\","
    "   \"$ref\": \"#/$defs/rules\"},"
    "  \"only_if\": {\"description\": \"keeps only runs that one of these describes\","
    "   \"$ref\": \"#/$defs/rules\"},"
    "  \"seeds\": {\"$ref\": \"#/$defs/seeds\"},"
    "  \"slurm\": {\"type\": \"object\"},"
    "  \"set\": {\"description\": \"what --set adds: axes of every block, over all else\", \"type\": \"object\","
    "   \"additionalProperties\": {\"$ref\": \"#/$defs/axis\"}}},"
    " \"$defs\": {"
    "  \"axis\": {\"anyOf\": [{\"type\": \"array\", \"minItems\": 1}, {\"$ref\": \"#/$defs/range\"}]},"
    "  \"range\": {\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "    \"range\": {\"type\": \"array\", \"minItems\": 2, \"maxItems\": 3, \"items\": {\"type\": \"number\"}},"
    "    \"log_range\": {\"type\": \"array\", \"minItems\": 2, \"maxItems\": 2,"
    "     \"items\": {\"type\": \"number\", \"exclusiveMinimum\": 0}},"
    "    \"n\": {\"type\": \"integer\", \"minimum\": 2}},"
    "   \"oneOf\": [{\"required\": [\"range\"]}, {\"required\": [\"log_range\", \"n\"]}]},"
    "  \"seeds\": {\"description\": \"vary fastest; one run for each\", \"anyOf\": [{\"type\": \"array\","
    "   \"minItems\": 1, \"items\": {\"type\": \"integer\", \"minimum\": 0}}, {\"$ref\": \"#/$defs/range\"}]},"
    "  \"grid\": {\"type\": \"object\", \"minProperties\": 1, \"properties\": {\"seeds\": {\"$ref\": "
    "\"#/$defs/seeds\"},"
    "    \"base\": {\"$ref\": \"#/$defs/run\"}, \"zip\": {\"type\": [\"object\", \"array\"]}},"
    "   \"additionalProperties\": {\"$ref\": \"#/$defs/axis\"}},"
    "  \"zip\": {\"type\": \"object\", \"properties\": {\"seeds\": {\"$ref\": \"#/$defs/seeds\"},"
    "    \"base\": {\"$ref\": \"#/$defs/run\"}}, \"additionalProperties\": {\"$ref\": \"#/$defs/axis\"}},"
    "  \"random\": {\"type\": \"object\", \"required\": [\"n\"], \"properties\": {"
    "    \"n\": {\"type\": \"integer\", \"minimum\": 1}, \"seed\": {\"type\": \"integer\", \"minimum\": 0},"
    "    \"seeds\": {\"$ref\": \"#/$defs/seeds\"}, \"base\": {\"$ref\": \"#/$defs/run\"}},"
    "   \"additionalProperties\": {\"description\": \"[distribution, arguments ...]\","
    "    \"type\": [\"array\", \"object\"]}},"
    "  \"rule\": {\"type\": \"object\", \"minProperties\": 1, \"description\": \"a value, or a list: any of these\"},"
    "  \"rules\": {\"anyOf\": [{\"$ref\": \"#/$defs/rule\"},"
    "   {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/rule\"}}]}}}";

/* The run's schema as a definition: a base may leave to an axis what a run needs. */
static pl_json *run_definition(const pl_registries *r) {
  pl_json *run = pl_run_config_schema(r), *definition = pl_json_new_object();
  bool ok = run != NULL && definition != NULL;
  for (void *it = pl_json_iter(run); ok && it != NULL; it = pl_json_iter_next(run, it)) {
    const char *key = pl_json_iter_key(it);
    if (strcmp(key, "$schema") == 0 || strcmp(key, "title") == 0) continue;
    ok = pl_json_set(definition, key, pl_json_retain(pl_json_iter_value(it)));
  }
  ok = ok && pl_json_set_path(definition, "properties.train.required", pl_json_new_array());
  pl_json_release(run);
  return pl_json_keep(definition, ok);
}

pl_json *pl_sweep_schema(const pl_registries *r) {
  pl_json *schema = NULL;
  if (pl_json_parse(SCHEMA, sizeof SCHEMA - 1, "the sweep schema", &schema, NULL) != PL_OK) return NULL;
  return pl_json_keep(schema, pl_json_set_path(schema, "$defs.run", run_definition(r)));
}
