#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/memory.h"
#include "runners/launchers/slurm/submit_parts.h"

enum { SETTLED_SECONDS = 30 };

/* Slurm may keep a failed record of a job that it refused. */
static bool is_refusal(const pl_queue_task *t) {
  return strcmp(t->state, "FAILED") == 0 && strcmp(t->reason, "BadConstraints") == 0;
}

static void find_in(const pl_queue *q, const char *token, char job[PL_JOB_SIZE], bool *refused) {
  for (size_t i = 0; i < q->count; i++) {
    if (strcmp(q->tasks[i].name, token) != 0) continue;
    if (is_refusal(&q->tasks[i]))
      *refused = true;
    else
      memcpy(job, q->tasks[i].job, PL_JOB_SIZE);
  }
  if (job[0] != '\0') *refused = false;
}

pl_status pl_submit_look(const pl_submission *submission, char job[PL_JOB_SIZE], bool *refused, pl_err *e) {
  pl_submission one = *submission;
  const pl_submissions only = {.items = &one, .count = 1};
  pl_queue queue;
  job[0] = '\0';
  *refused = false;
  pl_status st = pl_queue_read(&only, &queue, e);
  if (st != PL_OK) return st;
  find_in(&queue, submission->token, job, refused);
  pl_queue_free(&queue);
  return PL_OK;
}

/* A dry run knows it for itself. */
static pl_status record(pl_submitting *s, pl_submission *sub, pl_sent sent, const char *job, const char *why,
                        pl_err *e) {
  if (!s->args->dry_run) return pl_submission_answer(s->dir, sub, sent, job, why, e);
  sub->sent = sent;
  snprintf(sub->job, sizeof sub->job, "%s", job);
  return PL_OK;
}

static void say_unknown(const pl_submission *sub) {
  fflush(stdout);
  fprintf(stderr,
          "pipelag: submission %" PRId64
          ": sbatch was called %.0f s ago and what came of it is not known yet; its runs "
          "are left alone until %d s have passed\n",
          sub->number, pl_submission_age(sub), SETTLED_SECONDS);
}

/* A request that is on its way may be handled after a question that was asked later: hence the second look. */
static pl_status settle_one(pl_submitting *s, pl_submission *sub, pl_err *e) {
  const struct timespec pause = {.tv_sec = 1};
  char job[PL_JOB_SIZE] = "";
  bool refused = false;
  find_in(&s->queue, sub->token, job, &refused);
  if (job[0] == '\0' && !refused) {
    nanosleep(&pause, NULL);
    pl_status st = pl_submit_look(sub, job, &refused, e);
    if (st != PL_OK) return st;
  }
  if (job[0] != '\0') {
    if (!s->args->quiet)
      printf("submission %" PRId64 ": its answer was lost; Slurm has it as job %s\n", sub->number, job);
    return record(s, sub, PL_SENT_YES, job, "found in the queue", e);
  }
  if (!refused && pl_submission_age(sub) <= SETTLED_SECONDS) {
    s->result->unknown++;
    say_unknown(sub);
    return PL_OK;
  }
  const char *why = refused ? "Slurm kept it as failed: BadConstraints" : "no answer and no such job";
  if (!s->args->quiet) printf("submission %" PRId64 ": %s; its runs are free again\n", sub->number, why);
  return record(s, sub, PL_SENT_REFUSED, "", why, e);
}

pl_status pl_submit_settle(pl_submitting *s, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_submissions_read(s->dir, &s->submissions, e));
  st = pl_queue_read(&s->submissions, &s->queue, e);
  if (st != PL_OK) {
    if (e != NULL) e->status = PL_BAD;
    return PL_BAD;
  }
  bool settled = false;
  for (size_t i = 0; i < s->submissions.count; i++) {
    if (s->submissions.items[i].sent != PL_SENT_UNKNOWN) continue;
    PL_TRY(settle_one(s, &s->submissions.items[i], e));
    settled = true;
  }
  if (!settled) goto out;
  pl_queue_free(&s->queue);
  st = pl_queue_read(&s->submissions, &s->queue, e);
out:
  return st;
}
