#include "runners/launchers/slurm/submit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/claim.h"
#include "runners/launchers/slurm/submit_parts.h"
#include "runners/program.h"

#define PROGRAM_LIMIT ((size_t)1 << 30)

/* Paths go into JSON files, which hold UTF-8. */
static pl_status check_path(const char *what, const char *path, pl_err *e) {
  pl_json *text = pl_json_new_string(path);
  bool same = text != NULL && strcmp(pl_json_string(text), path) == 0;
  pl_json_release(text);
  if (same) return PL_OK;
  return pl_fail(e, PL_BAD, "%s: its path \"%s\" is no UTF-8 text; allowed: paths in UTF-8", what, path);
}

/* A folder that is not there yet gets the path that it will have. */
static pl_status absolute(const char *path, char **out, pl_err *e) {
  char *real = realpath(path, NULL), here[4096];
  pl_status st;
  if (real != NULL)
    st = pl_strdup(real, out, e);
  else if (getcwd(here, sizeof here) == NULL)
    st = pl_fail(e, PL_BAD, "the working folder has no path: %s", strerror(errno));
  else
    st = pl_path_join(here, path, out, e);
  free(real);
  return st;
}

static pl_status find_program(pl_submitting *s, pl_err *e) {
  char *real = realpath("/proc/self/exe", NULL);
  if (real == NULL)
    return pl_fail(e, PL_BAD, "the file of this program is gone (%s); start pipelag again", strerror(errno));
  pl_status st = pl_strdup(real, &s->program, e);
  free(real);
  if (st == PL_OK) st = pl_program_hash(s->binary_hash, e);
  s->libraries = pl_program_libraries();
  return st;
}

/* The tasks start a copy of this program, so that a rebuild in between changes nothing. */
static pl_status take_snapshot(pl_submitting *s, pl_err *e) {
  pl_status st = PL_OK;
  pl_str path = {0};
  char *folder = NULL, *bytes = NULL;
  size_t length;
  pl_str_printf(&path, "%s/submissions/bin/%s/pipelag", s->dir, s->binary_hash);
  PL_TRY(pl_str_check(&path, e));
  if (!s->args->dry_run && access(path.text, X_OK) != 0) {
    PL_TRY(pl_path_folder(path.text, &folder, e));
    PL_TRY(pl_make_folders(folder, e));
    PL_TRY(pl_file_read("/proc/self/exe", PROGRAM_LIMIT, &bytes, &length, e));
    PL_TRY(pl_file_replace(path.text, bytes, length, e));
    if (chmod(path.text, 0755) != 0)
      PL_TRY(pl_fail(e, PL_FAIL, "%s: cannot be made executable: %s", path.text, strerror(errno)));
  }
  pl_free(s->program);
  s->program = NULL;
  st = pl_strdup(path.text, &s->program, e);
out:
  pl_free(bytes);
  pl_free(folder);
  pl_str_free(&path);
  return st;
}

static pl_status find_paths(pl_submitting *s, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(absolute(s->plan->dir, &s->dir, e));
  PL_TRY(absolute(s->plan->data_root, &s->data_root, e));
  PL_TRY(find_program(s, e));
  PL_TRY(check_path("the result directory", s->dir, e));
  PL_TRY(check_path("the folder of the data", s->data_root, e));
  PL_TRY(check_path("pipelag", s->program, e));
out:
  return st;
}

/* Of each thing that runs ask for, once. */
static pl_status check_configs(const pl_submitting *s, pl_err *e) {
  const pl_slurm_config *last = NULL;
  for (size_t i = 0; i < s->plan->count; i++) {
    if (s->plan->jobs[i].slurm == last) continue;
    last = s->plan->jobs[i].slurm;
    pl_status st = pl_slurm_limits_check(&s->limits, last, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

/* Without writing: an index is the place in the plan where the run has none yet. */
static void look_at_states(pl_plan *p) {
  for (size_t i = 0; i < p->count; i++) {
    p->jobs[i].index = i;
    p->jobs[i].state = pl_run_state_of(p->dir, p->jobs[i].id);
    p->states[p->jobs[i].state]++;
  }
}

static pl_status freeze(pl_submitting *s, pl_err *e) {
  if (s->args->frozen) return PL_OK;
  if (!s->args->dry_run) return pl_plan_freeze(s->plan, e);
  look_at_states(s->plan);
  return PL_OK;
}

/* Two at once would submit every run twice. */
static pl_status take_lock(const pl_submitting *s, char **lock, pl_err *e) {
  pl_status st = PL_OK;
  pl_str who = {0};
  char *folder = NULL;
  bool taken = false;
  if (s->args->dry_run) return PL_OK;
  PL_TRY(pl_path_join(s->dir, "submissions", &folder, e));
  PL_TRY(pl_make_folders(folder, e));
  PL_TRY(pl_path_join(folder, "lock", lock, e));
  PL_TRY(pl_claim_take(*lock, &taken, e));
  if (!taken) {
    pl_claim_describe(*lock, &who);
    st = pl_fail(e, PL_BAD,
                 "%s: runs of this directory are just being submitted by %s; delete %s if that process is gone",
                 s->plan->dir, pl_str_text(&who), *lock);
    pl_free(*lock);
    *lock = NULL;
  }
out:
  pl_str_free(&who);
  pl_free(folder);
  return st;
}

static void say_counts(const pl_submitting *s) {
  const pl_plan *p = s->plan;
  if (s->args->quiet) return;
  printf("%zu already finished, %zu in the queue, %zu to submit\n", p->states[PL_RUN_DONE] + p->states[PL_RUN_DIVERGED],
         s->result->queued, s->order_count);
  fflush(stdout);
}

/* Shares of a limit cannot be worked out beside an array of which nobody knows whether it is there. */
static void wait_for_unknown(pl_submitting *s) {
  if (s->result->unknown == 0 || s->piece_count == 0 || s->pieces[0].config->max_running == 0) return;
  for (size_t i = 0; i < s->piece_count; i++) s->result->left += s->pieces[i].count;
  s->piece_count = 0;
}

static pl_status send_all(pl_submitting *s, pl_err *e) {
  for (size_t i = 0; i < s->piece_count; i++) {
    pl_status st = s->args->dry_run ? pl_submit_show(s, i, e) : pl_submit_send(s, i, e);
    if (st == PL_OK) continue;
    pl_submit_close_unsent(s);
    for (size_t k = i; k < s->piece_count; k++) s->result->left += s->pieces[k].count;
    if (s->result->sent == 0) return st;
    pl_err_prefix(e, "%zu runs were submitted, %zu were not", s->result->sent, s->result->left);
    return PL_FAIL;
  }
  return PL_OK;
}

static void say_result(const pl_submitting *s) {
  if (s->args->dry_run || s->args->quiet) return;
  if (s->result->sent > 0) printf("%zu runs submitted in %zu arrays\n", s->result->sent, s->result->arrays);
  printf("results: %s\n", s->plan->dir);
}

static void free_all(pl_submitting *s) {
  pl_free(s->after);
  pl_free(s->arrays);
  pl_free(s->live);
  pl_free(s->pieces);
  pl_free(s->reopened);
  pl_free(s->order);
  pl_queue_free(&s->queue);
  pl_submissions_free(&s->submissions);
  pl_slurm_limits_free(&s->limits);
  pl_json_release(s->libraries);
  pl_free(s->program);
  pl_free(s->data_root);
  pl_free(s->dir);
}

pl_status pl_submit(const pl_submit_args *args, pl_submit_result *out, pl_err *e) {
  pl_submitting s = {.args = args, .result = out, .plan = args->plan};
  pl_status st = PL_OK;
  char *lock = NULL;
  *out = (pl_submit_result){0};
  PL_TRY(pl_slurm_limits_read(&s.limits, e));
  PL_TRY(check_configs(&s, e));
  PL_TRY(freeze(&s, e));
  PL_TRY(find_paths(&s, e));
  PL_TRY(take_lock(&s, &lock, e));
  PL_TRY(pl_submit_settle(&s, e));
  PL_TRY(pl_submit_choose(&s, e));
  say_counts(&s);
  PL_TRY(pl_submit_cut(&s, e));
  wait_for_unknown(&s);
  PL_TRY(pl_submit_throttle(&s, e));
  if (s.piece_count > 0 && s.pieces[0].config->snapshot) PL_TRY(take_snapshot(&s, e));
  PL_TRY(pl_submit_reopen(&s, e));
  PL_TRY(send_all(&s, e));
  say_result(&s);
  if (out->left > 0 || out->unknown > 0) st = PL_FAIL;
out:
  if (lock != NULL) pl_claim_release(lock);
  pl_free(lock);
  free_all(&s);
  return st;
}
