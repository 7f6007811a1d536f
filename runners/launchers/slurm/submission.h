/* Submissions: which array task trains which runs. DIR/submissions/<n>.tsv never changes; DIR/submissions/<n>.json says
 * how it was sent and what Slurm answered. A task finds its runs here, so nothing of a configuration passes through an
 * environment or a command line. */
#ifndef PL_RUNNERS_SLURM_SUBMISSION_H
#define PL_RUNNERS_SLURM_SUBMISSION_H

#include <stdint.h>

#include "core/base/json.h"

enum { PL_TOKEN_SIZE = 40, PL_JOB_SIZE = 24 };

typedef enum pl_sent {
  PL_SENT_UNKNOWN, /* sbatch was called, or about to be, and no answer is known: look for the token before anything else
                    */
  PL_SENT_YES,
  PL_SENT_REFUSED /* Slurm refused it; its runs are free again */
} pl_sent;

/* One line of the .tsv: array index, run index in runs.tsv, run id. With `pack` several runs share an array index. */
typedef struct pl_submission_row {
  int64_t task;
  uint64_t index, id;
} pl_submission_row;

typedef struct pl_submission {
  int64_t number;            /* n, from 1 */
  char token[PL_TOKEN_SIZE]; /* job name: unique, of [a-z0-9-], at most 32 characters: "pl-<8 hex of the
                                directory>-<n>-<8 hex random>" */
  pl_sent sent;
  char job[PL_JOB_SIZE]; /* Slurm's array job id, "" unless sent */
  int64_t throttle;      /* tasks of it that may run at once; 0 = no limit */
  char *data_root;       /* absolute folder of relative data paths */
  char *program;         /* absolute path of the pipelag that the tasks start */
  char binary_hash[17];  /* of it, at submission */
  pl_json *document;     /* the whole .json: resources, script, argv, versions, libraries, times */
  pl_submission_row *rows;
  size_t count;
} pl_submission;

typedef struct pl_submissions {
  pl_submission *items; /* by number */
  size_t count;
} pl_submissions;

/* Reads all submissions of a result directory; none is an empty list. */
PL_MUST_CHECK pl_status pl_submissions_read(const char *dir, pl_submissions *out, pl_err *e);
void pl_submissions_free(pl_submissions *s);

/* Reads one by its number; released by pl_submission_free. PL_BAD when there is none. */
PL_MUST_CHECK pl_status pl_submission_read(const char *dir, int64_t number, pl_submission *out, pl_err *e);
void pl_submission_free(pl_submission *s);

/* Sets s->number to the next free one, or leaves a higher one, and s->token, so that the script can be made; writes
 * nothing. */
PL_MUST_CHECK pl_status pl_submission_name(const char *dir, pl_submission *s, pl_err *e);

/* Writes <n>.tsv and <n>.json (sent unknown) durably, before sbatch is called; the caller holds the directory's submit
 * lock. `s->number` and `s->token` are set here unless pl_submission_name did. */
PL_MUST_CHECK pl_status pl_submission_create(const char *dir, pl_submission *s, pl_err *e);

/* Records the answer: a job id, or refused with Slurm's sentence. */
PL_MUST_CHECK pl_status pl_submission_answer(const char *dir, pl_submission *s, pl_sent sent, const char *job,
                                             const char *sentence, pl_err *e);

/* Records that another number of its tasks may run at once. */
PL_MUST_CHECK pl_status pl_submission_set_throttle(const char *dir, pl_submission *s, int64_t throttle, pl_err *e);

/* Seconds since it was created, by this host's clock. */
double pl_submission_age(const pl_submission *s);

#endif
