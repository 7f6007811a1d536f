#include "core/config/run_config.h"

#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/config/run_fill.h"
#include "core/config/run_schedule.h"

/* What the entries say about a part with a type, seen from the last layer. */
typedef struct choice {
  const char *name;           /* the type; NULL: not said, or `body` is a list */
  const pl_json *body;        /* the object or list that states the part, or NULL */
  const char *where, *member; /* of the name or body */
  size_t floor;               /* dotted keys before this position were dropped by an object or a list */
} choice;

typedef struct builder {
  const pl_registries *registries;
  pl_run_config *out;
  choice chosen[PL_PARTS];
  pl_filling filling[PL_PARTS + PL_MAX_CORRECTIONS - 1]; /* the chain's members follow from PL_PART_CORRECTION */
} builder;

/* One key of one entry; members of a "train" or "pipeline" object are items of their own. */
typedef struct item {
  pl_part part;
  const char *key; /* "" for the whole part */
  const pl_json *value;
  const char *where, *member; /* where it was written is WHERE or WHERE.MEMBER */
  size_t position;
} item;

typedef pl_status (*visitor)(builder *b, const item *i, pl_err *e);

static pl_status visit_members(builder *b, visitor visit, item i, size_t *position, pl_err *e) {
  const pl_json *object = i.value;
  const pl_part part = i.part;
  if (pl_json_kind_of(object) != PL_JSON_OBJECT)
    return pl_fail(e, PL_BAD, "%s: must be an object, not %s", i.where, pl_json_kind_name(pl_json_kind_of(object)));
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) {
    i.member = pl_json_iter_key(it);
    i.value = pl_json_iter_value(it);
    i.position = (*position)++;
    const char *key = part == PL_PART_TRAIN ? pl_path_after(i.member, "lr_schedule") : NULL;
    i.part = key ? PL_PART_LR_SCHEDULE : part;
    i.key = key ? key : i.member;
    pl_status st = visit(b, &i, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

static pl_status visit_all(builder *b, visitor visit, const pl_entry *entries, size_t count, pl_err *e) {
  size_t position = 0;
  for (size_t n = 0; n < count; n++) {
    item i = {.value = entries[n].value, .where = entries[n].where, .member = ""};
    i.part = pl_part_of(entries[n].path, &i.key);
    pl_status st;
    if (i.key[0] == '\0' && (i.part == PL_PART_TRAIN || i.part == PL_PART_PIPELINE))
      st = visit_members(b, visit, i, &position, e);
    else {
      i.position = position++;
      st = visit(b, &i, e);
    }
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

static bool is_choice(const item *i) {
  return i->part >= PL_PART_MODEL && (i->key[0] == '\0' || strcmp(i->key, "type") == 0);
}

static const char *type_name(const pl_json *object) { return pl_json_string(pl_json_get(object, "type")); }

static pl_status no_choice(const pl_json *value, const char *where, const char *member, pl_err *e) {
  char place[PL_WHERE];
  return pl_fail(e, PL_BAD, "%s: must be a name or an object with \"type\", not %s", pl_where(where, member, place),
                 pl_json_kind_name(pl_json_kind_of(value)));
}

/* First pass: which types are chosen, and which dotted keys an object has dropped. The keys of the root are filled, so
 * that a mistyped section is an unknown key before it is a missing one. */
static pl_status choose(builder *b, const item *i, pl_err *e) {
  if (i->part == PL_PART_ROOT) return pl_fill(&b->filling[PL_PART_ROOT], i->key, i->value, i->where, e);
  if (!is_choice(i)) return PL_OK;
  choice *c = &b->chosen[i->part];
  pl_json_kind kind = pl_json_kind_of(i->value);
  const char *name = pl_json_string(i->value);
  bool list = kind == PL_JSON_ARRAY && i->part == PL_PART_CORRECTION;
  if (i->key[0] == '\0' && (kind == PL_JSON_OBJECT || list)) {
    c->body = i->value;
    c->name = type_name(i->value);
    c->floor = i->position;
  } else if (name) {
    const char *stated = type_name(c->body);
    if (!stated || strcmp(stated, name) != 0) c->body = NULL; /* another type's keys do not carry over */
    c->name = name;
  } else
    return no_choice(i->value, i->where, i->member, e);
  c->where = i->where;
  c->member = i->member;
  return PL_OK;
}

/* Second pass: the keys. */
static pl_status apply(builder *b, const item *i, pl_err *e) {
  char place[PL_WHERE];
  if (i->part == PL_PART_ROOT || is_choice(i) || i->position < b->chosen[i->part].floor) return PL_OK;
  const char *where = i->member[0] ? pl_where(i->where, i->member, place) : i->where;
  if (i->part == PL_PART_CORRECTION && b->out->correction_count != 1)
    return pl_fail(e, PL_BAD,
                   "%s: a key of the correction needs exactly one correction, not %zu of them; allowed: an object in "
                   "the list, as in [\"lookahead\", {\"type\": \"ef\", \"lambda\": 0.5}]",
                   where, b->out->correction_count);
  return pl_fill(&b->filling[i->part], i->key, i->value, where, e);
}

static void start_table(builder *b, pl_part part, const pl_param *table, void *config, size_t size) {
  memset(config, 0, size);
  pl_params_defaults(table, config);
  b->filling[part] = (pl_filling){
      .table = table, .config = config, .kind = pl_part_paths[part], .name = "", .path = pl_part_paths[part]};
}

static pl_status no_type(const pl_registry *registry, const pl_json *body, const char *where, pl_err *e) {
  const pl_json *type = pl_json_get(body, "type");
  if (!type) return pl_registry_fail(registry, "", where, body ? "\"type\" is missing" : "missing", e);
  char place[PL_WHERE];
  return pl_fail(e, PL_BAD, "%s: must be a string, not %s", pl_where(where, "type", place),
                 pl_json_kind_name(pl_json_kind_of(type)));
}

static pl_status start_section(const pl_registry *registry, const char *name, const pl_json *body, const char *path,
                               const char *where, pl_section *section, pl_filling *f, pl_err *e) {
  if (!name) return no_type(registry, body, where, e);
  const pl_component *type = pl_registry_find(registry, name, where, e);
  if (!type) return PL_BAD;
  pl_status st = pl_fill_section(type, path, registry->kind, section, f, e);
  return st == PL_OK && body ? pl_fill_object(f, body, where, e) : st;
}

static pl_status start_parts(builder *b, pl_err *e) {
  static const char *const defaults[PL_PARTS] = {[PL_PART_DATA] = "none", [PL_PART_LR_SCHEDULE] = "cosine"};
  for (pl_part part = PL_PART_MODEL; part < PL_PART_CORRECTION; part++) {
    const choice *c = &b->chosen[part];
    char place[PL_WHERE];
    const char *where = c->where ? pl_where(c->where, c->member, place) : pl_part_paths[part];
    pl_status st = start_section(pl_part_registry(b->registries, part), c->where ? c->name : defaults[part], c->body,
                                 pl_part_paths[part], where, pl_part_section(b->out, part), &b->filling[part], e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

/* Adds one member to the chain; "none" adds nothing. */
static pl_status chain(builder *b, const char *name, const pl_json *body, const char *where, pl_err *e) {
  size_t count = b->out->correction_count;
  if (name && strcmp(name, "none") == 0 && (!body || pl_json_size(body) == 1)) return PL_OK;
  if (count == PL_MAX_CORRECTIONS)
    return pl_fail(e, PL_BAD, "%s: too many corrections; at most %d may be chained", where, PL_MAX_CORRECTIONS);
  b->out->correction_count++;
  return start_section(&b->registries->corrections, name, body, pl_correction_paths[count], where,
                       &b->out->corrections[count], &b->filling[PL_PART_CORRECTION + count], e);
}

static pl_status start_chain(builder *b, pl_err *e) {
  const choice *c = &b->chosen[PL_PART_CORRECTION];
  char place[PL_WHERE], element[PL_WHERE + 24];
  b->out->correction_count = 0;
  if (!c->where) return PL_OK;
  const char *where = pl_where(c->where, c->member, place);
  if (pl_json_kind_of(c->body) != PL_JSON_ARRAY) return chain(b, c->name, c->body, where, e);
  for (size_t i = 0; i < pl_json_size(c->body); i++) {
    const pl_json *value = pl_json_at(c->body, i);
    bool object = pl_json_kind_of(value) == PL_JSON_OBJECT;
    const char *name = object ? type_name(value) : pl_json_string(value);
    snprintf(element, sizeof element, "%s[%zu]", where, i);
    if (!object && !name) return no_choice(value, element, "", e);
    pl_status st = chain(b, name, object ? value : NULL, element, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

/* root.delay becomes what the schedule gives when it was left out or says the same. Where it says something else, or
 * the schedule does not allow its numbers, it stays: a sweep may still exclude the run. */
static pl_status settle_delay(const builder *b, pl_run_memo *memo, pl_err *e) {
  pl_run_config *c = b->out;
  const pl_schedule_type *type = pl_run_config_schedule_type(c);
  const pl_filling *root = &b->filling[PL_PART_ROOT];
  bool given = root->given >> pl_params_find(root->table, "delay") & 1;
  pl_run_facts facts;
  pl_err refused = {0};
  /* With more microbatches than tokens there is no run, and the schedule could be very long. */
  if (!type || type->takes_delay || c->pipeline.microbatches > c->train.batch_tokens) return PL_OK;
  pl_status st = pl_run_config_facts(c, NULL, memo, &facts, &refused);
  if (st == PL_FAIL) return pl_fail(e, st, "%s", refused.text);
  if (st == PL_OK && (!given || pl_run_config_has_delays(c, facts.delay))) pl_run_config_set_delays(c, facts.delay);
  return PL_OK;
}

static pl_status finish(const builder *b, pl_err *e) {
  for (size_t i = 0; i < PL_PART_CORRECTION + b->out->correction_count; i++) {
    pl_status st = pl_fill_finish(&b->filling[i], e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

pl_status pl_run_config_build_with(const pl_registries *r, const pl_entry *entries, size_t count, pl_run_memo *memo,
                                   pl_run_config *out, pl_err *e) {
  builder b = {.registries = r, .out = out};
  pl_status st = PL_OK;
  out->tables = NULL;
  start_table(&b, PL_PART_ROOT, pl_root_params, &out->root, sizeof out->root);
  start_table(&b, PL_PART_TRAIN, pl_train_params, &out->train, sizeof out->train);
  start_table(&b, PL_PART_PIPELINE, pl_pipeline_params, &out->pipeline, sizeof out->pipeline);
  PL_TRY(visit_all(&b, choose, entries, count, e));
  PL_TRY(start_parts(&b, e));
  PL_TRY(start_chain(&b, e));
  PL_TRY(visit_all(&b, apply, entries, count, e));
  PL_TRY(finish(&b, e));
  st = settle_delay(&b, memo, e);
out:
  return st;
}

pl_status pl_run_config_build(const pl_registries *r, const pl_entry *entries, size_t count, pl_run_config *out,
                              pl_err *e) {
  return pl_run_config_build_with(r, entries, count, NULL, out, e);
}

pl_status pl_run_config_from_json(const pl_registries *r, const pl_json *run, const char *where, pl_run_config *out,
                                  pl_err *e) {
  pl_entry *entries = NULL;
  size_t count = 0;
  pl_status st = PL_OK;
  if (pl_json_kind_of(run) != PL_JSON_OBJECT)
    return pl_fail(e, PL_BAD, "%s: must be an object, not %s", where, pl_json_kind_name(pl_json_kind_of(run)));
  PL_TRY(pl_alloc(pl_json_size(run), sizeof *entries, "the keys of a run", &entries, e));
  for (void *it = pl_json_iter(run); it; it = pl_json_iter_next(run, it)) {
    const char *key = pl_json_iter_key(it);
    entries[count++] = (pl_entry){.path = key, .value = pl_json_iter_value(it), .where = key};
  }
  st = pl_run_config_build(r, entries, count, out, e);
  if (st != PL_OK && where[0]) pl_err_prefix(e, "%s", where);
out:
  pl_free(entries);
  return st;
}
