/* The full configuration of one run: built from layered entries, checked, dumped, identified. */
#ifndef PL_CONFIG_RUN_CONFIG_H
#define PL_CONFIG_RUN_CONFIG_H

#include "core/base/hash.h"
#include "core/config/registry.h"

enum { PL_SECTION_SIZE = 1536, PL_MAX_CORRECTIONS = 4 };

/* Raised when the same configuration gives other numbers than before; part of every run id. */
enum { PL_ALGORITHM = 2 };

/* A chosen component and its parameters. */
typedef struct pl_section {
  const pl_component *type;
  _Alignas(16) unsigned char config[PL_SECTION_SIZE];
} pl_section;

typedef enum pl_nonfinite { PL_NONFINITE_STOP, PL_NONFINITE_SKIP } pl_nonfinite;
typedef enum pl_clip_scope { PL_CLIP_GLOBAL, PL_CLIP_STAGE } pl_clip_scope;
typedef enum pl_decay_form { PL_DECAY_DECOUPLED, PL_DECAY_L2 } pl_decay_form;
typedef enum pl_delay_word { PL_DELAY_PIPEDREAM } pl_delay_word;
typedef enum pl_partition_word { PL_PARTITION_FLOPS, PL_PARTITION_EVEN } pl_partition_word;

/* Section "train". */
typedef struct pl_train_config {
  int64_t steps;        /* updates */
  int64_t batch_tokens; /* tokens per update (samples for models without tokens) */
  double warmup;        /* updates when >= 1, share of steps when below 1 */
  double clip;          /* largest gradient norm; 0 = no clipping */
  int clip_scope;       /* pl_clip_scope */
  double weight_decay;
  int weight_decay_form;    /* pl_decay_form */
  int nonfinite;            /* pl_nonfinite */
  int64_t data_seed;        /* -1: the run's seed */
  int64_t val_every;        /* updates; 0 = only before the first update and at the end */
  int64_t val_tokens;       /* size of the fixed validation set */
  int64_t log_every;        /* updates; not identity */
  int64_t checkpoint_every; /* updates; 0 = only on a signal; not identity */
  int64_t probe_every;      /* updates; 0 = never; not identity */
} pl_train_config;

/* Section "pipeline". */
typedef struct pl_pipeline_config {
  int64_t stages;
  int64_t microbatches;
  int schedule;              /* see core/config/run_schedule.h */
  const char *schedule_file; /* of a custom schedule, as written; NULL for the others */
  int64_t chunks;            /* groups of layers in a stage; 0: what the schedule takes */
  int64_t replicas;          /* data-parallel copies; a batch has replicas * microbatches parts */
  bool allow_min_microbatches;
  pl_int_list partition; /* layers of each of the stages * chunks groups in layer order, or a pl_partition_word */
  int64_t trace;         /* updates; not identity */
  double watchdog;       /* seconds; 0 = never; not identity */
} pl_pipeline_config;

/* Keys at the root. */
typedef struct pl_root_config {
  const char *name;  /* not identity */
  const char *notes; /* not identity */
  int64_t seed;
  pl_int_list delay; /* updates; one value, one per stage, or the word pipedream. Of a schedule of the library other
                        than lagged: what it gives, unless something else was written */
  int64_t delay_start;
  bool simulate_only; /* lets `lagged` use a global clip or a tied head on a per-stage profile */
  int precision;      /* pl_precision */
  int64_t threads;    /* that compute one process */
  int device;         /* cpu, paranoid, cuda */
} pl_root_config;

/* The rows of the root, train and pipeline tables that a run states; each is closed by PL_END. */
typedef struct pl_config_tables {
  const pl_param *root, *train, *pipeline;
} pl_config_tables;

typedef struct pl_run_config {
  const pl_config_tables *tables; /* of a run that was imported, not trained by pipelag; NULL: every row is stated */
  pl_root_config root;
  pl_train_config train;
  pl_pipeline_config pipeline;
  pl_section model, data, optimizer, lr_schedule;
  pl_section corrections[PL_MAX_CORRECTIONS];
  size_t correction_count;
} pl_run_config;

extern const pl_param pl_root_params[], pl_train_params[], pl_pipeline_params[];

/* The tables that say what a run states: its own, or the three above. */
const pl_config_tables *pl_run_config_tables(const pl_run_config *c);

/* One assignment: a key path and a value. Strings in the value are borrowed by the config. */
typedef struct pl_entry {
  const char *path; /* "optimizer", "optimizer.lr", "train", "train.lr_schedule", "delay", "correction.lambda", ... */
  const pl_json *value;
  const char *where; /* where it was written, for messages: "base.optimizer.lr", "grid[0].optimizer.lr[2]" */
} pl_entry;

/* Builds and fully checks a config from entries, in order of layers (later wins). Sections with a type (model, data,
 * optimizer, train.lr_schedule, each correction) take a short name or an object with "type". An object states the whole
 * section and drops what earlier entries said about it; a short name chooses the type and keeps earlier dotted keys,
 * and the keys of an earlier object of the same type. Then dotted keys apply; one unknown to the chosen type is an
 * error naming its `where`. An object for "train" or "pipeline" is the same as its keys one by one. `correction` takes
 * a name, an object, or a list of these; "none" is the empty chain; a dotted correction key needs a chain of exactly
 * one. `delay` becomes what the schedule gives where it was left out or says the same; pl_run_config_check refuses
 * other ones, and numbers that the schedule does not allow. Left out: data is "none", train.lr_schedule is "cosine",
 * correction is "none"; model, optimizer, train.steps are required.
 */
PL_MUST_CHECK pl_status pl_run_config_build(const pl_registries *r, const pl_entry *entries, size_t count,
                                            pl_run_config *out, pl_err *e);

/* Builds from a whole run object (a run file, config.json); the document must outlive the config. `where` prefixes
 * messages. */
PL_MUST_CHECK pl_status pl_run_config_from_json(const pl_registries *r, const pl_json *run, const char *where,
                                                pl_run_config *out, pl_err *e);

/* The canonical full config, defaults filled in (new reference; NULL when memory is out). Feeding it to
 * pl_run_config_from_json gives the same config and id. */
pl_json *pl_run_config_dump(const pl_run_config *c);

/* Identity of the run: independent of key order, of how numbers are written and of the not_identity rows. */
uint64_t pl_run_config_id(const pl_run_config *c);

/* Steady delay of each stage in updates: delay[0..stages-1]. */
void pl_run_config_delays(const pl_run_config *c, int64_t *delay);

/* The correction chain as text: "none", "ef", "ef+lookahead". Appended. */
void pl_run_config_correction_name(const pl_run_config *c, pl_str *out);

/* The delay as text: "0", "1", "pipedream", "[3,2,1,0]". Appended. */
void pl_run_config_delay_name(const pl_run_config *c, pl_str *out);

/* Peak learning rate: every optimizer's config struct starts with `double lr`. */
double pl_run_config_lr(const pl_run_config *c);

/* JSON Schema of a run file (new reference). */
pl_json *pl_run_config_schema(const pl_registries *r);

#endif
