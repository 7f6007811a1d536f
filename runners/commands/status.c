/* pipelag status DIR: what the runs are doing; changes nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "runners/command.h"
#include "runners/say.h"
#include "runners/signals.h"
#include "runners/status_text.h"
#include "runners/status_watch.h"

/* Slurm asks its users not to ask it often. */
enum { WATCH_SECONDS = 2, WATCH_SLURM_SECONDS = 10 };

/* What a watcher wants to know of one look. */
typedef struct glance {
  bool moving;  /* something runs or is queued */
  bool waiting; /* something is neither begun nor submitted */
  bool slurm;   /* Slurm was asked, or would have been */
} glance;

static void append_text(const pl_options *o, const pl_states *s, const pl_status_counts *c, pl_str *out) {
  bool list = o->runs || o->verbose > 0;
  if (!o->json) {
    pl_status_print(s, c, out);
    if (list) pl_status_runs(s, o->all, out);
    return;
  }
  pl_json *json = pl_status_json(s, c, o->all, list);
  out->failed |= json == NULL;
  pl_json_write_canonical(json, out);
  pl_str_append(out, "\n");
  pl_json_release(json);
}

/* A marker that says running is no promise that the process still lives. */
static size_t verify(const pl_states *s) {
  size_t wrong = 0;
  for (size_t i = 0; i < s->count; i++) {
    const pl_shown_run *r = &s->runs[i];
    pl_run_state found = pl_run_state_of(s->dir, r->id);
    if (found == r->marked || (found == PL_RUN_LOST && r->marked == PL_RUN_RUNNING)) continue;
    fprintf(stderr, "pipelag: run %" PRIu64 " %016" PRIx64 ": its marker says %s, its folder says %s\n", r->index,
            r->id, pl_run_state_name(r->marked), pl_run_state_name(found));
    wrong++;
  }
  return wrong;
}

static pl_status look(const pl_options *o, pl_watch *watch, glance *out, pl_err *e) {
  pl_states s;
  pl_status_counts c;
  pl_str text = {0};
  pl_status st = pl_states_read(o->args[0], &s, e);
  if (st != PL_OK) return st;
  pl_status_count(&s, o->all, &c);
  append_text(o, &s, &c, &text);
  st = o->watch ? pl_watch_show(watch, &text, !o->json, e) : pl_print(&text, e);
  size_t wrong = o->verify && st == PL_OK ? verify(&s) : 0;
  if (wrong > 0) st = pl_fail(e, PL_FAIL, "%s: %zu state markers differ from the run folders", o->args[0], wrong);
  *out = (glance){.moving = c.shown[PL_SHOWN_RUNNING] + c.shown[PL_SHOWN_QUEUED] > 0,
                  .waiting = c.shown[PL_SHOWN_PENDING] > 0,
                  .slurm = s.asked || s.note[0] != '\0'};
  if (st == PL_OK && c.shown[PL_SHOWN_FAILED] + c.shown[PL_SHOWN_LOST] > 0) st = PL_FAIL;
  pl_states_free(&s);
  return st;
}

/* Until nothing moves, or a signal. Between two runs of one process there is a moment in which nothing does, so while
 * some wait it takes two looks in a row. */
static pl_status run(const pl_options *o, pl_err *e) {
  const volatile sig_atomic_t *stop = pl_signals_stop();
  pl_watch watch = {.screen = o->watch && !o->json && isatty(STDOUT_FILENO) == 1};
  pl_status st = PL_OK;
  if (o->watch) pl_signals_install(false);
  for (int still = 0;;) {
    glance seen = {0};
    st = look(o, &watch, &seen, e);
    still = seen.moving ? 0 : still + 1;
    if (!o->watch || e->text[0] != '\0' || still > (seen.waiting ? 1 : 0) || *stop != 0) break;
    nanosleep(&(struct timespec){.tv_sec = seen.slurm ? WATCH_SLURM_SECONDS : WATCH_SECONDS}, NULL);
    if (*stop != 0) break;
  }
  pl_watch_free(&watch);
  return st;
}

const pl_command pl_command_status = {
    .name = "status",
    .arguments = "DIR",
    .summary = "Show what the runs of a result directory are doing; --runs (or -v) lists them",
    .options = "JvAWRc",
    .min_args = 1,
    .max_args = 1,
    .run = run};
