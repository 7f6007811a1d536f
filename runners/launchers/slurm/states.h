/* What each run of a result directory is doing: its directory's markers first, then what Slurm says. Reads only. */
#ifndef PL_RUNNERS_SLURM_STATES_H
#define PL_RUNNERS_SLURM_STATES_H

#include "results/run_dir.h"
#include "results/sweep_dir.h"
#include "runners/launchers/slurm/queue.h"

/* The states that people see. */
typedef enum pl_shown {
  PL_SHOWN_RUNNING,
  PL_SHOWN_QUEUED,  /* Slurm has it and will run it */
  PL_SHOWN_PENDING, /* neither begun nor submitted */
  PL_SHOWN_DONE,
  PL_SHOWN_DIVERGED,
  PL_SHOWN_STOPPED, /* checkpointed; nobody is going to run it on */
  PL_SHOWN_CANCELLED,
  PL_SHOWN_FAILED,
  PL_SHOWN_LOST, /* it ended without a word */
  PL_SHOWN_STATES
} pl_shown;

/* How the last attempt ended, as far as Slurm knows. */
typedef enum pl_attempt_end {
  PL_ATTEMPT_NONE,
  PL_ATTEMPT_COMPLETED,
  PL_ATTEMPT_FAILED,
  PL_ATTEMPT_TIMEOUT,
  PL_ATTEMPT_OUT_OF_MEMORY,
  PL_ATTEMPT_NODE_FAILURE,
  PL_ATTEMPT_PREEMPTED,
  PL_ATTEMPT_CANCELLED,
  PL_ATTEMPT_KILLED, /* its job failed by a signal */
  PL_ATTEMPT_ENDS
} pl_attempt_end;

/* What is known of one run. */
typedef struct pl_sight {
  pl_run_state kept; /* by its directory; running: its process lives as far as can be told, or its task runs */
  bool submitted;    /* in a submission that Slurm did not refuse */
  bool young;        /* so lately that Slurm need not list it yet */
  bool asked;        /* Slurm answered */
  bool packed;       /* its task has other runs too */
  bool siblings;     /* Slurm lists other tasks of its array */
  const char *word;  /* Slurm's state of the task; NULL: Slurm does not list it */
  bool signalled;    /* the task ended by a signal */
  bool memory;       /* Slurm wrote into the task's output that its memory was too small */
} pl_sight;

typedef struct pl_verdict {
  pl_shown shown;
  pl_attempt_end end;
  const char *why; /* static text; "" when there is nothing to add */
} pl_verdict;

pl_verdict pl_state_merge(const pl_sight *s);

typedef struct pl_shown_run {
  uint64_t index, id;
  const char *label;   /* axis values; borrowed */
  bool current;        /* part of the newest frozen sweep file */
  pl_run_state marked; /* by its marker alone */
  pl_run_state kept;   /* by its directory, looked into where the marker cannot be the last word */
  pl_verdict verdict;
  const pl_submission *submission; /* that speaks for it: one with a live task, else the newest; NULL: none */
  int64_t task;                    /* its array index there */
  const pl_queue_task *queued;     /* Slurm's record of that task, or NULL */
} pl_shown_run;

typedef struct pl_states {
  char *dir, *name;
  pl_runs_list list;
  pl_shown_run *runs; /* by index */
  size_t count;
  pl_submissions submissions;
  pl_queue queue;
  bool asked;             /* Slurm was asked and answered */
  char note[PL_ERR_TEXT]; /* why Slurm could not be asked; "" otherwise */
} pl_states;

/* PL_BAD when `dir` is no result directory. Slurm is asked once, and only when a run without a final result is in a
 * submission. Opens no file of a run, except of those whose marker cannot be the last word: said to run though their
 * task does not, or without a marker though it has ended; and the output of tasks that failed. */
PL_MUST_CHECK pl_status pl_states_read(const char *dir, pl_states *out, pl_err *e);
void pl_states_free(pl_states *s);

/* "queued", "failed", ... */
const char *pl_shown_name(pl_shown s);

/* What is shown for a run: the state, or how it ended where Slurm knows ("timeout", "out of memory", ...). */
const char *pl_verdict_name(const pl_verdict *v);

/* What `retry` does about a run like this one; static text. */
const char *pl_retry_text(const pl_shown_run *r);

/* Who holds the run; false when nobody does. */
bool pl_run_owner(const char *dir, uint64_t id, pl_owner *out);

/* True when the owner is a process of this host that lives. */
bool pl_owner_is_here(const pl_owner *o);

/* Where Slurm writes what a task prints outside of its runs' logs; released by pl_free. */
PL_MUST_CHECK pl_status pl_task_output_path(const char *dir, const pl_submission *s, int64_t task, char **out,
                                            pl_err *e);

/* The run that `text` names: an index, else the beginning of an id when that is unique. PL_NOTHING otherwise. */
PL_MUST_CHECK pl_status pl_states_find(const pl_states *s, const char *text, size_t *index, pl_err *e);

/* The only run that has `what` ("checkpoints"), as `has` says of a run. PL_NOTHING without text when none has it,
 * PL_BAD when several have. */
PL_MUST_CHECK pl_status pl_states_find_only(const pl_states *s, const char *what,
                                            pl_status (*has)(const pl_states *s, size_t index, bool *out, pl_err *e),
                                            size_t *index, pl_err *e);

#endif
