#include "results/imported.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/config/run_parts.h"

enum { SLOT = 8, MOST_KEYS = PL_SECTION_SIZE / SLOT, SECTIONS = 4 + PL_MAX_CORRECTIONS };

/* The rows of a table, as many as there were keys, and the names of those that are nested. */
typedef struct rows {
  pl_param *list; /* closed by PL_END */
  size_t count, room;
  char *names[MOST_KEYS];
  size_t name_count;
} rows;

struct pl_imported {
  pl_run_config config;
  pl_config_tables tables;
  pl_component components[SECTIONS];
  rows sections[SECTIONS];
  size_t section_count;
  rows root, train, pipeline;
};

static pl_status make_room(rows *r, pl_err *e) {
  size_t larger = r->room ? 2 * r->room : 8;
  if (r->count + 1 < r->room) return PL_OK;
  pl_status st = pl_grow(r->room, larger, sizeof *r->list, "the keys of a run", &r->list, e);
  if (st == PL_OK) r->room = larger;
  return st;
}

static pl_status push(rows *r, const pl_param *row, pl_err *e) {
  pl_status st = make_room(r, e);
  if (st == PL_OK) r->list[r->count++] = *row;
  return st;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const pl_param *)a)->name, ((const pl_param *)b)->name);
}

/* The order in which a run states its keys says nothing. */
static void sort(rows *r) { qsort(r->list, r->count, sizeof *r->list, by_name); }

static void free_rows(rows *r) {
  for (size_t i = 0; i < r->name_count; i++) pl_free(r->names[i]);
  pl_free(r->list);
}

void pl_imported_free(pl_imported *i) {
  if (!i) return;
  for (size_t s = 0; s < SECTIONS; s++) free_rows(&i->sections[s]);
  free_rows(&i->root);
  free_rows(&i->train);
  free_rows(&i->pipeline);
  pl_free(i);
}

pl_run_config *pl_imported_config(pl_imported *i) { return &i->config; }

/* A table whose rows lie in a struct of core: what is stated is checked by its row, and the row is kept. */
static pl_status state(rows *r, const pl_param *table, void *config, const char *key, const pl_json *value,
                       const char *owner, const char *where, pl_err *e) {
  char place[PL_WHERE];
  size_t row = pl_params_find(table, key);
  if (row == SIZE_MAX) return pl_params_unknown(table, owner, key, where, e);
  pl_status st = pl_param_set(&table[row], config, value, pl_where(where, key, place), e);
  return st == PL_OK ? push(r, &table[row], e) : st;
}

static pl_status state_all(rows *r, const pl_param *table, void *config, const pl_json *object, const char *owner,
                           const char *where, pl_err *e) {
  char place[PL_WHERE];
  pl_where(where, owner, place);
  if (object && pl_json_kind_of(object) != PL_JSON_OBJECT)
    return pl_fail(e, PL_BAD, "%s: must be an object, not %s", place, pl_json_kind_name(pl_json_kind_of(object)));
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) {
    if (strcmp(pl_json_iter_key(it), "lr_schedule") == 0 && table == pl_train_params) continue;
    pl_status st = state(r, table, config, pl_json_iter_key(it), pl_json_iter_value(it), owner, place, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

/* A free key takes the next slot of its section; slot 0 of an optimizer is its learning rate. */
static pl_status free_key(rows *r, const char *name, const pl_json *value, pl_section *section, size_t slot,
                          const char *where, pl_err *e) {
  unsigned char *to = section->config + slot * SLOT;
  pl_param row = {.name = name, .offset = slot * SLOT, .help = "as it was imported"};
  const char *text = pl_json_string(value);
  const double number = pl_json_number(value);
  const bool truth = pl_json_bool(value);
  switch (pl_json_kind_of(value)) {
  case PL_JSON_INT:
  case PL_JSON_REAL:
    row.type = PL_REAL;
    memcpy(to, &number, sizeof number);
    break;
  case PL_JSON_BOOL:
    row.type = PL_BOOL;
    memcpy(to, &truth, sizeof truth);
    break;
  case PL_JSON_STRING:
    row.type = PL_TEXT;
    memcpy(to, &text, sizeof text);
    break;
  default:
    return pl_fail(e, PL_BAD, "%s.%s: must be a number, a truth value or a text, not %s", where, name,
                   pl_json_kind_name(pl_json_kind_of(value)));
  }
  return push(r, &row, e);
}

/* "adamw" of "adamw.lr" when the key is nested in it. */
static pl_status full_name(rows *r, const char *group, const char *key, const char **out, pl_err *e) {
  char place[PL_WHERE];
  *out = key;
  if (group[0] == '\0' || r->name_count == MOST_KEYS) return PL_OK;
  pl_status st = pl_strdup(pl_where(group, key, place), &r->names[r->name_count], e);
  if (st == PL_OK) *out = r->names[r->name_count++];
  return st;
}

static pl_status free_keys(rows *r, const char *group, const pl_json *object, pl_section *section, size_t first,
                           const char *where, pl_err *e) {
  pl_status st = PL_OK;
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) {
    const char *key = pl_json_iter_key(it), *name = key;
    const pl_json *value = pl_json_iter_value(it);
    bool own = group[0] == '\0' && (strcmp(key, "type") == 0 || (first == 1 && strcmp(key, "lr") == 0));
    if (own || pl_json_kind_of(value) == PL_JSON_NULL) continue;
    PL_TRY(full_name(r, group, key, &name, e));
    if (pl_json_kind_of(value) == PL_JSON_OBJECT) {
      PL_TRY(free_keys(r, name, value, section, first, where, e));
      continue;
    }
    if (r->count + 1 >= MOST_KEYS)
      PL_TRY(pl_fail(e, PL_BAD, "%s: has more than %d keys; allowed: at most %d", where, MOST_KEYS - 2, MOST_KEYS - 2));
    PL_TRY(free_key(r, name, value, section, first + r->count, where, e));
  }
out:
  return st;
}

/* The type of a component: NULL or without one when it is not stated, a name, or an object. */
static const char *type_of(const pl_json *value) {
  if (pl_json_string(value)) return pl_json_string(value);
  const pl_json *type = pl_json_get(value, "type");
  bool stated = type || (value && pl_json_kind_of(value) != PL_JSON_OBJECT);
  return stated ? pl_json_string(type) : "unknown";
}

static pl_status read_section(pl_imported *i, const pl_json *object, const char *path, pl_section *out,
                              const char *where, pl_err *e) {
  char place[PL_WHERE];
  const size_t n = i->section_count++;
  const char *name = type_of(object);
  pl_status st = PL_OK;
  pl_where(where, path, place);
  if (!name || name[0] == '\0')
    return pl_fail(e, PL_BAD, "%s: has no name; allowed: a name, or an object with \"type\"", place);
  PL_TRY(make_room(&i->sections[n], e));
  if (strcmp(path, "optimizer") == 0) {
    const pl_json *lr = pl_json_get(object, "lr");
    if (lr && !(pl_json_number(lr) > 0 && isfinite(pl_json_number(lr))))
      PL_TRY(pl_fail(e, PL_BAD, "%s.lr: must be a number > 0", place));
    if (lr) PL_TRY(free_key(&i->sections[n], "lr", lr, out, 0, place, e));
    PL_TRY(free_keys(&i->sections[n], "", object, out, 1, place, e));
  } else {
    PL_TRY(free_keys(&i->sections[n], "", object, out, 0, place, e));
  }
  sort(&i->sections[n]);
  i->components[n] = (pl_component){.name = name,
                                    .summary = "imported",
                                    .source = "imported",
                                    .params = i->sections[n].list,
                                    .config_size = PL_SECTION_SIZE};
  out->type = &i->components[n];
out:
  return st;
}

/* "none" is no correction; a list is a chain. */
static pl_status read_chain(pl_imported *i, const pl_json *value, const char *where, pl_err *e) {
  pl_status st = PL_OK;
  pl_run_config *c = &i->config;
  bool list = pl_json_kind_of(value) == PL_JSON_ARRAY;
  for (size_t k = 0; value && k < (list ? pl_json_size(value) : 1); k++) {
    const pl_json *member = list ? pl_json_at(value, k) : value;
    const char *name = type_of(member);
    if (name && strcmp(name, "none") == 0) continue;
    if (c->correction_count == PL_MAX_CORRECTIONS)
      PL_TRY(pl_fail(e, PL_BAD, "%s.correction: too many corrections; at most %d may be chained", where,
                     PL_MAX_CORRECTIONS));
    PL_TRY(read_section(i, member, "correction", &c->corrections[c->correction_count++], where, e));
  }
out:
  return st;
}

/* Where only the delays of the stages are stated, they tell how many stages there are. */
static pl_status check_delay(pl_imported *i, const char *where, pl_err *e) {
  const pl_int_list *d = &i->config.root.delay;
  bool stated = pl_params_find(i->pipeline.list, "stages") != SIZE_MAX;
  int64_t stages = i->config.pipeline.stages;
  if (!stated && d->count > 1) i->config.pipeline.stages = (int64_t)d->count;
  if (stated && d->count > 1 && (int64_t)d->count != stages)
    return pl_fail(e, PL_BAD, "%s.delay: has %zu values; allowed: one, or one for each of the %lld stages", where,
                   d->count, (long long)stages);
  if (!stated && d->count == 0) return pl_fail(e, PL_BAD, "%s.delay: pipedream needs pipeline.stages", where);
  return PL_OK;
}

/* Rows that are always there, so that runs which state them and runs which leave them out can be paired. */
static pl_status read_root(pl_imported *i, const pl_json *document, const char *where, pl_err *e) {
  static const char *const sections[] = {"model", "data",     "optimizer",    "correction",
                                         "train", "pipeline", PL_IMPORTED_KEY};
  static const char *const always[] = {"seed", "delay", "delay_start", "simulate_only"};
  pl_status st = PL_OK;
  for (size_t k = 0; k < sizeof always / sizeof *always; k++)
    PL_TRY(push(&i->root, &pl_root_params[pl_params_find(pl_root_params, always[k])], e));
  for (void *it = pl_json_iter(document); it; it = pl_json_iter_next(document, it)) {
    const char *key = pl_json_iter_key(it);
    rows *to = &i->root, unused = {0};
    bool section = false;
    for (size_t k = 0; k < sizeof sections / sizeof *sections; k++) section |= strcmp(key, sections[k]) == 0;
    if (section) continue;
    if (pl_params_find(i->root.list, key) != SIZE_MAX) to = &unused;
    st = state(to, pl_root_params, &i->config.root, key, pl_json_iter_value(it),
               "an imported run; a key of one's own goes below model, data, optimizer or correction", where, e);
    free_rows(&unused);
    if (st != PL_OK) goto out;
  }
out:
  return st;
}

/* Readers of curves ask how many validations a run had. */
static void take_cadence(pl_imported *i, const pl_json *hints) {
  pl_train_config *t = &i->config.train;
  if (pl_params_find(i->train.list, "steps") == SIZE_MAX) t->steps = pl_json_get_int(hints, "steps", 0);
  if (pl_params_find(i->train.list, "val_every") == SIZE_MAX) t->val_every = pl_json_get_int(hints, "val_every", 0);
}

pl_status pl_imported_read(const pl_json *document, const char *where, pl_imported **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_imported *i = NULL;
  *out = NULL;
  if (pl_json_kind_of(document) != PL_JSON_OBJECT) return pl_fail(e, PL_BAD, "%s: must be an object", where);
  PL_TRY(pl_alloc(1, sizeof *i, "an imported run", &i, e));
  PL_TRY(make_room(&i->train, e));
  PL_TRY(make_room(&i->pipeline, e));
  pl_run_config *c = &i->config;
  const pl_json *train = pl_json_get(document, "train"), *optimizer = pl_json_get(document, "optimizer");
  pl_params_defaults(pl_root_params, &c->root);
  pl_params_defaults(pl_train_params, &c->train);
  pl_params_defaults(pl_pipeline_params, &c->pipeline);
  PL_TRY(read_root(i, document, where, e));
  PL_TRY(state_all(&i->train, pl_train_params, &c->train, train, "train", where, e));
  PL_TRY(state_all(&i->pipeline, pl_pipeline_params, &c->pipeline, pl_json_get(document, "pipeline"), "pipeline", where,
                   e));
  if (!optimizer || !type_of(optimizer) || strcmp(type_of(optimizer), "unknown") == 0)
    PL_TRY(pl_fail(e, PL_BAD, "%s: no optimizer is stated; a name is needed, as in --set optimizer=adamw", where));
  PL_TRY(read_section(i, pl_json_get(document, "model"), "model", &c->model, where, e));
  PL_TRY(read_section(i, pl_json_get(document, "data"), "data", &c->data, where, e));
  PL_TRY(read_section(i, optimizer, "optimizer", &c->optimizer, where, e));
  PL_TRY(read_section(i, pl_json_get(train, "lr_schedule"), "train.lr_schedule", &c->lr_schedule, where, e));
  PL_TRY(read_chain(i, pl_json_get(document, "correction"), where, e));
  PL_TRY(check_delay(i, where, e));
  take_cadence(i, pl_json_get(document, PL_IMPORTED_KEY));
  sort(&i->train);
  sort(&i->pipeline);
  i->tables = (pl_config_tables){i->root.list, i->train.list, i->pipeline.list};
  c->tables = &i->tables;
  *out = i;
out:
  if (st != PL_OK) pl_imported_free(i);
  return st;
}
