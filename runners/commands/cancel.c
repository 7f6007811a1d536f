/* pipelag cancel DIR [RUN...]: marks runs so that nothing starts or requeues them, then stops what runs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "runners/choice.h"
#include "runners/command.h"
#include "runners/launchers/slurm/cancel.h"

/* Failed runs are left as they are unless they are named, so that their errors stay to be seen. */
static bool is_open(const pl_shown_run *r, bool named) {
  bool in_queue = r->queued != NULL && pl_queue_kind_of(r->queued->state) != PL_QUEUE_ENDED;
  switch (r->verdict.shown) {
  case PL_SHOWN_DONE:
  case PL_SHOWN_DIVERGED:
    return false;
  case PL_SHOWN_CANCELLED:
    return in_queue || r->kept != PL_RUN_CANCELLED;
  case PL_SHOWN_FAILED:
    return named || in_queue;
  default:
    return true;
  }
}

/* Its trainer, when that is a process of this host: it checkpoints and ends. The claim's start time is compared after
 * the process is held by a descriptor, so that a stranger who gets its number in between is not hit. */
static bool stop_here(const char *dir, uint64_t id) {
  pl_owner o;
  if (!pl_run_owner(dir, id, &o) || o.pid <= 1 || o.start == 0) return false;
  int process = (int)syscall(SYS_pidfd_open, (pid_t)o.pid, 0);
  bool unknown = process < 0 && errno == ENOSYS, told = false; /* before Linux 5.3 */
  if ((process >= 0 || unknown) && pl_owner_is_here(&o))
    told = unknown ? kill((pid_t)o.pid, SIGTERM) == 0 : syscall(SYS_pidfd_send_signal, process, SIGTERM, NULL, 0) == 0;
  if (process >= 0) close(process);
  return told;
}

/* Markers first: a task that starts or ends in between finds them. */
static pl_status cancel(const pl_states *s, const bool *chosen, pl_err *e) {
  pl_slurm_cancelled slurm = {0};
  size_t here = 0;
  for (size_t i = 0; i < s->count; i++) {
    if (!chosen[i]) continue;
    pl_status st = pl_run_cancel(s->dir, s->runs[i].id, e);
    if (st != PL_OK) return st;
  }
  pl_status st = pl_slurm_cancel(s, chosen, &slurm, e);
  for (size_t i = 0; i < s->count; i++)
    if (chosen[i] && s->runs[i].verdict.shown == PL_SHOWN_RUNNING && stop_here(s->dir, s->runs[i].id)) here++;
  printf("%zu runs cancelled", pl_choice_count(chosen, s->count));
  if (slurm.tasks > 0) printf(", %zu tasks taken from Slurm", slurm.tasks);
  if (here > 0) printf(", %zu processes here told to stop", here);
  printf("\n");
  if (slurm.shared > 0)
    printf(
        "%zu of them share a Slurm task with runs that stay: they are not started any more, but what runs there goes "
        "on to its end\n",
        slurm.shared);
  return st;
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_states s;
  bool *chosen = NULL, named = false;
  pl_status st = pl_states_read(o->args[0], &s, e);
  if (st != PL_OK) return st;
  PL_TRY(pl_alloc(s.count, sizeof *chosen, "the list of runs", &chosen, e));
  PL_TRY(pl_choice_named(o, &s, chosen, &named, e));
  for (size_t i = 0; i < s.count; i++)
    chosen[i] =
        (chosen[i] || (!named && (s.runs[i].current || s.runs[i].queued != NULL))) && is_open(&s.runs[i], named);
  size_t count = pl_choice_count(chosen, s.count);
  if (count == 0) PL_TRY(pl_fail(e, PL_NOTHING, "%s: no run to cancel: all that were selected have ended", s.dir));
  if (o->dry_run)
    printf("would cancel %zu runs\n", count);
  else if ((st = pl_choice_confirm(o, "cancel", count, e)) == PL_OK)
    st = cancel(&s, chosen, e);
out:
  pl_free(chosen);
  pl_states_free(&s);
  return st;
}

const pl_command pl_command_cancel = {.name = "cancel",
                                      .arguments = "DIR [RUN...]",
                                      .summary =
                                          "Stop runs (all that have not ended) and keep them from starting again",
                                      .options = "yn",
                                      .min_args = 1,
                                      .max_args = PL_MAX_ARGS,
                                      .run = run};
