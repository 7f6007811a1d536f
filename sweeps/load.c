#include <string.h>

#include "core/base/memory.h"
#include "sweeps/parts.h"

/* Room for the entries of any combination, the base's already in place. */
static pl_status make_values(pl_sweep *s, pl_err *e) {
  size_t room = 0;
  for (size_t i = 0; i < s->block_count; i++) {
    size_t own = s->blocks[i].fixed_count + s->blocks[i].slots;
    if (own > room) room = own;
  }
  pl_status st = pl_alloc(s->base_count + room, sizeof *s->values, "the settings of a run", &s->values, e);
  if (st == PL_OK) memcpy(s->values, s->base, s->base_count * sizeof *s->base);
  return st;
}

static pl_status parse_seeds(pl_sweep *s, pl_err *e) {
  const pl_json *seeds = pl_json_get(s->document, "seeds");
  pl_status st = seeds == NULL ? PL_OK : pl_axis_seeds(seeds, &s->seeds, e);
  if (st != PL_OK) pl_err_prefix(e, "seeds");
  return st;
}

pl_status pl_sweep_from_json(const pl_registries *r, const pl_json *document, const char *path, pl_sets sets,
                             pl_sweep **out, pl_err *e) {
  pl_sweep *s = NULL;
  pl_status st = PL_OK;
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *s, "a sweep", &s, e));
  s->registries = r;
  PL_TRY(pl_strdup(path, &s->path, e));
  PL_TRY(pl_sweep_effective(document, path, sets, &s->document, &s->is_run_file, e));
  PL_TRY(pl_entries_parse(pl_json_get(s->document, "base"), NULL, s->is_run_file ? "" : "base", &s->base,
                          &s->base_count, e));
  PL_TRY(parse_seeds(s, e));
  PL_TRY(pl_sweep_parse_blocks(s, e));
  PL_TRY(pl_rules_parse(r, s->document, "exclude", &s->exclude, e));
  PL_TRY(pl_rules_parse(r, s->document, "only_if", &s->only_if, e));
  PL_TRY(pl_sweep_find_columns(s, e));
  PL_TRY(make_values(s, e));
  *out = s;
  return PL_OK;
out:
  pl_err_prefix(e, "%s", path);
  pl_sweep_free(s);
  return st;
}

pl_status pl_sweep_load(const pl_registries *r, const char *path, pl_sets sets, pl_sweep **out, pl_err *e) {
  pl_json *document = NULL;
  pl_status st = PL_OK;
  *out = NULL;
  PL_TRY(pl_json_read(path, &document, e));
  st = pl_sweep_from_json(r, document, path, sets, out, e);
out:
  pl_json_release(document);
  return st;
}

void pl_sweep_free(pl_sweep *s) {
  if (s == NULL) return;
  pl_id_set_free(&s->ids);
  pl_free(s->axis_values);
  pl_free(s->values);
  pl_free(s->columns);
  pl_rules_free(&s->only_if);
  pl_rules_free(&s->exclude);
  pl_blocks_free(s->blocks, s->block_count);
  pl_free(s->base);
  pl_json_release(s->seeds);
  pl_json_release(s->document);
  pl_free(s->path);
  pl_free(s);
}

const char *pl_sweep_name(const pl_sweep *s) { return pl_json_string(pl_json_get(s->document, "name")); }
const char *pl_sweep_path(const pl_sweep *s) { return s->path; }
const pl_json *pl_sweep_document(const pl_sweep *s) { return s->document; }
