#include <string.h>

#include "runners/launchers/slurm/states.h"

typedef struct slurm_state {
  const char *name;
  pl_attempt_end end;
  const char *retry;
} slurm_state;

#define PL_SLURM_STATE(name, kind, end, retry) {#name, PL_ATTEMPT_##end, retry},
static const slurm_state slurm_states[] = {
#include "runners/launchers/slurm/slurm_states.def"
};
#undef PL_SLURM_STATE

enum { SLURM_STATES = sizeof slurm_states / sizeof *slurm_states };

static const char *const shown_names[PL_SHOWN_STATES] = {"running", "queued",    "pending", "done", "diverged",
                                                         "stopped", "cancelled", "failed",  "lost"};
static const char *const end_names[PL_ATTEMPT_ENDS] = {[PL_ATTEMPT_TIMEOUT] = "timeout",
                                                       [PL_ATTEMPT_OUT_OF_MEMORY] = "out of memory",
                                                       [PL_ATTEMPT_NODE_FAILURE] = "node failure",
                                                       [PL_ATTEMPT_PREEMPTED] = "preempted",
                                                       [PL_ATTEMPT_CANCELLED] = "cancelled by Slurm",
                                                       [PL_ATTEMPT_KILLED] = "killed"};
static const pl_shown shown_by_state[PL_RUN_STATES] = {
    [PL_RUN_PENDING] = PL_SHOWN_PENDING,     [PL_RUN_RUNNING] = PL_SHOWN_RUNNING, [PL_RUN_DONE] = PL_SHOWN_DONE,
    [PL_RUN_DIVERGED] = PL_SHOWN_DIVERGED,   [PL_RUN_FAILED] = PL_SHOWN_FAILED,   [PL_RUN_STOPPED] = PL_SHOWN_STOPPED,
    [PL_RUN_CANCELLED] = PL_SHOWN_CANCELLED, [PL_RUN_LOST] = PL_SHOWN_LOST};

const char *pl_shown_name(pl_shown s) { return shown_names[s]; }

const char *pl_verdict_name(const pl_verdict *v) {
  return end_names[v->end] != NULL ? end_names[v->end] : shown_names[v->shown];
}

static const slurm_state *find_word(const char *word) {
  for (size_t i = 0; i < SLURM_STATES; i++)
    if (strcmp(slurm_states[i].name, word) == 0) return &slurm_states[i];
  return NULL;
}

static pl_verdict verdict(pl_shown shown, pl_attempt_end end, const char *why) {
  return (pl_verdict){.shown = shown, .end = end, .why = why};
}

/* The run's own word ("failed", "stopped") stays where there is one; Slurm adds how it came to that. */
static pl_verdict after_end(const pl_sight *s) {
  pl_attempt_end end = find_word(s->word)->end;
  if (end == PL_ATTEMPT_FAILED && s->signalled) end = PL_ATTEMPT_KILLED;
  if ((end == PL_ATTEMPT_FAILED || end == PL_ATTEMPT_KILLED) && s->memory) end = PL_ATTEMPT_OUT_OF_MEMORY;
  if (s->kept == PL_RUN_FAILED)
    return verdict(PL_SHOWN_FAILED, end == PL_ATTEMPT_OUT_OF_MEMORY ? end : PL_ATTEMPT_NONE, "");
  if (end == PL_ATTEMPT_CANCELLED) return verdict(PL_SHOWN_CANCELLED, end, "cancelled in Slurm");
  if (end == PL_ATTEMPT_OUT_OF_MEMORY) return verdict(PL_SHOWN_FAILED, end, "");
  if (end == PL_ATTEMPT_KILLED) return verdict(PL_SHOWN_LOST, end, "its job was killed");
  if (s->kept == PL_RUN_STOPPED) {
    bool said = end != PL_ATTEMPT_COMPLETED && end != PL_ATTEMPT_FAILED;
    return verdict(PL_SHOWN_STOPPED, said ? end : PL_ATTEMPT_NONE, "");
  }
  if (end == PL_ATTEMPT_FAILED) return verdict(PL_SHOWN_FAILED, end, "its job failed and left no result");
  return verdict(PL_SHOWN_LOST, end, end == PL_ATTEMPT_COMPLETED ? "its job ended and left no result" : "");
}

/* Slurm does not list the task. */
static pl_verdict without_task(const pl_sight *s) {
  bool open = s->kept == PL_RUN_PENDING || s->kept == PL_RUN_LOST;
  if (!open) return verdict(shown_by_state[s->kept], PL_ATTEMPT_NONE, "");
  if (!s->asked) {
    pl_shown shown = s->kept == PL_RUN_PENDING ? PL_SHOWN_QUEUED : shown_by_state[s->kept];
    return verdict(shown, PL_ATTEMPT_NONE, "Slurm could not be asked");
  }
  if (s->young && !s->siblings) return verdict(PL_SHOWN_QUEUED, PL_ATTEMPT_NONE, "just submitted");
  if (s->kept != PL_RUN_PENDING) return verdict(PL_SHOWN_LOST, PL_ATTEMPT_NONE, "gone from the queue without a result");
  /* Slurm forgets a waiting task of an array at once when it is cancelled, others only after a while. */
  if (s->siblings) return verdict(PL_SHOWN_CANCELLED, PL_ATTEMPT_CANCELLED, "left the queue before it started");
  return verdict(PL_SHOWN_LOST, PL_ATTEMPT_NONE, "gone from the queue, never started");
}

static pl_verdict with_task(const pl_sight *s) {
  bool packed_end = s->packed && (s->kept == PL_RUN_FAILED || s->kept == PL_RUN_STOPPED);
  pl_queue_kind kind = pl_queue_kind_of(s->word);
  if (s->kept == PL_RUN_CANCELLED)
    return verdict(PL_SHOWN_CANCELLED, PL_ATTEMPT_NONE, kind != PL_QUEUE_ENDED ? "still in the queue" : "");
  switch (kind) {
  case PL_QUEUE_RUNNING:
    return packed_end ? verdict(shown_by_state[s->kept], PL_ATTEMPT_NONE, "other runs of its task go on")
                      : verdict(PL_SHOWN_RUNNING, PL_ATTEMPT_NONE, "");
  case PL_QUEUE_ENDED:
    return after_end(s);
  case PL_QUEUE_WAITING:
  case PL_QUEUE_UNKNOWN:
  default:
    return verdict(PL_SHOWN_QUEUED, PL_ATTEMPT_NONE, "");
  }
}

pl_verdict pl_state_merge(const pl_sight *s) {
  bool final = s->kept == PL_RUN_DONE || s->kept == PL_RUN_DIVERGED;
  if (final || s->kept == PL_RUN_RUNNING || !s->submitted) return verdict(shown_by_state[s->kept], PL_ATTEMPT_NONE, "");
  return s->word != NULL ? with_task(s) : without_task(s);
}

const char *pl_retry_text(const pl_shown_run *r) {
  static const char *const texts[PL_SHOWN_STATES] = {[PL_SHOWN_RUNNING] = "nothing",
                                                     [PL_SHOWN_QUEUED] = "nothing, it will run",
                                                     [PL_SHOWN_PENDING] = "nothing: `run` or `submit` starts it",
                                                     [PL_SHOWN_DONE] = "nothing, it is finished",
                                                     [PL_SHOWN_DIVERGED] = "nothing, it is finished",
                                                     [PL_SHOWN_STOPPED] = "runs it on from its checkpoint",
                                                     [PL_SHOWN_CANCELLED] = "runs it only with --cancelled or by name",
                                                     [PL_SHOWN_FAILED] = "runs it again",
                                                     [PL_SHOWN_LOST] = "runs it on from its last checkpoint"};
  if (r->queued == NULL) return texts[r->verdict.shown];
  for (size_t i = 0; i < SLURM_STATES && r->verdict.end != PL_ATTEMPT_NONE; i++)
    if (slurm_states[i].end == r->verdict.end) return slurm_states[i].retry;
  return texts[r->verdict.shown];
}
