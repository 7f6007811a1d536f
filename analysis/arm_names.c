/* Texts of arms: what a reader needs to tell them apart, and no more. */
#include <stdlib.h>
#include <string.h>

#include "analysis/arms.h"
#include "analysis/config_view.h"
#include "core/base/memory.h"

/* A parameter met in the sweep. */
typedef struct seen_row {
  const char *name;
  uint64_t first; /* hash of its first value */
  bool differs;
  size_t parts; /* that have it */
} seen_row;

/* The parameters of one type of a component. Imported runs state those that are known and no more. */
typedef struct seen_table {
  pl_slot slot;
  const char *type; /* NULL for train, pipeline and the root */
  seen_row *rows;
  size_t count, capacity;
  size_t parts; /* of this type */
} seen_table;

/* What differs between arms. Imported ones and others have names of their own. */
typedef struct naming {
  seen_table *tables;
  size_t count;
  const char *type[PL_SLOT_CORRECTION + 1]; /* the first type met in each slot */
  bool type_varies[PL_SLOT_CORRECTION + 1];
} naming;

/* What makes the delay. */
static bool row_names_delay(const pl_config_part *part, const pl_param *row) {
  static const char *const rows[] = {"schedule", "schedule_file", "chunks", "allow_min_microbatches"};
  if (part->slot != PL_SLOT_PIPELINE) return false;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(row->name, rows[i]) == 0) return true;
  return false;
}

/* Seed and learning rate are axes inside an arm, the delay has a column of its own. */
static bool row_names_arm(const pl_config_part *part, const pl_param *row) {
  static const char *const own_columns[] = {"seed", "delay", "delay_start", "simulate_only"};
  if (row->not_identity || row_names_delay(part, row)) return false;
  if (part->slot == PL_SLOT_OPTIMIZER) return strcmp(row->name, "lr") != 0;
  if (part->slot != PL_SLOT_ROOT) return true;
  for (size_t i = 0; i < sizeof own_columns / sizeof own_columns[0]; i++)
    if (strcmp(row->name, own_columns[i]) == 0) return false;
  return true;
}

static seen_table *find_table(const naming *n, const pl_config_part *part) {
  for (size_t i = 0; i < n->count; i++) {
    const char *type = n->tables[i].type;
    bool same = type == part->type || (type && part->type && strcmp(type, part->type) == 0);
    if (same && n->tables[i].slot == part->slot) return &n->tables[i];
  }
  return NULL;
}

/* The place of a row; `guess` is right for all tables that pipelag has. */
static size_t find_row(const seen_table *t, size_t guess, const char *name) {
  if (guess < t->count && strcmp(t->rows[guess].name, name) == 0) return guess;
  for (size_t i = 0; i < t->count; i++)
    if (strcmp(t->rows[i].name, name) == 0) return i;
  return SIZE_MAX;
}

static bool row_varies(const seen_table *t, size_t guess, const char *name) {
  const seen_row *r = &t->rows[find_row(t, guess, name)];
  return r->differs || r->parts < t->parts;
}

static uint64_t value_hash(const pl_config_part *part, const pl_param *row, pl_str *text) {
  text->length = 0;
  pl_config_value(part, row, text);
  return pl_hash(pl_str_text(text), text->length);
}

static pl_status add_table(naming *n, const pl_config_part *part, seen_table **out, pl_err *e) {
  pl_status st = pl_grow(n->count, n->count + 1, sizeof n->tables[0], "the tables of a sweep", &n->tables, e);
  if (st != PL_OK) return st;
  *out = &n->tables[n->count++];
  **out = (seen_table){.slot = part->slot, .type = part->type};
  return PL_OK;
}

static pl_status note_row(seen_table *t, size_t guess, const char *name, uint64_t value, pl_err *e) {
  size_t at = find_row(t, guess, name);
  if (at != SIZE_MAX) {
    t->rows[at].differs |= t->rows[at].first != value;
    t->rows[at].parts++;
    return PL_OK;
  }
  if (t->count == t->capacity) {
    size_t larger = t->capacity ? 2 * t->capacity : 16;
    pl_status st = pl_grow(t->capacity, larger, sizeof t->rows[0], "a table's values", &t->rows, e);
    if (st != PL_OK) return st;
    t->capacity = larger;
  }
  t->rows[t->count++] = (seen_row){.name = name, .first = value, .parts = 1};
  return PL_OK;
}

static pl_status note_part(naming *n, const pl_config_part *part, pl_str *text, pl_err *e) {
  if (!n->type[part->slot]) n->type[part->slot] = part->type;
  if (part->type && strcmp(n->type[part->slot], part->type) != 0) n->type_varies[part->slot] = true;
  seen_table *t = find_table(n, part);
  pl_status st = t ? PL_OK : add_table(n, part, &t, e);
  if (st != PL_OK) return st;
  t->parts++;
  for (size_t i = 0; part->table[i].type != PL_END && st == PL_OK; i++)
    st = note_row(t, i, part->table[i].name, value_hash(part, &part->table[i], text), e);
  return st;
}

/* Appends "BEFOREname=value" for each differing row of the part, joined by `between`; true when there was one. */
static bool append_rows(const naming *n, const pl_config_part *part, const char *before, const char *between,
                        pl_str *out) {
  const seen_table *t = find_table(n, part);
  bool any = false;
  for (size_t i = 0; part->table[i].type != PL_END; i++) {
    if (!row_varies(t, i, part->table[i].name) || !row_names_arm(part, &part->table[i])) continue;
    pl_str_printf(out, "%s%s%s%s=", any ? between : before, part->prefix, part->prefix[0] ? "." : "",
                  part->table[i].name);
    pl_config_value(part, &part->table[i], out);
    any = true;
  }
  return any;
}

static void append_group(const naming *n, const pl_config_part *parts, size_t count, pl_str *out) {
  for (size_t i = 0; i < count; i++) {
    const pl_config_part *p = &parts[i];
    if (p->slot == PL_SLOT_OPTIMIZER || p->slot == PL_SLOT_CORRECTION) continue;
    if (n->type_varies[p->slot]) pl_str_printf(out, "%s%s=%s", out->length > 0 ? " " : "", p->prefix, p->type);
    append_rows(n, p, out->length > 0 ? " " : "", " ", out);
  }
}

/* "adamw(beta1=0.9)"; a chain is joined by "+"; nothing when the slot is empty. */
static void append_components(const naming *n, const pl_config_part *parts, size_t count, pl_slot slot, pl_str *out) {
  for (size_t i = 0; i < count; i++) {
    if (parts[i].slot != slot) continue;
    pl_config_part p = parts[i];
    p.prefix = "";
    pl_str_printf(out, "%s%s", out->length > 0 ? "+" : "", p.type);
    if (append_rows(n, &p, "(", ", ", out)) pl_str_append(out, ")");
  }
}

/* " 2bw", " custom schedule_file=mine.txt": of these the schedule by its name, the others where they are given. */
static void append_schedule(const naming *n, const pl_config_part *part, pl_str *out) {
  const seen_table *t = find_table(n, part);
  pl_str value = {0};
  for (size_t i = 0; part->table[i].type != PL_END; i++) {
    const pl_param *row = &part->table[i];
    if (!row_varies(t, i, row->name) || !row_names_delay(part, row)) continue;
    value.length = 0;
    pl_config_value(part, row, &value);
    const char *text = pl_str_text(&value);
    if (strcmp(row->name, "schedule") == 0)
      pl_str_printf(out, " %s", text);
    else if (value.length > 0 && strcmp(text, "0") != 0 && strcmp(text, "false") != 0 && strcmp(text, "null") != 0)
      pl_str_printf(out, " %s=%s", row->name, text);
  }
  out->failed |= value.failed;
  pl_str_free(&value);
}

static void append_delay(const naming *n, const pl_run_config *c, const pl_config_part *parts, size_t count, bool sync,
                         pl_str *out) {
  if (sync) {
    pl_str_append(out, "0");
  } else {
    pl_run_config_delay_name(c, out);
    if (c->root.delay_start > 0) pl_str_printf(out, " from %lld", (long long)c->root.delay_start);
  }
  for (size_t i = 0; i < count; i++)
    if (parts[i].slot == PL_SLOT_PIPELINE) append_schedule(n, &parts[i], out);
}

/* Moves the text out of `s` and leaves it empty. */
static pl_status take(pl_str *s, char **out, pl_err *e) {
  pl_status st = pl_str_check(s, e);
  if (st == PL_OK) st = pl_strdup(pl_str_text(s), out, e);
  pl_str_free(s);
  return st;
}

static pl_status name_arm(const naming *n, pl_arm *a, pl_err *e) {
  pl_status st = PL_OK;
  pl_config_part parts[PL_CONFIG_PARTS];
  size_t count = pl_config_parts(a->config, parts);
  pl_str s = {0};
  if (a->config->tables) pl_str_append(&s, "imported");
  append_group(n, parts, count, &s);
  PL_TRY(take(&s, &a->group, e));
  append_components(n, parts, count, PL_SLOT_OPTIMIZER, &s);
  PL_TRY(take(&s, &a->optimizer, e));
  append_delay(n, a->config, parts, count, a->sync, &s);
  PL_TRY(take(&s, &a->delay, e));
  append_components(n, parts, count, PL_SLOT_CORRECTION, &s);
  if (s.length == 0) pl_str_append(&s, "none");
  PL_TRY(take(&s, &a->correction, e));
  pl_str_append(&s, a->optimizer);
  if (a->sync)
    pl_str_printf(&s, " sync%s", a->delay + 1);
  else
    pl_str_printf(&s, " delay %s", a->delay);
  if (a->config->correction_count > 0) pl_str_printf(&s, " %s", a->correction);
  if (a->group[0]) pl_str_printf(&s, " (%s)", a->group);
  PL_TRY(take(&s, &a->name, e));
out:
  pl_str_free(&s);
  return st;
}

/* A text to be ranked: equal texts together, then by order, then by the first arm that has it. */
typedef struct ranked {
  const char *text;
  double order;
  size_t arm, first;
} ranked;

static int by_text(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  int c = strcmp(x->text, y->text);
  if (c != 0) return c;
  return x->arm < y->arm ? -1 : x->arm > y->arm;
}

static int by_order(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->order != y->order) return x->order < y->order ? -1 : 1;
  return x->first < y->first ? -1 : x->first > y->first;
}

typedef struct column {
  size_t text, rank; /* offsets of the members in pl_arm */
  double (*order)(const pl_arm *a);
} column;

static double no_order(const pl_arm *a) {
  (void)a;
  return 0;
}

static double mean_delay(const pl_arm *a) {
  int64_t delay[PL_MAX_STAGES];
  double sum = 0;
  pl_run_config_delays(a->config, delay);
  for (int64_t s = 0; s < a->config->pipeline.stages; s++) sum += (double)delay[s];
  return sum / (double)a->config->pipeline.stages;
}

static double is_corrected(const pl_arm *a) { return a->config->correction_count > 0 ? 1 : 0; }

static void rank_column(pl_arms *a, const column *c, ranked *items) {
  for (size_t i = 0; i < a->count; i++) {
    const char *text;
    memcpy(&text, (const char *)&a->arms[i] + c->text, sizeof text);
    items[i] = (ranked){.text = text, .order = c->order(&a->arms[i]), .arm = i};
  }
  qsort(items, a->count, sizeof items[0], by_text);
  for (size_t i = 0; i < a->count; i++) {
    bool same = i > 0 && strcmp(items[i].text, items[i - 1].text) == 0;
    items[i].first = same ? items[i - 1].first : items[i].arm;
    /* The word pipedream means other delays with another number of stages. */
    if (same) items[i].order = items[i - 1].order;
  }
  qsort(items, a->count, sizeof items[0], by_order);
  size_t rank = 0;
  for (size_t i = 0; i < a->count; i++) {
    if (i > 0 && items[i].first != items[i - 1].first) rank++;
    memcpy((char *)&a->arms[items[i].arm] + c->rank, &rank, sizeof rank);
  }
}

static pl_status rank_arms(pl_arms *a, pl_err *e) {
  static const column columns[] = {
      {offsetof(pl_arm, group), offsetof(pl_arm, group_rank), no_order},
      {offsetof(pl_arm, optimizer), offsetof(pl_arm, optimizer_rank), no_order},
      {offsetof(pl_arm, delay), offsetof(pl_arm, delay_rank), mean_delay},
      {offsetof(pl_arm, correction), offsetof(pl_arm, correction_rank), is_corrected},
  };
  ranked *items = NULL;
  pl_status st = pl_alloc(a->count, sizeof items[0], "the ranks of arms", &items, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) rank_column(a, &columns[i], items);
  pl_free(items);
  return PL_OK;
}

static void naming_free(naming *n) {
  for (size_t i = 0; i < n->count; i++) pl_free(n->tables[i].rows);
  pl_free(n->tables);
}

pl_status pl_arms_name(pl_arms *a, pl_err *e) {
  pl_status st = PL_OK;
  naming kinds[2] = {{0}, {0}}; /* of arms that pipelag trained, and of imported ones */
  pl_str text = {0};
  for (size_t i = 0; i < a->count; i++) {
    pl_config_part parts[PL_CONFIG_PARTS];
    size_t count = pl_config_parts(a->arms[i].config, parts);
    for (size_t j = 0; j < count; j++)
      PL_TRY(note_part(&kinds[a->arms[i].config->tables != NULL], &parts[j], &text, e));
  }
  PL_TRY(pl_str_check(&text, e));
  for (size_t i = 0; i < a->count; i++) PL_TRY(name_arm(&kinds[a->arms[i].config->tables != NULL], &a->arms[i], e));
  PL_TRY(rank_arms(a, e));
out:
  naming_free(&kinds[0]);
  naming_free(&kinds[1]);
  pl_str_free(&text);
  return st;
}
