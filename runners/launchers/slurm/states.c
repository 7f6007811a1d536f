#include "runners/launchers/slurm/states.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/memory.h"

enum { GRACE_SECONDS = 20, ANSWER_SECONDS = 120, TAIL_BYTES = 4096 };

/* Where an id stands in runs.tsv. */
typedef struct place {
  uint64_t id;
  size_t index;
} place;

static int compare_places(const void *a, const void *b) {
  uint64_t x = ((const place *)a)->id, y = ((const place *)b)->id;
  return (x > y) - (x < y);
}

static pl_status sort_places(const pl_states *s, place **out, pl_err *e) {
  pl_status st = pl_alloc(s->count, sizeof **out, "the list of runs", out, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < s->count; i++) (*out)[i] = (place){.id = s->list.ids[i], .index = i};
  qsort(*out, s->count, sizeof **out, compare_places);
  return PL_OK;
}

static const place *find_place(const place *places, size_t count, uint64_t id) {
  const place key = {.id = id};
  return count > 0 ? bsearch(&key, places, count, sizeof key, compare_places) : NULL;
}

/* The names of DIR/state/<state>/ are ids. */
static void read_markers(pl_states *s, const place *places, pl_run_state state) {
  char folder[4096];
  int length = snprintf(folder, sizeof folder, "%s/state/%s", s->dir, pl_run_state_name(state));
  DIR *entries = length > 0 && (size_t)length < sizeof folder ? opendir(folder) : NULL;
  for (struct dirent *d = entries ? readdir(entries) : NULL; d; d = readdir(entries)) {
    char *end;
    uint64_t id = strtoull(d->d_name, &end, 16);
    const place *found = end == d->d_name + PL_ID_LENGTH && *end == '\0' ? find_place(places, s->count, id) : NULL;
    if (found) s->runs[found->index].marked = state;
  }
  if (entries) closedir(entries);
}

/* Markers move while they are read: from anywhere to running, from running to an end. Read in this order a moving one
 * is met at least once, and what is final is met last. */
static pl_status read_kept(pl_states *s, pl_err *e) {
  static const pl_run_state order[] = {PL_RUN_PENDING, PL_RUN_RUNNING,   PL_RUN_LOST,     PL_RUN_STOPPED, PL_RUN_FAILED,
                                       PL_RUN_RUNNING, PL_RUN_CANCELLED, PL_RUN_DIVERGED, PL_RUN_DONE};
  place *places;
  pl_status st = sort_places(s, &places, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) read_markers(s, places, order[i]);
  for (size_t i = 0; i < s->count; i++) s->runs[i].kept = s->runs[i].marked;
  pl_free(places);
  return PL_OK;
}

static pl_status read_name(pl_states *s, pl_err *e) {
  pl_json *newest;
  int next;
  pl_status st = pl_sweep_dir_newest(s->dir, &newest, &next, e);
  if (st != PL_OK) return st;
  if (newest)
    st = pl_strdup(pl_json_get_string(newest, "name", ""), &s->name, e);
  else
    st = pl_fail(e, PL_BAD, "%s: is no result directory of pipelag (it has no sweep.json)", s->dir);
  pl_json_release(newest);
  return st;
}

static pl_status read_list(pl_states *s, pl_err *e) {
  pl_status st = PL_OK;
  bool *current = NULL;
  PL_TRY(pl_runs_list_read(s->dir, &s->list, e));
  PL_TRY(pl_alloc(s->list.count, sizeof *s->runs, "the list of runs", &s->runs, e));
  PL_TRY(pl_alloc(s->list.count, sizeof *current, "the list of runs", &current, e));
  PL_TRY(pl_current_read(s->dir, s->list.count, current, e));
  s->count = s->list.count;
  for (size_t i = 0; i < s->count; i++)
    s->runs[i] = (pl_shown_run){.index = i,
                                .id = s->list.ids[i],
                                .label = s->list.labels[i],
                                .current = current[i],
                                .marked = PL_RUN_PENDING,
                                .task = -1};
out:
  pl_free(current);
  return st;
}

static bool is_final(const pl_shown_run *r) { return r->kept == PL_RUN_DONE || r->kept == PL_RUN_DIVERGED; }

/* Asks about the submissions that have a run without a final result, and about no others. */
static pl_status ask(pl_states *s, pl_err *e) {
  pl_status st = PL_OK;
  pl_submissions open = {0};
  pl_err refused = {0};
  PL_TRY(pl_alloc(s->submissions.count, sizeof *open.items, "the submissions", &open.items, e));
  for (size_t i = 0; i < s->submissions.count; i++) {
    const pl_submission *sub = &s->submissions.items[i];
    bool wanted = false;
    for (size_t k = 0; k < sub->count && !wanted && sub->sent != PL_SENT_REFUSED; k++)
      wanted = sub->rows[k].index < s->count && !is_final(&s->runs[sub->rows[k].index]);
    if (wanted) open.items[open.count++] = *sub;
  }
  if (open.count > 0) s->asked = pl_queue_read(&open, &s->queue, &refused) == PL_OK;
  snprintf(s->note, sizeof s->note, "%s", refused.text);
out:
  pl_free(open.items);
  return st;
}

static bool is_live(const pl_queue_task *t) { return t != NULL && pl_queue_kind_of(t->state) != PL_QUEUE_ENDED; }

static bool is_listed(const pl_states *s, const pl_submission *sub) {
  for (size_t i = 0; i < s->queue.count; i++)
    if (strcmp(s->queue.tasks[i].name, sub->token) == 0) return true;
  return false;
}

/* A task that sbatch has accepted is in the queue at once; a submission without an answer may still be on its way. */
static bool is_young(const pl_submission *sub) {
  return pl_submission_age(sub) < (sub->sent == PL_SENT_YES ? GRACE_SECONDS : ANSWER_SECONDS);
}

/* A newer submission speaks for its runs, unless the older one still has a live task. */
static void match(pl_states *s, const pl_submission *sub) {
  for (size_t k = 0; k < sub->count; k++) {
    const pl_submission_row *row = &sub->rows[k];
    if (row->index >= s->count || s->runs[row->index].id != row->id) continue;
    pl_shown_run *r = &s->runs[row->index];
    if (r->submission != NULL && is_live(r->queued)) continue;
    r->submission = sub;
    r->task = row->task;
    r->queued = pl_queue_find(&s->queue, sub->token, row->task);
  }
}

/* Rows of one task lie together. */
static bool is_packed(const pl_submission *sub) {
  for (size_t k = 1; k < sub->count; k++)
    if (sub->rows[k].task == sub->rows[k - 1].task) return true;
  return false;
}

/* What holds for all runs of a submission. */
typedef struct about {
  bool packed, listed, young;
} about;

bool pl_run_owner(const char *dir, uint64_t id, pl_owner *out) {
  char *path, line[PL_CLAIM_LINE];
  if (pl_run_path(dir, id, "claim", &path, NULL) != PL_OK) return false;
  bool read = pl_claim_look(path) != PL_CLAIM_NONE && pl_claim_read(path, line) && pl_owner_parse(line, out);
  pl_free(path);
  return read;
}

bool pl_owner_is_here(const pl_owner *o) {
  const pl_owner self = pl_owner_self();
  return strcmp(o->host, self.host) == 0 && strcmp(o->boot, self.boot) == 0 && strcmp(o->space, self.space) == 0 &&
         !pl_owner_is_gone(o);
}

/* A claim that cannot be checked from here, of a job that Slurm does not run any more. */
static bool is_left_behind(const pl_states *s, const pl_shown_run *r) {
  pl_owner o;
  if (!s->asked || r->submission == NULL || !pl_run_owner(s->dir, r->id, &o)) return false;
  return strcmp(o.job, "-") != 0 && !pl_owner_is_here(&o);
}

/* The folder is looked into where its marker cannot be the last word: its process may be gone, or it never had one. */
static void look_closer(pl_states *s, pl_shown_run *r) {
  bool live = is_live(r->queued), begun = r->kept == PL_RUN_RUNNING, ended = r->queued != NULL && !live;
  bool task_runs = live && pl_queue_kind_of(r->queued->state) == PL_QUEUE_RUNNING;
  if (!(begun && !task_runs) && !(r->kept == PL_RUN_PENDING && ended)) return;
  r->kept = pl_run_state_of(s->dir, r->id);
  if (r->kept == PL_RUN_RUNNING && is_left_behind(s, r))
    r->kept = pl_run_is_cancelled(s->dir, r->id) ? PL_RUN_CANCELLED : PL_RUN_LOST;
}

/* What slurmstepd and srun say; without accounting of its own Slurm calls the job just failed. */
static bool says_memory(const pl_states *s, const pl_shown_run *r) {
  static const char *const words[] = {"oom-kill event", "Out Of Memory", "exceeded memory limit"};
  char *path, tail[TAIL_BYTES + 1];
  if (pl_task_output_path(s->dir, r->submission, r->task, &path, NULL) != PL_OK) return false;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  pl_free(path);
  if (fd < 0) return false;
  off_t end = lseek(fd, 0, SEEK_END);
  ssize_t got = pread(fd, tail, TAIL_BYTES, end > TAIL_BYTES ? end - TAIL_BYTES : 0);
  close(fd);
  tail[got > 0 ? got : 0] = '\0';
  bool found = false;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) found = found || strstr(tail, words[i]) != NULL;
  return found;
}

static void judge(pl_states *s, pl_shown_run *r, const about *abouts) {
  pl_sight sight = {.asked = s->asked};
  if (!is_final(r)) look_closer(s, r);
  if (r->submission != NULL) {
    const about *a = &abouts[r->submission - s->submissions.items];
    sight.packed = a->packed;
    sight.siblings = a->listed;
    sight.young = a->young;
    sight.submitted = r->submission->sent == PL_SENT_YES || a->listed || a->young;
  }
  sight.kept = r->kept;
  if (r->queued != NULL) {
    sight.word = r->queued->state;
    sight.signalled = r->queued->exit_signal != 0;
    sight.memory = !is_final(r) && strcmp(r->queued->state, "FAILED") == 0 && says_memory(s, r);
  }
  r->verdict = pl_state_merge(&sight);
}

static pl_status judge_all(pl_states *s, pl_err *e) {
  about *abouts;
  pl_status st = pl_alloc(s->submissions.count, sizeof *abouts, "the submissions", &abouts, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < s->submissions.count; i++) {
    const pl_submission *sub = &s->submissions.items[i];
    if (sub->sent == PL_SENT_REFUSED) continue;
    match(s, sub);
    abouts[i] = (about){.packed = is_packed(sub), .listed = is_listed(s, sub), .young = is_young(sub)};
  }
  for (size_t i = 0; i < s->count; i++) judge(s, &s->runs[i], abouts);
  pl_free(abouts);
  return PL_OK;
}

pl_status pl_states_read(const char *dir, pl_states *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_states){0};
  PL_TRY(pl_strdup(dir, &out->dir, e));
  PL_TRY(read_name(out, e));
  PL_TRY(read_list(out, e));
  PL_TRY(read_kept(out, e));
  PL_TRY(pl_submissions_read(dir, &out->submissions, e));
  PL_TRY(ask(out, e));
  PL_TRY(judge_all(out, e));
out:
  if (st != PL_OK) pl_states_free(out);
  return st;
}

void pl_states_free(pl_states *s) {
  pl_queue_free(&s->queue);
  pl_submissions_free(&s->submissions);
  pl_free(s->runs);
  pl_runs_list_free(&s->list);
  pl_free(s->name);
  pl_free(s->dir);
  *s = (pl_states){0};
}

pl_status pl_task_output_path(const char *dir, const pl_submission *s, int64_t task, char **out, pl_err *e) {
  char name[64];
  snprintf(name, sizeof name, "submissions/%" PRId64 ".%" PRId64 ".txt", s->number, task);
  return pl_path_join(dir, name, out, e);
}

static size_t count_matches(const pl_states *s, const char *text, bool by_index, size_t *found) {
  int64_t index = -1;
  size_t matches = 0;
  if (by_index && !pl_parse_int(text, &index)) return 0;
  for (size_t i = 0; i < s->count; i++) {
    char id[PL_ID_SIZE];
    pl_hash_hex(s->runs[i].id, id);
    if (by_index ? s->runs[i].index != (uint64_t)index : strncmp(id, text, strlen(text)) != 0) continue;
    *found = i;
    matches++;
  }
  return matches;
}

pl_status pl_states_find(const pl_states *s, const char *text, size_t *index, pl_err *e) {
  size_t matches = count_matches(s, text, true, index);
  if (matches == 0) matches = count_matches(s, text, false, index);
  if (matches == 1) return PL_OK;
  return pl_fail(
      e, PL_NOTHING,
      "%s: run \"%.100s\" matches %zu runs; allowed: an index of `status --runs`, or the beginning of one id", s->dir,
      text, matches);
}

pl_status pl_states_find_only(const pl_states *s, const char *what,
                              pl_status (*has)(const pl_states *s, size_t index, bool *out, pl_err *e), size_t *index,
                              pl_err *e) {
  size_t found = 0;
  for (size_t i = 0; i < s->count; i++) {
    bool it_has = false;
    pl_status st = has(s, i, &it_has, e);
    if (st != PL_OK) return st;
    if (it_has && found++ == 0) *index = i;
  }
  if (found == 0) return PL_NOTHING;
  if (found == 1) return PL_OK;
  return pl_fail(e, PL_BAD, "%s: %zu runs have %s; allowed: to name one, e.g. %zu", s->dir, found, what, *index);
}
