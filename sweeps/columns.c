#include <string.h>

#include "core/base/memory.h"
#include "sweeps/parts.h"

/* What is known about one key over all blocks. */
typedef struct tally {
  const char *path;
  const pl_json *first; /* its value in the first block that sets it */
  size_t blocks;        /* that set it */
  bool varies;
} tally;

typedef struct tallies {
  tally *items;
  size_t count, room;
} tallies;

static pl_status tally_of(tallies *t, const char *path, tally **out, pl_err *e) {
  for (size_t i = 0; i < t->count; i++)
    if (strcmp(t->items[i].path, path) == 0) {
      *out = &t->items[i];
      return PL_OK;
    }
  if (t->count == t->room) {
    size_t room = t->room == 0 ? 16 : 2 * t->room;
    pl_status st = pl_grow(t->room, room, sizeof *t->items, "the axes of a sweep", &t->items, e);
    if (st != PL_OK) return st;
    t->room = room;
  }
  *out = &t->items[t->count++];
  (*out)->path = path;
  return PL_OK;
}

/* `value` is NULL where the key takes several values within the block. */
static pl_status note(tallies *t, const char *path, const pl_json *value, pl_err *e) {
  tally *known = NULL;
  pl_status st = tally_of(t, path, &known, e);
  if (st != PL_OK) return st;
  if (known->blocks == 0) known->first = value;
  if (value == NULL || known->first == NULL || !pl_json_equal(value, known->first)) known->varies = true;
  known->blocks++;
  return PL_OK;
}

static bool is_axis_key(const pl_block *b, const char *path) {
  for (size_t a = 0; a < b->axis_count; a++)
    for (size_t k = 0; k < b->axes[a].count; k++)
      if (strcmp(b->axes[a].keys[k].path, path) == 0) return true;
  return false;
}

static pl_status note_block(tallies *t, const pl_block *b, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < b->fixed_count; i++)
    if (!is_axis_key(b, b->fixed[i].path)) PL_TRY(note(t, b->fixed[i].path, b->fixed[i].value, e));
  for (size_t a = 0; a < b->axis_count; a++)
    for (size_t k = 0; k < b->axes[a].count; k++) {
      const pl_axis_key *key = &b->axes[a].keys[k];
      bool single = b->axes[a].length == 1 && key->values != NULL;
      PL_TRY(note(t, key->path, single ? pl_json_at(key->values, 0) : NULL, e));
    }
out:
  return st;
}

/* A key also varies when some blocks leave it to the base. "seed" goes last. */
static void collect(pl_sweep *s, const tallies *t) {
  const char *seed = NULL;
  for (size_t i = 0; i < t->count; i++) {
    if (!t->items[i].varies && t->items[i].blocks == s->block_count) continue;
    if (strcmp(t->items[i].path, "seed") == 0)
      seed = t->items[i].path;
    else
      s->columns[s->column_count++] = t->items[i].path;
  }
  if (seed != NULL) s->columns[s->column_count++] = seed;
}

size_t pl_sweep_column(const pl_sweep *s, const char *path) {
  for (size_t i = 0; i < s->column_count; i++)
    if (strcmp(s->columns[i], path) == 0) return i;
  return SIZE_MAX;
}

pl_status pl_sweep_find_columns(pl_sweep *s, pl_err *e) {
  tallies t = {0};
  pl_status st = PL_OK;
  for (size_t i = 0; i < s->block_count; i++) PL_TRY(note_block(&t, &s->blocks[i], e));
  PL_TRY(pl_alloc(t.count, sizeof *s->columns, "the axes of a sweep", &s->columns, e));
  PL_TRY(pl_alloc(t.count, sizeof *s->axis_values, "the axis values of a run", &s->axis_values, e));
  collect(s, &t);
  for (size_t i = 0; i < s->block_count; i++)
    for (size_t a = 0; a < s->blocks[i].axis_count; a++)
      for (size_t k = 0; k < s->blocks[i].axes[a].count; k++) {
        pl_axis_key *key = &s->blocks[i].axes[a].keys[k];
        key->column = pl_sweep_column(s, key->path);
      }
out:
  pl_free(t.items);
  return st;
}

size_t pl_sweep_axis_count(const pl_sweep *s) { return s->column_count; }
const char *pl_sweep_axis(const pl_sweep *s, size_t index) { return s->columns[index]; }

/* Text that cannot be mistaken in a table or a line of key=value pairs stands bare; anything else as JSON. */
static bool stands_bare(const char *text) {
  if (*text == '\0') return false;
  for (; *text != '\0'; text++)
    if ((unsigned char)*text <= ' ' || strchr("\"\\[]{},=\177", *text) != NULL) return false;
  return true;
}

void pl_sweep_value_text(const pl_json *value, pl_str *out) {
  const char *text = pl_json_string(value);
  if (text != NULL && stands_bare(text))
    pl_str_append(out, text);
  else
    pl_json_write_canonical(value, out);
}

void pl_sweep_label(const pl_sweep *s, const pl_sweep_run *run, pl_str *out) {
  const char *gap = "";
  for (size_t i = 0; i < s->column_count; i++) {
    if (run->axis_values[i] == NULL) continue;
    pl_str_printf(out, "%s%s=", gap, s->columns[i]);
    pl_sweep_value_text(run->axis_values[i], out);
    gap = " ";
  }
}
