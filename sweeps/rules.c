#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/config/params_text.h"
#include "sweeps/parts.h"

/* Room to try a value in: any config struct that a row may be of. */
typedef union scratch {
  pl_section section;
  pl_root_config root;
  pl_train_config train;
  pl_pipeline_config pipeline;
} scratch;

/* Of a part without types, else NULL. */
static const pl_param *table_of(pl_part part) {
  switch (part) {
  case PL_PART_ROOT:
    return pl_root_params;
  case PL_PART_TRAIN:
    return pl_train_params;
  case PL_PART_PIPELINE:
    return pl_pipeline_params;
  default:
    return NULL;
  }
}

static const pl_param *row_of(const pl_param *table, const char *key) {
  size_t i = pl_params_find(table, key);
  return i == SIZE_MAX ? NULL : &table[i];
}

static size_t add_names(const pl_param *table, const char **names, size_t count) {
  for (; table->type != PL_END; table++) {
    size_t i = 0;
    while (i < count && strcmp(names[i], table->name) != 0) i++;
    if (i == count) names[count++] = table->name;
  }
  return count;
}

/* No run, or no type of the part's registry, has the key. */
static pl_status unknown_key(const pl_registries *r, const pl_condition *c, const char *where, pl_err *e) {
  const pl_registry *types = pl_part_registry(r, c->part);
  const pl_param *table = table_of(c->part);
  const char **names = NULL;
  char seen[200];
  size_t room = PL_PARTS + (table != NULL ? pl_params_count(table) : 0), count = 0;
  for (size_t i = 0; types != NULL && i < types->count; i++) room += pl_params_count(types->items[i]->params);
  pl_status st = pl_alloc(room, sizeof *names, "the known keys", &names, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; types != NULL && i < types->count; i++) count = add_names(types->items[i]->params, names, count);
  if (table != NULL) count = add_names(table, names, count);
  for (size_t part = PL_PART_ROOT + 1; c->part == PL_PART_ROOT && part < PL_PARTS; part++)
    names[count++] = pl_part_paths[part];
  const char *owner = types != NULL ? types->kind : c->part == PL_PART_ROOT ? "run" : pl_part_paths[c->part];
  const char *article = types != NULL ? "any " : c->part == PL_PART_ROOT ? "a " : "";
  snprintf(seen, sizeof seen, "unknown key \"%.100s\" (of %s%s)", c->key, article, owner);
  st = pl_fail_name(names, count, c->key, where, seen, e);
  pl_free(names);
  return st;
}

/* "ef", "none", and for corrections also "ef+lookahead". */
static pl_status check_type_name(const pl_registry *types, bool is_chain, const pl_json *wanted, const char *where,
                                 pl_err *e) {
  const char *text = pl_json_string(wanted);
  char shown[80];
  pl_status st = PL_OK;
  pl_str name = {0};
  if (text == NULL)
    return pl_fail(e, PL_BAD, "%s: %s; allowed: the name of a type, or a list of these", where,
                   pl_json_show(wanted, shown));
  if (is_chain && strcmp(text, "none") == 0) return PL_OK;
  for (bool more = true; more && st == PL_OK; pl_str_free(&name)) {
    size_t length = is_chain ? strcspn(text, "+") : strlen(text);
    pl_str_append_bytes(&name, text, length);
    st = pl_str_check(&name, e);
    if (st == PL_OK && pl_registry_find(types, pl_str_text(&name), where, e) == NULL) st = PL_BAD;
    more = text[length] == '+';
    text += length + more;
  }
  return st;
}

/* Whether some type has the key with such a value; the message is that of the last type that has the key. */
static pl_status check_typed_value(const pl_registries *r, const pl_condition *c, const pl_json *wanted,
                                   const char *where, pl_err *e) {
  const pl_registry *types = pl_part_registry(r, c->part);
  pl_err last = {0};
  scratch room;
  for (size_t i = 0; i < types->count; i++) {
    const pl_param *row = row_of(types->items[i]->params, c->key);
    if (row == NULL) continue;
    last = (pl_err){0};
    if (pl_param_set(row, room.section.config, wanted, where, &last) == PL_OK) return PL_OK;
  }
  if (last.status == PL_OK) return unknown_key(r, c, where, e);
  return pl_fail(e, last.status, "%s", last.text);
}

static pl_status check_value(const pl_registries *r, const pl_condition *c, const pl_json *wanted, const char *where,
                             pl_err *e) {
  const pl_param *table = table_of(c->part);
  scratch room;
  if (table == NULL && c->key[0] == '\0')
    return check_type_name(pl_part_registry(r, c->part), c->part == PL_PART_CORRECTION, wanted, where, e);
  if (table == NULL) return check_typed_value(r, c, wanted, where, e);
  if (c->key[0] == '\0')
    return pl_fail(e, PL_BAD, "%s: a whole section; allowed: one of its keys, as in %s.%s", where,
                   pl_part_paths[c->part], table->name);
  if (c->row == NULL) return unknown_key(r, c, where, e);
  return pl_param_set(c->row, &room, wanted, where, e);
}

static pl_status check_condition(const pl_registries *r, const pl_condition *c, const char *where, pl_err *e) {
  bool list = pl_json_kind_of(c->wanted) == PL_JSON_ARRAY;
  if (!list) return check_value(r, c, c->wanted, where, e);
  if (pl_json_size(c->wanted) == 0)
    return pl_fail(e, PL_BAD, "%s: the list is empty; allowed: at least one value", where);
  for (size_t i = 0; i < pl_json_size(c->wanted); i++) {
    pl_status st = check_value(r, c, pl_json_at(c->wanted, i), where, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

static pl_status parse_rule(const pl_registries *r, const pl_json *object, const char *where, pl_rule *rule,
                            pl_err *e) {
  pl_status st = PL_OK;
  char shown[80];
  pl_str path = {0};
  if (pl_json_kind_of(object) != PL_JSON_OBJECT || pl_json_size(object) == 0)
    return pl_fail(e, PL_BAD, "%s: %s; allowed: an object of dotted keys with a value, or a list of values", where,
                   pl_json_show(object, shown));
  PL_TRY(pl_alloc(pl_json_size(object), sizeof *rule->conditions, "the conditions of a rule", &rule->conditions, e));
  for (void *it = pl_json_iter(object); it != NULL; it = pl_json_iter_next(object, it)) {
    pl_condition *c = &rule->conditions[rule->count++];
    c->wanted = pl_json_iter_value(it);
    c->part = pl_part_of(pl_json_iter_key(it), &c->key);
    if (table_of(c->part) != NULL) c->row = row_of(table_of(c->part), c->key);
    if (table_of(c->part) == NULL && strcmp(c->key, "type") == 0) c->key = "";
    pl_str_free(&path);
    pl_str_printf(&path, "%s.%s", where, pl_json_iter_key(it));
    PL_TRY(pl_str_check(&path, e));
    PL_TRY(check_condition(r, c, pl_str_text(&path), e));
  }
out:
  pl_str_free(&path);
  return st;
}

pl_status pl_rules_parse(const pl_registries *r, const pl_json *document, const char *key, pl_rules *out, pl_err *e) {
  const pl_json *value = pl_json_get(document, key);
  bool listed = pl_json_kind_of(value) == PL_JSON_ARRAY;
  size_t count = listed ? pl_json_size(value) : value != NULL;
  pl_status st = PL_OK;
  pl_str where = {0};
  PL_TRY(pl_alloc(count, sizeof *out->rules, "rules", &out->rules, e));
  for (size_t i = 0; i < count; i++) {
    pl_str_free(&where);
    pl_str_append(&where, key);
    if (listed) pl_str_printf(&where, "[%zu]", i);
    PL_TRY(pl_str_check(&where, e));
    out->count++;
    PL_TRY(parse_rule(r, listed ? pl_json_at(value, i) : value, pl_str_text(&where), &out->rules[i], e));
  }
out:
  pl_str_free(&where);
  return st;
}

/* Whether the names of the sections, joined by "+", are the text; no section is "none". */
static bool names_are(const pl_section *sections, size_t count, const char *text) {
  if (text == NULL) return false;
  if (count == 0) return strcmp(text, "none") == 0;
  for (size_t i = 0; i < count; i++) {
    const char *name = sections[i].type->name;
    size_t length = strlen(name);
    if (strncmp(text, name, length) != 0) return false;
    text += length;
    if (i + 1 < count && *text++ != '+') return false;
  }
  return *text == '\0';
}

static bool section_has(pl_condition *c, const pl_section *section, const pl_json *wanted) {
  if (section->type != c->type) {
    c->type = section->type;
    c->row = row_of(section->type->params, c->key);
  }
  return c->row != NULL && pl_param_matches(c->row, section->config, wanted);
}

static bool has_value(pl_condition *c, pl_run_config *run, const pl_json *wanted) {
  const pl_section *sections = pl_part_section(run, c->part);
  size_t count = 1;
  if (c->part == PL_PART_ROOT) return pl_param_matches(c->row, &run->root, wanted);
  if (c->part == PL_PART_TRAIN) return pl_param_matches(c->row, &run->train, wanted);
  if (c->part == PL_PART_PIPELINE) return pl_param_matches(c->row, &run->pipeline, wanted);
  if (c->part == PL_PART_CORRECTION) {
    sections = run->corrections;
    count = run->correction_count;
  }
  if (c->key[0] == '\0') return names_are(sections, count, pl_json_string(wanted));
  for (size_t i = 0; i < count; i++)
    if (section_has(c, &sections[i], wanted)) return true;
  return false;
}

static bool condition_holds(pl_condition *c, pl_run_config *run) {
  if (pl_json_kind_of(c->wanted) != PL_JSON_ARRAY) return has_value(c, run, c->wanted);
  for (size_t i = 0; i < pl_json_size(c->wanted); i++)
    if (has_value(c, run, pl_json_at(c->wanted, i))) return true;
  return false;
}

static bool rule_holds(pl_rule *rule, pl_run_config *run) {
  for (size_t i = 0; i < rule->count; i++)
    if (!condition_holds(&rule->conditions[i], run)) return false;
  return true;
}

bool pl_rules_hold(pl_rules *rules, pl_run_config *c) {
  for (size_t i = 0; i < rules->count; i++)
    if (rule_holds(&rules->rules[i], c)) return true;
  return false;
}

void pl_rules_free(pl_rules *rules) {
  for (size_t i = 0; i < rules->count; i++) pl_free(rules->rules[i].conditions);
  pl_free(rules->rules);
  *rules = (pl_rules){0};
}

struct pl_sweep_condition {
  pl_json *object; /* the rule borrows its values */
  pl_rule rule;
};

pl_status pl_sweep_condition_make(const pl_registries *r, const pl_json *object, const char *where,
                                  pl_sweep_condition **out, pl_err *e) {
  pl_status st = pl_alloc(1, sizeof **out, "a condition", out, e);
  if (st != PL_OK) return st;
  (*out)->object = pl_json_retain(object);
  st = parse_rule(r, object, where, &(*out)->rule, e);
  if (st == PL_OK) return PL_OK;
  pl_sweep_condition_free(*out);
  *out = NULL;
  return st;
}

bool pl_sweep_condition_holds(pl_sweep_condition *c, pl_run_config *run) { return rule_holds(&c->rule, run); }

void pl_sweep_condition_free(pl_sweep_condition *c) {
  if (c == NULL) return;
  pl_free(c->rule.conditions);
  pl_json_release(c->object);
  pl_free(c);
}
