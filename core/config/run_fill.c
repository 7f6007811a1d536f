#include "core/config/run_fill.h"

#include <stdio.h>
#include <string.h>

/* At the root the sections stand beside the table's keys. */
static pl_status unknown_at_root(const char *key, const char *where, pl_err *e) {
  static const char *const sections[] = {"model", "data", "optimizer", "correction", "train", "pipeline"};
  const char *names[PL_MAX_PARAMS];
  char head[PL_WHERE], seen[PL_WHERE + 40];
  size_t count = 0;
  for (; count < sizeof sections / sizeof *sections; count++) names[count] = sections[count];
  for (const pl_param *row = pl_root_params; row->type != PL_END; row++) names[count++] = row->name;
  snprintf(head, sizeof head, "%.*s", (int)strcspn(key, "."), key);
  snprintf(seen, sizeof seen, "unknown key \"%s\" (of a run)", head);
  return pl_fail_name(names, count, head, where, seen, e);
}

static pl_status unknown(const pl_filling *f, const char *key, const char *where, pl_err *e) {
  if (f->table == pl_root_params) return unknown_at_root(key, where, e);
  char owner[PL_WHERE];
  snprintf(owner, sizeof owner, "%s%s%s", f->kind, f->name[0] ? " " : "", f->name);
  return pl_params_unknown(f->table, owner, key, where, e);
}

static pl_status fill_group(pl_filling *f, const char *group, const pl_json *object, const char *where, pl_err *e) {
  char key[PL_WHERE], place[PL_WHERE];
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) {
    const char *name = pl_json_iter_key(it);
    pl_status st = pl_fill(f, pl_where(group, name, key), pl_json_iter_value(it), pl_where(where, name, place), e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

pl_status pl_fill(pl_filling *f, const char *key, const pl_json *value, const char *where, pl_err *e) {
  size_t row = pl_params_find(f->table, key);
  if (row != SIZE_MAX) {
    f->given |= UINT64_C(1) << row;
    return pl_param_set(&f->table[row], f->config, value, where, e);
  }
  if (pl_json_kind_of(value) == PL_JSON_OBJECT && pl_params_is_group(f->table, key))
    return fill_group(f, key, value, where, e);
  return unknown(f, key, where, e);
}

pl_status pl_fill_object(pl_filling *f, const pl_json *object, const char *where, pl_err *e) {
  char place[PL_WHERE];
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) {
    const char *key = pl_json_iter_key(it);
    if (strcmp(key, "type") == 0) continue;
    pl_status st = pl_fill(f, key, pl_json_iter_value(it), pl_where(where, key, place), e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

static pl_status missing(const pl_filling *f, const pl_param *row, pl_err *e) {
  char place[PL_WHERE];
  pl_str allowed = {0};
  pl_param_append_allowed(row, &allowed);
  pl_fail(e, PL_BAD, "%s: missing; %s is needed", pl_where(f->path, row->name, place), pl_str_text(&allowed));
  pl_str_free(&allowed);
  return PL_BAD;
}

pl_status pl_fill_finish(const pl_filling *f, pl_err *e) {
  for (size_t i = 0; f->table[i].type != PL_END; i++)
    if (f->table[i].required && !(f->given >> i & 1)) return missing(f, &f->table[i], e);
  if (!f->type || !f->type->check) return PL_OK;
  pl_err own = {.text = ""};
  pl_status st = f->type->check(f->config, &own);
  return st == PL_OK ? PL_OK : pl_fail(e, st, "%s.%s", f->path, own.text);
}

pl_status pl_fill_section(const pl_component *type, const char *path, const char *kind, pl_section *section,
                          pl_filling *f, pl_err *e) {
  size_t rows = pl_params_count(type->params);
  if (type->config_size > PL_SECTION_SIZE || rows > PL_MAX_PARAMS)
    return pl_fail(e, PL_FAIL, "%s: internal error: %s has %zu bytes and %zu parameters; at most %d and %d fit", path,
                   type->name, type->config_size, rows, PL_SECTION_SIZE, PL_MAX_PARAMS);
  section->type = type;
  memset(section->config, 0, type->config_size);
  pl_params_defaults(type->params, section->config);
  *f = (pl_filling){
      .table = type->params, .config = section->config, .kind = kind, .name = type->name, .path = path, .type = type};
  return PL_OK;
}
