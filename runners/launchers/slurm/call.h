/* Calls of Slurm's command-line programs: no shell, a scrubbed environment, a time limit. */
#ifndef PL_RUNNERS_SLURM_CALL_H
#define PL_RUNNERS_SLURM_CALL_H

#include "core/base/str.h"

typedef struct pl_call {
  int exit_code; /* -1 when it did not end by itself */
  bool timed_out;
  pl_str out, err;
} pl_call;

/* Runs argv[0] (found on PATH) with `input` as standard input (NULL: none). SLURM_*, SBATCH_*, SQUEUE_*, SACCT_*,
 * SINFO_*, SCONTROL_*, SRUN_*, SALLOC_*, PMI* and OMPI_* are not passed on, except SLURM_CONF; LC_ALL is C. PL_BAD when
 * the program is not there; a non-zero exit is no error here. */
PL_MUST_CHECK pl_status pl_call_run(const char *const *argv, const char *input, double seconds, pl_call *out,
                                    pl_err *e);
void pl_call_free(pl_call *c);

/* The last line of standard error without "sbatch: error: " and the like, for messages. `out` holds 256 bytes. Returns
 * `out`. */
char *pl_call_sentence(const pl_call *c, char *out);

#endif
