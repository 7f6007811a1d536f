#include "core/base/memory.h"
#include "sweeps/parts.h"

/* Indexed by pl_block_kind, in the order in which they are expanded. */
static const char *const KINDS[] = {[PL_BLOCK_GRID] = "grid",
                                    [PL_BLOCK_ZIP] = "zip",
                                    [PL_BLOCK_RANDOM] = "random",
                                    [PL_BLOCK_RUNS] = "runs",
                                    [PL_BLOCK_BASE] = "base"};

void pl_block_where(const pl_block *b, pl_str *out) {
  pl_str_append(out, KINDS[b->kind]);
  if (b->listed) pl_str_printf(out, "[%zu]", b->index);
}

static pl_status bad(const pl_block *b, const char *key, const pl_json *seen, const char *allowed, pl_err *e) {
  pl_str where = {0};
  char shown[80];
  pl_block_where(b, &where);
  pl_status st =
      pl_fail(e, PL_BAD, "%s%s: %s; allowed: %s", pl_str_text(&where), key, pl_json_show(seen, shown), allowed);
  pl_str_free(&where);
  return st;
}

/* Upper bound of the axes of a block: its keys, the groups of its "zip", those of "set", and the seeds. */
static size_t axis_room(const pl_sweep *s, const pl_json *object) {
  return pl_json_size(object) + pl_json_size(pl_json_get(object, "zip")) +
         pl_json_size(pl_json_get(s->document, "set")) + 1;
}

static pl_status parse_block(pl_sweep *s, const pl_json *object, pl_err *e) {
  pl_block *b = &s->blocks[s->block_count - 1];
  const pl_json *set = pl_json_get(s->document, "set");
  pl_status st = PL_OK;
  pl_str where = {0};
  if (b->kind != PL_BLOCK_BASE && pl_json_kind_of(object) != PL_JSON_OBJECT)
    return bad(b, "", object, b->kind == PL_BLOCK_RUNS ? "an object of settings" : "an object of axes", e);
  if (b->kind == PL_BLOCK_GRID && pl_json_size(object) == 0) return bad(b, "", object, "at least one axis", e);
  const pl_json *fixed = b->kind == PL_BLOCK_RUNS ? object : pl_json_get(object, "base");
  if (fixed != NULL && pl_json_kind_of(fixed) != PL_JSON_OBJECT)
    return bad(b, ".base", fixed, "an object of settings", e);
  pl_block_where(b, &where);
  if (b->kind != PL_BLOCK_RUNS) pl_str_append(&where, ".base");
  PL_TRY(pl_str_check(&where, e));
  PL_TRY(pl_entries_parse(fixed, set, pl_str_text(&where), &b->fixed, &b->fixed_count, e));
  PL_TRY(pl_alloc(axis_room(s, object), sizeof *b->axes, "the axes of a block", &b->axes, e));
  PL_TRY(pl_block_parse_axes(s, object, b, e));
out:
  pl_str_free(&where);
  return st;
}

static pl_status parse_kind(pl_sweep *s, pl_block_kind kind, pl_err *e) {
  const pl_json *value = pl_json_get(s->document, KINDS[kind]);
  bool listed = pl_json_kind_of(value) == PL_JSON_ARRAY;
  size_t count = listed ? pl_json_size(value) : 1;
  if (value == NULL) return PL_OK;
  if (count == 0)
    return pl_fail(e, PL_BAD, "%s: the list is empty; allowed: at least one object, or leaving the key out",
                   KINDS[kind]);
  for (size_t i = 0; i < count; i++) {
    s->blocks[s->block_count++] = (pl_block){.kind = kind, .index = i, .listed = listed};
    pl_status st = parse_block(s, listed ? pl_json_at(value, i) : value, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

static size_t count_of(const pl_sweep *s, pl_block_kind kind) {
  const pl_json *value = pl_json_get(s->document, KINDS[kind]);
  return pl_json_kind_of(value) == PL_JSON_ARRAY ? pl_json_size(value) : 1;
}

pl_status pl_sweep_parse_blocks(pl_sweep *s, pl_err *e) {
  pl_status st = PL_OK;
  size_t room = 1;
  for (pl_block_kind kind = PL_BLOCK_GRID; kind < PL_BLOCK_BASE; kind++) room += count_of(s, kind);
  PL_TRY(pl_alloc(room, sizeof *s->blocks, "the blocks of a sweep", &s->blocks, e));
  for (pl_block_kind kind = PL_BLOCK_GRID; kind < PL_BLOCK_BASE; kind++) PL_TRY(parse_kind(s, kind, e));
  if (s->block_count == 0) {
    s->blocks[s->block_count++] = (pl_block){.kind = PL_BLOCK_BASE};
    PL_TRY(parse_block(s, NULL, e));
  }
out:
  return st;
}

static void free_axis(pl_axis *axis) {
  for (size_t k = 0; k < axis->count; k++) {
    pl_json_release(axis->keys[k].values);
    pl_json_release(axis->keys[k].drawn);
  }
  pl_free(axis->keys);
}

void pl_blocks_free(pl_block *blocks, size_t count) {
  for (size_t i = 0; i < count; i++) {
    for (size_t a = 0; a < blocks[i].axis_count; a++) free_axis(&blocks[i].axes[a]);
    pl_free(blocks[i].axes);
    pl_free(blocks[i].fixed);
  }
  pl_free(blocks);
}
