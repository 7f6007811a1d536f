/* The section "slurm" of a sweep file: what each run asks of Slurm, with rules on a run's configuration. */
#ifndef PL_RUNNERS_SLURM_SECTION_H
#define PL_RUNNERS_SLURM_SECTION_H

#include "core/config/registry.h"
#include "sweeps/sweep.h"

typedef enum pl_slurm_mpi { PL_SLURM_PMIX, PL_SLURM_MPIRUN } pl_slurm_mpi;
typedef enum pl_slurm_requeue { PL_SLURM_REQUEUE_AUTO, PL_SLURM_REQUEUE_NEVER } pl_slurm_requeue;

/* Texts are NULL when Slurm's own default is meant; they contain no control characters. */
typedef struct pl_slurm_config {
  const char *partition, *account, *qos;
  const char *time;    /* "MM", "HH:MM:SS", "D-HH", "D-HH:MM" or "D-HH:MM:SS" */
  const char *mem;     /* of each node: "4G"; "0": all of it */
  int64_t nodes;       /* 0: Slurm decides */
  int64_t tasks, cpus; /* processes of a run; cpus of each */
  int64_t gpus;        /* of each node; 0: none */
  const char *gres;    /* stands instead of gpus */
  const char *constraint, *exclude, *mail_type, *mail_user;
  int64_t max_running; /* runs of the directory at once; 0: no limit */
  int64_t pack;        /* runs of one array task */
  int requeue;         /* pl_slurm_requeue */
  int64_t signal_lead; /* seconds before the time limit at which USR1 is sent; 0: never */
  int64_t max_restarts;
  bool snapshot;
  int mpi;                     /* pl_slurm_mpi */
  pl_text_list setup, options; /* shell lines; further options of sbatch, "--name" or "--name=value" */
  const pl_json *env;          /* object of strings; NULL: none */
  const pl_json *document;     /* the whole as JSON */
} pl_slurm_config;

extern const pl_param pl_slurm_params[];

typedef struct pl_slurm_section pl_slurm_section;

/* Checks a sweep's section, also its rules; NULL gives the defaults. PL_BAD with one sentence that starts with the key
 * path, "slurm.rules[1].time". Released by pl_slurm_section_free; `r` must outlive it, the sweep need not. */
PL_MUST_CHECK pl_status pl_slurm_section_load(const pl_registries *r, const pl_json *slurm, pl_slurm_section **out,
                                              pl_err *e);
void pl_slurm_section_free(pl_slurm_section *s);

/* What a run of this configuration asks for, the rules that hold applied in order. Borrowed until the section goes;
 * equal answers are the same pointer. PL_BAD when the settings do not go together, or the run cannot be trained by so
 * many tasks. */
PL_MUST_CHECK pl_status pl_slurm_section_for(pl_slurm_section *s, pl_run_config *run, const pl_slurm_config **out,
                                             pl_err *e);

/* The time limit in seconds; 0 when none is given. */
int64_t pl_slurm_seconds(const char *time);

/* JSON Schema of the section (new reference; NULL when memory is out). */
pl_json *pl_slurm_schema(void);

#endif
