#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "runners/launchers/slurm/call.h"
#include "runners/launchers/slurm/states.h"
#include "runners/launchers/slurm/submit_parts.h"

/* Runs of earlier submissions, told by id. */
typedef struct id_list {
  uint64_t *ids;
  size_t count;
} id_list;

static int by_id(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static bool has_id(const id_list *l, uint64_t id) {
  return l->count > 0 && bsearch(&id, l->ids, l->count, sizeof *l->ids, by_id) != NULL;
}

static bool is_live(const pl_submitting *s, const pl_submission *sub, int64_t task) {
  if (sub->sent == PL_SENT_REFUSED) return false;
  const pl_queue_task *found = pl_queue_find(&s->queue, sub->token, task);
  if (found == NULL && sub->sent == PL_SENT_UNKNOWN) return true;
  return found != NULL && pl_queue_kind_of(found->state) != PL_QUEUE_ENDED;
}

/* Runs of earlier submissions: all that were ever sent, and those of tasks that Slurm has and will run, or of a
 * submission of which nothing is known yet. */
static pl_status list_sent(const pl_submitting *s, id_list *sent, id_list *live, pl_err *e) {
  pl_status st = PL_OK;
  size_t rows = 0;
  for (size_t i = 0; i < s->submissions.count; i++) rows += s->submissions.items[i].count;
  PL_TRY(pl_alloc(rows, sizeof *sent->ids, "the runs in the queue", &sent->ids, e));
  PL_TRY(pl_alloc(rows, sizeof *live->ids, "the runs in the queue", &live->ids, e));
  for (size_t i = 0; i < s->submissions.count; i++) {
    const pl_submission *sub = &s->submissions.items[i];
    for (size_t k = 0; k < sub->count; k++) {
      sent->ids[sent->count++] = sub->rows[k].id;
      if (is_live(s, sub, sub->rows[k].task)) live->ids[live->count++] = sub->rows[k].id;
    }
  }
  if (sent->count > 1) qsort(sent->ids, sent->count, sizeof *sent->ids, by_id);
  if (live->count > 1) qsort(live->ids, live->count, sizeof *live->ids, by_id);
out:
  return st;
}

/* The queue was read after the plan saw the run: it may have ended in between, and then left the queue with a result.
 */
static void look_again(pl_plan *p, pl_job *job) {
  p->states[job->state]--;
  job->state = pl_run_state_of(p->dir, job->id);
  p->states[job->state]++;
}

/* A claim that names a job of Slurm, which cannot be looked at from here. The queue does not have the run any more. */
static bool is_left_behind(const pl_submitting *s, uint64_t id) {
  pl_owner owner;
  return pl_run_owner(s->dir, id, &owner) && strcmp(owner.job, "-") != 0 && !pl_owner_is_here(&owner);
}

static bool is_wanted(const pl_submitting *s, size_t i) {
  const pl_job *job = &s->plan->jobs[i];
  const bool chosen = s->args->chosen != NULL && s->args->chosen[i];
  if (s->args->chosen != NULL && !chosen) return false;
  if (job->state == PL_RUN_DONE || job->state == PL_RUN_DIVERGED) return false;
  if (!chosen && pl_run_is_cancelled(s->dir, job->id)) return false;
  if (job->state == PL_RUN_RUNNING) return is_left_behind(s, job->id);
  return pl_job_is_open(job) || job->state == PL_RUN_CANCELLED;
}

/* Runs that ask for the same stand together, groups in order of their first run, runs in order within them. */
static void order_by_group(pl_submitting *s, const bool *wanted) {
  for (size_t i = 0; i < s->plan->count; i++) {
    const pl_slurm_config *c = s->plan->jobs[i].slurm;
    bool first = wanted[i];
    for (size_t k = 0; k < s->order_count && first; k++) first = s->plan->jobs[s->order[k]].slurm != c;
    for (size_t k = i; k < s->plan->count && first; k++)
      if (wanted[k] && s->plan->jobs[k].slurm == c) s->order[s->order_count++] = k;
  }
}

pl_status pl_submit_choose(pl_submitting *s, pl_err *e) {
  pl_status st = PL_OK;
  id_list sent = {0}, live = {0};
  bool *wanted = NULL;
  PL_TRY(list_sent(s, &sent, &live, e));
  PL_TRY(pl_alloc(s->plan->count, sizeof *wanted, "the runs to submit", &wanted, e));
  PL_TRY(pl_alloc(s->plan->count, sizeof *s->order, "the runs to submit", &s->order, e));
  for (size_t i = 0; i < s->plan->count; i++) {
    const bool queued = has_id(&live, s->plan->jobs[i].id);
    s->result->queued += queued;
    if (!queued && has_id(&sent, s->plan->jobs[i].id)) look_again(s->plan, &s->plan->jobs[i]);
    wanted[i] = !queued && is_wanted(s, i);
  }
  order_by_group(s, wanted);
out:
  pl_free(wanted);
  pl_free(sent.ids);
  pl_free(live.ids);
  return st;
}

static pl_status add_piece(pl_submitting *s, const pl_piece *piece, pl_err *e) {
  if (s->piece_count == s->piece_capacity) {
    size_t capacity = 2 * s->piece_capacity + 16;
    pl_status st = pl_grow(s->piece_capacity, capacity, sizeof *s->pieces, "the arrays", &s->pieces, e);
    if (st != PL_OK) return st;
    s->piece_capacity = capacity;
  }
  s->pieces[s->piece_count++] = *piece;
  return PL_OK;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static void say_left(const pl_submitting *s, size_t left, const pl_slurm_limit *limit) {
  if (left == 0) return;
  fflush(stdout);
  fprintf(stderr, "pipelag: %zu runs cannot be submitted yet: %s, %" PRId64 " in use; `pipelag submit %s` sends them\n",
          left, limit->text, limit->used, s->plan->dir);
}

/* Runs order[first .. first+count-1] ask for the same. */
static pl_status cut_group(pl_submitting *s, size_t first, size_t count, pl_err *e) {
  const pl_slurm_config *c = s->plan->jobs[s->order[first]].slurm;
  const size_t pack = (size_t)c->pack;
  const pl_slurm_limit *binding;
  int64_t needed = (int64_t)((count + pack - 1) / pack),
          allowed = smaller(needed, pl_slurm_limits_room(&s->limits, c, &binding));
  size_t used = 0;
  for (int64_t left = allowed; left > 0;) {
    pl_piece piece = {.config = c, .first = first + used, .tasks = smaller(left, s->limits.array_size)};
    piece.count = (size_t)piece.tasks * pack;
    if (piece.count > count - used) piece.count = count - used;
    pl_status st = add_piece(s, &piece, e);
    if (st != PL_OK) return st;
    used += piece.count;
    left -= piece.tasks;
  }
  if (used < count) say_left(s, count - used, binding);
  s->result->left += count - used;
  pl_slurm_limits_take(&s->limits, c, allowed);
  return PL_OK;
}

pl_status pl_submit_cut(pl_submitting *s, pl_err *e) {
  for (size_t i = 0, next; i < s->order_count; i = next) {
    const pl_slurm_config *c = s->plan->jobs[s->order[i]].slurm;
    for (next = i; next < s->order_count && s->plan->jobs[s->order[next]].slurm == c;) next++;
    pl_status st = cut_group(s, i, next - i, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

/* Tasks of an earlier submission that have not ended, and what it said about them. */
static pl_throttled earlier(const pl_submitting *s, const pl_submission *sub) {
  int64_t last = -1;
  pl_throttled t = {.throttle = sub->throttle,
                    .pack = pl_json_get_int(pl_json_get(sub->document, "resources"), "pack", 1)};
  for (size_t i = 0; i < sub->count; i++) {
    if (sub->rows[i].task == last) continue;
    last = sub->rows[i].task;
    t.tasks += is_live(s, sub, last);
  }
  return t;
}

static pl_status find_live(pl_submitting *s, pl_err *e) {
  pl_status st = pl_alloc(s->submissions.count, sizeof *s->live, "the arrays in the queue", &s->live, e);
  for (size_t i = 0; i < s->submissions.count && st == PL_OK; i++)
    if (earlier(s, &s->submissions.items[i]).tasks > 0) s->live[s->live_count++] = &s->submissions.items[i];
  return st;
}

/* "after" lists numbers of submissions. */
static bool waits_for(const pl_submission *sub, const pl_submission *other) {
  const pl_json *after = pl_json_get(sub->document, "after");
  for (size_t i = 0; i < pl_json_size(after); i++)
    if (pl_json_int(pl_json_at(after, i)) == other->number) return true;
  return false;
}

static int64_t max_running(const pl_submitting *s) { return s->piece_count > 0 ? s->pieces[0].config->max_running : 0; }

/* The limit was made smaller while arrays wait: those that wait give up their share of what is too much. Slurm's answer
 * says little (an error when only some tasks have ended), so what counts is what it was asked for. */
static pl_status lower_earlier(pl_submitting *s, int64_t limit, pl_err *e) {
  int64_t peak = 0;
  pl_status st = pl_throttle_peak(s->arrays, s->live_count, &peak, e);
  for (size_t i = 0; i < s->live_count && st == PL_OK && limit > 0 && peak > limit; i++) {
    pl_throttled *a = &s->arrays[i];
    int64_t now = a->throttle > 0 ? smaller(a->throttle, a->tasks) : a->tasks, lower = now * limit / peak;
    if (lower < 1) lower = 1;
    if (lower >= now || s->live[i]->job[0] == '\0') continue;
    char job[64], throttle[64];
    snprintf(job, sizeof job, "JobId=%s", s->live[i]->job);
    snprintf(throttle, sizeof throttle, "ArrayTaskThrottle=%" PRId64, lower);
    const char *argv[] = {"scontrol", "update", job, throttle, NULL};
    pl_call call;
    a->throttle = lower;
    if (!s->args->quiet) printf("job %s: at most %" PRId64 " tasks at once from now on\n", s->live[i]->job, lower);
    if (s->args->dry_run) continue;
    st = pl_call_run(argv, NULL, 20, &call, e);
    if (st == PL_OK) pl_call_free(&call);
    if (st == PL_OK) st = pl_submission_set_throttle(s->dir, s->live[i], lower, e);
  }
  return st;
}

pl_status pl_submit_throttle(pl_submitting *s, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(find_live(s, e));
  const size_t count = s->live_count + s->piece_count;
  PL_TRY(pl_alloc(count, sizeof *s->arrays, "the arrays", &s->arrays, e));
  PL_TRY(pl_alloc(count * count, sizeof *s->after, "the arrays", &s->after, e));
  for (size_t i = 0; i < s->live_count; i++) {
    s->arrays[i] = earlier(s, s->live[i]);
    s->arrays[i].after = s->after + i * count;
    for (size_t j = 0; j < i; j++) s->arrays[i].after[j] = waits_for(s->live[i], s->live[j]);
  }
  for (size_t i = 0; i < s->piece_count; i++)
    s->arrays[s->live_count + i] = (pl_throttled){.tasks = s->pieces[i].tasks,
                                                  .pack = s->pieces[i].config->pack,
                                                  .after = s->after + (s->live_count + i) * count};
  PL_TRY(lower_earlier(s, max_running(s), e));
  PL_TRY(pl_throttle_share(max_running(s), s->arrays, s->live_count, count, e));
out:
  return st;
}
