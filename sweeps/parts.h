/* The inside of a loaded sweep, shared by the files of this folder. */
#ifndef PL_SWEEPS_PARTS_H
#define PL_SWEEPS_PARTS_H

#include "core/config/run_parts.h"
#include "core/config/run_schedule.h"
#include "sweeps/sweep.h"

/* Distribution of one key of a random block. */
typedef enum pl_draw_kind {
  PL_DRAW_UNIFORM,
  PL_DRAW_LOG_UNIFORM,
  PL_DRAW_INT_UNIFORM,
  PL_DRAW_NORMAL,
  PL_DRAW_CHOICE
} pl_draw_kind;

typedef struct pl_draw {
  pl_draw_kind kind;
  double a, b; /* low and high, both are values; mean and standard deviation for PL_DRAW_NORMAL */
  const pl_json *choices;
  uint64_t seed, name; /* a draw depends on the block's seed, the hash of the key's path and the draw's index only */
} pl_draw;

/* One dotted key of an axis. */
typedef struct pl_axis_key {
  const char *path; /* borrowed from the document */
  pl_json *values;  /* list, owned; NULL when the values are drawn */
  pl_draw draw;
  pl_json *drawn; /* the current draw, owned; NULL when there is none or it is one of the choices */
  size_t slot;    /* which entry of the run it fills, counted from the block's first axis entry */
  size_t column;  /* which axis of the sweep it is, SIZE_MAX when it does not vary */
} pl_axis_key;

typedef enum pl_axis_origin {
  PL_AXIS_OWN,        /* a key of the block, or the keys of a zip or random block */
  PL_AXIS_ZIP,        /* "zip" inside a grid block */
  PL_AXIS_SET,        /* the sweep's "set" */
  PL_AXIS_OWN_SEEDS,  /* the block's "seeds" */
  PL_AXIS_SWEEP_SEEDS /* the sweep's "seeds" */
} pl_axis_origin;

/* Keys that step together: one of them for a grid axis, several for zip and random. */
typedef struct pl_axis {
  pl_axis_origin origin;
  pl_axis_key *keys;
  size_t count;
  uint64_t length; /* number of steps, at least 1 */
  uint64_t at;     /* the current one */
} pl_axis;

typedef enum pl_block_kind {
  PL_BLOCK_GRID,
  PL_BLOCK_ZIP,
  PL_BLOCK_RANDOM,
  PL_BLOCK_RUNS,
  PL_BLOCK_BASE /* the one block of a sweep that has none of the others */
} pl_block_kind;

/* A product of axes over the sweep's base. */
typedef struct pl_block {
  pl_block_kind kind;
  size_t index;    /* in its list */
  bool listed;     /* written in a list: grid[2], not grid */
  pl_entry *fixed; /* the block's own base, or the overrides of one of `runs` */
  size_t fixed_count;
  pl_axis *axes; /* own ones in file order, then those of "set", then seeds: the first varies slowest */
  size_t axis_count;
  size_t slots; /* entries that the axes fill */
} pl_block;

/* One key of an exclude or only_if object. */
typedef struct pl_condition {
  const pl_json *wanted;    /* a value, or a list: any of these */
  pl_part part;             /* of the config */
  const char *key;          /* in that part; "": the name of the section's type */
  const pl_param *row;      /* of `key`; NULL when the type does not have it */
  const pl_component *type; /* the type that `row` was looked up in; NULL for a part without types */
} pl_condition;

typedef struct pl_rule { /* holds when all conditions hold */
  pl_condition *conditions;
  size_t count;
} pl_rule;

typedef struct pl_rules {
  pl_rule *rules;
  size_t count;
} pl_rules;

/* Open addressing; 0 marks a free slot and is itself kept in has_zero. */
typedef struct pl_id_set {
  uint64_t *slots;
  size_t capacity, count;
  bool has_zero;
} pl_id_set;

struct pl_sweep {
  const pl_registries *registries;
  char *path;
  bool is_run_file; /* the base was the whole file */
  pl_json *document;
  pl_json *seeds; /* list, owned; NULL when the sweep has none */
  pl_entry *base;
  size_t base_count;
  pl_block *blocks;
  size_t block_count;
  pl_rules exclude, only_if;
  const char **columns;
  size_t column_count;
  /* the expansion's state */
  size_t block;     /* current one; block_count at the end */
  bool inside;      /* a combination of the current block was given */
  pl_entry *values; /* entries of the current combination */
  size_t value_count;
  const pl_json **axis_values;
  pl_id_set ids;
  pl_sweep_counts counts;
  pl_run_memo memo;
  pl_run_config config;
  pl_sweep_run run;
};

/* document.c: the effective document (new reference), which always has a name: the keys of a run file go to "base",
 * --set to "set". */
PL_MUST_CHECK pl_status pl_sweep_effective(const pl_json *document, const char *path, pl_sets sets, pl_json **out,
                                           bool *is_run_file, pl_err *e);

/* sets.c: folds --set arguments into a document of which "slurm" is not shared with anyone. */
PL_MUST_CHECK pl_status pl_sweep_fold_sets(pl_json *document, pl_sets sets, pl_err *e);

/* blocks.c */
PL_MUST_CHECK pl_status pl_sweep_parse_blocks(pl_sweep *s, pl_err *e);
void pl_blocks_free(pl_block *blocks, size_t count);
void pl_block_where(const pl_block *b, pl_str *out); /* "grid[0]"; appended */

/* block_axes.c: the axes of one block from its object (NULL for PL_BLOCK_BASE), with their slots. `axes` has room. */
PL_MUST_CHECK pl_status pl_block_parse_axes(const pl_sweep *s, const pl_json *object, pl_block *b, pl_err *e);

/* entries.c: an object's members as entries without `where`, those with fewer dots first, so that a section comes
 * before keys inside it however the file orders them. Keys of `left_out` (may be NULL) are not taken. A key that the
 * object states twice, with dots and nested, is PL_BAD; messages start with `where` and a dot unless it is "". */
PL_MUST_CHECK pl_status pl_entries_parse(const pl_json *object, const pl_json *left_out, const char *where,
                                         pl_entry **entries, size_t *count, pl_err *e);
size_t pl_path_depth(const char *path); /* its dots */
/* Refuses a path that is longer than any key: a message could not hold it. */
PL_MUST_CHECK pl_status pl_path_check(const char *path, pl_err *e);

/* axis.c: the values of one axis as a list (new reference): a list as it is, or a range. Messages lack the place. */
PL_MUST_CHECK pl_status pl_axis_values(const pl_json *value, pl_json **out, pl_err *e);
PL_MUST_CHECK pl_status pl_axis_seeds(const pl_json *value, pl_json **out, pl_err *e);
bool pl_whole_number(const pl_json *value, int64_t *out); /* 3 and 3.0 */
double pl_round_12(double x);                             /* to 12 significant digits, as numbers are written by hand */

/* draw.c: ["uniform", a, b] or {"uniform": [a, b]}; messages lack the place. */
PL_MUST_CHECK pl_status pl_draw_parse(const pl_json *value, pl_draw *out, pl_err *e);
/* *out is borrowed from the choices, or *drawn (new reference). */
PL_MUST_CHECK pl_status pl_draw_at(const pl_draw *d, uint64_t index, pl_json **drawn, const pl_json **out, pl_err *e);

/* rules.c: `key` is "exclude" or "only_if"; conditions on unknown paths or impossible values are PL_BAD. */
PL_MUST_CHECK pl_status pl_rules_parse(const pl_registries *r, const pl_json *document, const char *key, pl_rules *out,
                                       pl_err *e);
bool pl_rules_hold(pl_rules *rules, pl_run_config *c); /* at least one rule holds */
void pl_rules_free(pl_rules *rules);

/* match.c: whether a stored parameter has the value that JSON states. */
bool pl_param_matches(const pl_param *row, const void *config, const pl_json *wanted);

/* columns.c: which keys vary; fills columns and the keys' column. */
PL_MUST_CHECK pl_status pl_sweep_find_columns(pl_sweep *s, pl_err *e);
size_t pl_sweep_column(const pl_sweep *s, const char *path); /* SIZE_MAX when the key does not vary */

/* ids.c */
PL_MUST_CHECK pl_status pl_id_set_add(pl_id_set *s, uint64_t id, bool *added, pl_err *e);
void pl_id_set_clear(pl_id_set *s);
void pl_id_set_free(pl_id_set *s);

#endif
