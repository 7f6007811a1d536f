/* Sweep files: load and check, expand in a fixed order, one run at a time. */
#ifndef PL_SWEEPS_SWEEP_H
#define PL_SWEEPS_SWEEP_H

#include "core/config/run_config.h"

typedef struct pl_sweep pl_sweep;

/* --set arguments: "key=value". A value is JSON where it parses, else text; `a=1,2,3` makes an axis, `a=[3,2,1,0]` is
 * one value, quotes keep a comma ('notes="a,b"'). They are folded into the document as its key "set", an object of
 * lists: each is an axis of every block, after (so faster than) the block's own, it replaces the block's own axis or
 * setting of that key and overrides everything else. `seeds=0,1` (or seed) replaces all seeds. name, notes and slurm.*
 * change the sweep's own keys. */
typedef struct pl_sets {
  const char *const *texts;
  size_t count;
} pl_sets;

/* Reads and checks everything that does not need a run to be built: unknown keys, wrong types, empty axes, ranges,
 * rules on unknown keys or impossible values. Messages start with the file and the key path. *out is released by
 * pl_sweep_free; `r` must outlive it. A plain run file (keys of a run, none of a sweep but name and notes) is a sweep
 * of one run whose base is the file.
 *
 * An exclude or only_if object holds for a run when each of its keys does: the run has the value, or one of a list of
 * values, in its full config; a section is named by its type, a correction chain like "none", "ef", "ef+lookahead". A
 * key that the chosen type does not have does not hold. A run is dropped when one exclude object holds, and kept only
 * when one of the only_if objects does. They are looked at before the relations between sections are checked, so they
 * can drop combinations that break these. A block that sets "seed" itself takes none of the sweep's seeds. */
PL_MUST_CHECK pl_status pl_sweep_load(const pl_registries *r, const char *path, pl_sets sets, pl_sweep **out,
                                      pl_err *e);

/* The same from a parsed document (retained); `path` stands in messages and gives the folder of relative data paths. */
PL_MUST_CHECK pl_status pl_sweep_from_json(const pl_registries *r, const pl_json *document, const char *path,
                                           pl_sets sets, pl_sweep **out, pl_err *e);
void pl_sweep_free(pl_sweep *s);

/* 1 to 100 bytes without slash and control characters; default: the file's name without .json. */
const char *pl_sweep_name(const pl_sweep *s);
const char *pl_sweep_path(const pl_sweep *s);
/* With its name and --set folded in: what is frozen as sweep.json, and gives the same runs when loaded again. */
const pl_json *pl_sweep_document(const pl_sweep *s);

/* Runs before exclude, only_if and merging: product of everything; saturates at UINT64_MAX. */
uint64_t pl_sweep_upper_count(const pl_sweep *s);

/* Axes: dotted keys that vary (several values in a block, other values or none in another block), in order of first
 * appearance, "seed" last when it varies. */
size_t pl_sweep_axis_count(const pl_sweep *s);
const char *pl_sweep_axis(const pl_sweep *s, size_t index);

/* One expanded run. Borrowed until the next call of pl_sweep_next or pl_sweep_free. */
typedef struct pl_sweep_run {
  uint64_t index; /* 0-based among the distinct runs */
  uint64_t id;    /* pl_run_config_id */
  pl_run_config *config;
  const pl_json *const *axis_values; /* [axis_count], NULL where the run's block does not set that axis */
} pl_sweep_run;

typedef struct pl_sweep_counts {
  uint64_t produced; /* combinations looked at */
  uint64_t excluded; /* dropped by exclude or only_if */
  uint64_t merged;   /* equal to an earlier run */
  uint64_t runs;     /* distinct runs given */
} pl_sweep_counts;

/* Streams the distinct runs in order: blocks of grid, then zip, random, runs; within a block the first axis varies
 * slowest and seeds fastest. *run is NULL at the end. Every config is fully built and checked; the message names the
 * block and the axis value. Memory: 16 bytes per run. Restart with pl_sweep_rewind. A sweep that ends without any run
 * is PL_BAD. */
PL_MUST_CHECK pl_status pl_sweep_next(pl_sweep *s, const pl_sweep_run **run, pl_err *e);
void pl_sweep_rewind(pl_sweep *s);
pl_sweep_counts pl_sweep_counted(const pl_sweep *s); /* so far */

/* "optimizer=adamw optimizer.lr=0.004 delay=1 seed=0": the axis values of a run that are set. Appended. */
void pl_sweep_label(const pl_sweep *s, const pl_sweep_run *run, pl_str *out);

/* An axis value as labels and tables show it: a plain word bare, anything else as JSON. Appended. */
void pl_sweep_value_text(const pl_json *value, pl_str *out);

/* One exclude object outside of a sweep: compiled once, asked about many runs. `object` is retained; `where` starts
 * messages, which are PL_BAD for unknown keys and impossible values. Released by pl_sweep_condition_free; `r` must
 * outlive it. */
typedef struct pl_sweep_condition pl_sweep_condition;

PL_MUST_CHECK pl_status pl_sweep_condition_make(const pl_registries *r, const pl_json *object, const char *where,
                                                pl_sweep_condition **out, pl_err *e);
bool pl_sweep_condition_holds(pl_sweep_condition *c, pl_run_config *run);
void pl_sweep_condition_free(pl_sweep_condition *c);

/* JSON Schema of a sweep file (new reference). */
pl_json *pl_sweep_schema(const pl_registries *r);

#endif
