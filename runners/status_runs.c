#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "results/imported.h"
#include "results/journal.h"
#include "runners/status_text.h"

/* What the folder of a run tells. */
typedef struct detail {
  int64_t step, steps, attempt; /* -1, -1, 0 when not known */
  double loss;
  char where[160], reason[PL_ERR_TEXT];
} detail;

static void read_journal(const pl_states *s, const pl_shown_run *r, detail *d) {
  char *path;
  pl_curve_row last;
  if (pl_run_path(s->dir, r->id, "journal", &path, NULL) != PL_OK) return;
  d->attempt = pl_journal_last_attempt(path);
  if (pl_journal_last_point(path, &last)) {
    d->step = last.point.step;
    d->loss = last.point.values[PL_SERIES_train_loss];
  }
  pl_free(path);
}

static void read_steps(const pl_states *s, const pl_shown_run *r, detail *d) {
  char *path;
  pl_json *config = NULL;
  if (pl_run_path(s->dir, r->id, "config.json", &path, NULL) != PL_OK) return;
  if (pl_json_read(path, &config, NULL) == PL_OK)
    d->steps = pl_json_get_int(pl_json_get(config, "train"), "steps",
                               pl_json_get_int(pl_json_get(config, PL_IMPORTED_KEY), "steps", -1));
  pl_json_release(config);
  pl_free(path);
}

static void find_place(const pl_states *s, const pl_shown_run *r, detail *d) {
  pl_str holder = {0};
  if (r->queued != NULL && r->queued->task >= 0)
    snprintf(d->where, sizeof d->where, "%s_%" PRId64 "%s%s", r->queued->job, r->queued->task,
             r->queued->node[0] != '\0' ? " on " : "", r->queued->node);
  else if (r->submission != NULL && r->submission->job[0] != '\0' && r->verdict.shown != PL_SHOWN_DONE)
    snprintf(d->where, sizeof d->where, "%s_%" PRId64, r->submission->job, r->task);
  else if (r->verdict.shown == PL_SHOWN_RUNNING) {
    pl_run_claimed_by(s->dir, r->id, &holder);
    snprintf(d->where, sizeof d->where, "%s", pl_str_text(&holder));
    pl_str_free(&holder);
  }
}

static void find_reason(const pl_states *s, const pl_shown_run *r, detail *d) {
  pl_result result;
  bool told = r->kept == PL_RUN_FAILED || r->kept == PL_RUN_DIVERGED || r->kept == PL_RUN_STOPPED;
  const pl_queue_task *t = r->queued;
  bool queue = t != NULL && r->verdict.shown != PL_SHOWN_DONE && r->verdict.shown != PL_SHOWN_DIVERGED;
  if (queue)
    snprintf(d->reason, sizeof d->reason, "%s%s%s", t->state, strcmp(t->reason, "None") == 0 ? "" : " ",
             strcmp(t->reason, "None") == 0 ? "" : t->reason);
  if (r->verdict.why[0] != '\0') snprintf(d->reason, sizeof d->reason, "%s", r->verdict.why);
  if (!told || pl_run_read_result(s->dir, r->id, &result, NULL) != PL_OK) return;
  const char *text = result.error[0] != '\0' ? result.error : result.outcome.reason;
  if (text[0] != '\0') snprintf(d->reason, sizeof d->reason, "%s", text);
}

static detail read_detail(const pl_states *s, const pl_shown_run *r) {
  detail d = {.step = -1, .steps = -1, .loss = (double)NAN};
  read_steps(s, r, &d);
  read_journal(s, r, &d);
  find_place(s, r, &d);
  find_reason(s, r, &d);
  return d;
}

static void print_run(const pl_states *s, const pl_shown_run *r, pl_str *out) {
  const detail d = read_detail(s, r);
  char steps[48] = "-", loss[32] = "-";
  if (d.step >= 0) snprintf(steps, sizeof steps, "%" PRId64 "/%" PRId64, d.step, d.steps);
  if (d.step >= 0 && !isnan(d.loss)) snprintf(loss, sizeof loss, "%.4f", d.loss);
  pl_str_printf(out, "%6" PRIu64 "  %016" PRIx64 "  %-9s  %13s  %8s  %3" PRId64 "  %s%s%s%s\n", r->index, r->id,
                pl_verdict_name(&r->verdict), steps, loss, d.attempt, r->label, d.where[0] != '\0' ? "  [" : "",
                d.where, d.where[0] != '\0' ? "]" : "");
  bool open = r->verdict.shown == PL_SHOWN_STOPPED || r->verdict.shown == PL_SHOWN_CANCELLED ||
              r->verdict.shown == PL_SHOWN_FAILED || r->verdict.shown == PL_SHOWN_LOST;
  if (d.reason[0] != '\0') pl_str_printf(out, "        %s\n", d.reason);
  if (open) pl_str_printf(out, "        retry %s\n", pl_retry_text(r));
}

void pl_status_runs(const pl_states *s, bool all, pl_str *out) {
  pl_str_printf(out, "%6s  %-16s  %-9s  %13s  %8s  %3s  %s\n", "index", "id", "state", "step", "loss", "att", "run");
  for (size_t i = 0; i < s->count; i++)
    if (s->runs[i].current || all) print_run(s, &s->runs[i], out);
}

static pl_json *text_or_null(const char *text) {
  return text != NULL && text[0] != '\0' ? pl_json_new_string(text) : pl_json_new_null();
}

static pl_json *run_json(const pl_states *s, const pl_shown_run *r) {
  const detail d = read_detail(s, r);
  char id[PL_ID_SIZE];
  pl_hash_hex(r->id, id);
  bool named = strcmp(pl_verdict_name(&r->verdict), pl_shown_name(r->verdict.shown)) != 0;
  pl_json *o = pl_json_new_object();
  bool ok = pl_json_set(o, "index", pl_json_new_int((int64_t)r->index)) &&
            pl_json_set(o, "id", pl_json_new_string(id)) && pl_json_set(o, "label", pl_json_new_string(r->label)) &&
            pl_json_set(o, "state", pl_json_new_string(pl_shown_name(r->verdict.shown))) &&
            pl_json_set(o, "end", text_or_null(named ? pl_verdict_name(&r->verdict) : "")) &&
            pl_json_set(o, "slurm", text_or_null(r->queued != NULL ? r->queued->state : "")) &&
            pl_json_set(o, "step", pl_json_new_int(d.step)) && pl_json_set(o, "steps", pl_json_new_int(d.steps)) &&
            pl_json_set(o, "train_loss", pl_json_new_number(d.loss)) &&
            pl_json_set(o, "attempt", pl_json_new_int(d.attempt)) && pl_json_set(o, "where", text_or_null(d.where)) &&
            pl_json_set(o, "reason", text_or_null(d.reason)) &&
            pl_json_set(o, "retry", pl_json_new_string(pl_retry_text(r)));
  return pl_json_keep(o, ok);
}

static bool add_counts(pl_json *o, const pl_status_counts *c) {
  pl_json *ends = pl_json_new_object(), *queue = pl_json_new_array();
  bool ok = true;
  for (pl_shown shown = 0; shown < PL_SHOWN_STATES; shown++) {
    ok = ok && pl_json_set(o, pl_shown_name(shown), pl_json_new_int((int64_t)c->shown[shown]));
    for (pl_attempt_end end = 0; end < PL_ATTEMPT_ENDS; end++) {
      const pl_verdict v = {.shown = shown, .end = end, .why = ""};
      const char *name = pl_verdict_name(&v);
      if (c->ends[shown][end] == 0 || strcmp(name, pl_shown_name(shown)) == 0) continue;
      int64_t before = pl_json_get_int(ends, name, 0);
      ok = ok && pl_json_set(ends, name, pl_json_new_int(before + (int64_t)c->ends[shown][end]));
    }
  }
  for (size_t i = 0; i < c->reason_count; i++) {
    pl_json *item = pl_json_new_object();
    bool whole = pl_json_set(item, "state", pl_json_new_string(pl_shown_name(c->reasons[i].shown))) &&
                 pl_json_set(item, "reason", pl_json_new_string(c->reasons[i].text)) &&
                 pl_json_set(item, "runs", pl_json_new_int((int64_t)c->reasons[i].runs));
    ok = pl_json_append(queue, pl_json_keep(item, whole)) && ok;
  }
  ok = pl_json_set(o, "ends", ends) && ok;
  return pl_json_set(o, "queue", queue) && ok;
}

pl_json *pl_status_json(const pl_states *s, const pl_status_counts *c, bool all, bool runs) {
  pl_json *o = pl_json_new_object(), *list = runs ? pl_json_new_array() : NULL;
  bool ok = pl_json_set(o, "name", pl_json_new_string(s->name)) &&
            pl_json_set(o, "runs", pl_json_new_int((int64_t)c->runs)) && add_counts(o, c) &&
            pl_json_set(o, "seconds_left",
                        isfinite(c->seconds_left) ? pl_json_new_number(c->seconds_left) : pl_json_new_null()) &&
            pl_json_set(o, "note", text_or_null(s->note));
  for (size_t i = 0; runs && i < s->count; i++)
    if (s->runs[i].current || all) ok = pl_json_append(list, run_json(s, &s->runs[i])) && ok;
  if (runs) ok = pl_json_set(o, "list", list) && ok;
  return pl_json_keep(o, ok);
}
