#include "runners/status_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runners/progress.h"

enum { SAMPLES = 16, BAR_WIDTH = 24 };

/* The order of the groups: what is finished, what goes on, what needs somebody. */
static const pl_shown order[PL_SHOWN_STATES] = {PL_SHOWN_DONE,      PL_SHOWN_DIVERGED, PL_SHOWN_RUNNING,
                                                PL_SHOWN_QUEUED,    PL_SHOWN_PENDING,  PL_SHOWN_STOPPED,
                                                PL_SHOWN_CANCELLED, PL_SHOWN_FAILED,   PL_SHOWN_LOST};

static bool is_counted(const pl_shown_run *r, bool all) { return r->current || all; }

static void count_reason(pl_status_counts *c, const pl_shown_run *r) {
  char text[PL_STATUS_REASON];
  const pl_queue_task *t = r->queued;
  if (r->verdict.shown != PL_SHOWN_QUEUED && r->verdict.shown != PL_SHOWN_RUNNING) return;
  if (t == NULL && r->verdict.why[0] == '\0') return;
  bool plain = t != NULL && (t->reason[0] == '\0' || strcmp(t->reason, "None") == 0);
  if (t == NULL)
    snprintf(text, sizeof text, "%s", r->verdict.why);
  else
    snprintf(text, sizeof text, "%s%s%s", t->state, plain ? "" : " ", plain ? "" : t->reason);
  size_t at = 0;
  while (at < c->reason_count && (c->reasons[at].shown != r->verdict.shown || strcmp(c->reasons[at].text, text) != 0))
    at++;
  if (at == PL_STATUS_REASONS) {
    c->more_reasons = true;
    return;
  }
  if (at == c->reason_count) {
    c->reason_count++;
    c->reasons[at].shown = r->verdict.shown;
    memcpy(c->reasons[at].text, text, sizeof text);
  }
  c->reasons[at].runs++;
}

/* Mean time of a few finished runs, times what is left, over the runs that are running. */
static double estimate(const pl_states *s, const pl_status_counts *c) {
  size_t finished = c->shown[PL_SHOWN_DONE], running = c->shown[PL_SHOWN_RUNNING], seen = 0, used = 0;
  size_t stride = finished / SAMPLES + 1;
  double sum = 0;
  if (finished == 0 || running == 0) return (double)NAN;
  for (size_t i = 0; i < s->count; i++) {
    pl_result result;
    if (s->runs[i].verdict.shown != PL_SHOWN_DONE || seen++ % stride != 0) continue;
    if (pl_run_read_result(s->dir, s->runs[i].id, &result, NULL) != PL_OK) continue;
    if (!isfinite(result.outcome.seconds)) continue;
    sum += result.outcome.seconds;
    used++;
  }
  if (used == 0) return (double)NAN;
  double left = (double)(c->shown[PL_SHOWN_QUEUED] + c->shown[PL_SHOWN_PENDING]) + 0.5 * (double)running;
  return sum / (double)used * left / (double)running;
}

void pl_status_count(const pl_states *s, bool all, pl_status_counts *out) {
  *out = (pl_status_counts){0};
  for (size_t i = 0; i < s->count; i++) {
    const pl_shown_run *r = &s->runs[i];
    if (!is_counted(r, all)) continue;
    out->runs++;
    out->shown[r->verdict.shown]++;
    out->ends[r->verdict.shown][r->verdict.end]++;
    count_reason(out, r);
  }
  out->seconds_left = estimate(s, out);
}

static void print_bar(const pl_status_counts *c, pl_str *out) {
  double share = c->runs > 0 ? (double)(c->shown[PL_SHOWN_DONE] + c->shown[PL_SHOWN_DIVERGED]) / (double)c->runs : 0;
  int filled = (int)(share * BAR_WIDTH + 0.5);
  pl_str_append(out, "[");
  for (int i = 0; i < BAR_WIDTH; i++) pl_str_append(out, i < filled ? "#" : "-");
  pl_str_printf(out, "] %3.0f%%", floor(100 * share));
}

static void print_reasons(const pl_status_counts *c, pl_shown shown, pl_str *out) {
  const char *between = "";
  for (size_t i = 0; i < c->reason_count; i++) {
    if (c->reasons[i].shown != shown) continue;
    pl_str_printf(out, "%s%s %zu", between, c->reasons[i].text, c->reasons[i].runs);
    between = ", ";
  }
  if (between[0] != '\0' && c->more_reasons) pl_str_append(out, ", ...");
}

/* Any run of the group stands for all. */
static const char *retry_of(const pl_states *s, pl_shown shown, pl_attempt_end end) {
  for (size_t i = 0; i < s->count; i++)
    if (s->runs[i].verdict.shown == shown && s->runs[i].verdict.end == end) return pl_retry_text(&s->runs[i]);
  return "";
}

static void print_group(const pl_states *s, const pl_status_counts *c, pl_shown shown, pl_attempt_end end,
                        pl_str *out) {
  const pl_verdict v = {.shown = shown, .end = end, .why = ""};
  pl_str words = {0};
  print_reasons(c, shown, &words);
  bool open =
      shown != PL_SHOWN_DONE && shown != PL_SHOWN_DIVERGED && shown != PL_SHOWN_RUNNING && shown != PL_SHOWN_QUEUED;
  if (open && shown == PL_SHOWN_PENDING) pl_str_append(&words, "not submitted; `run` or `submit` starts it");
  if (open && shown != PL_SHOWN_PENDING) pl_str_printf(&words, "retry %s", retry_of(s, shown, end));
  pl_str_printf(out, "%8zu %s", c->ends[shown][end], pl_verdict_name(&v));
  if (words.length > 0) pl_str_printf(out, "%*s%s", 20 - (int)strlen(pl_verdict_name(&v)), "", pl_str_text(&words));
  pl_str_append(out, "\n");
  out->failed |= words.failed;
  pl_str_free(&words);
}

void pl_status_print(const pl_states *s, const pl_status_counts *c, pl_str *out) {
  char left[24];
  pl_str_printf(out, "%s: %zu runs  ", s->name, c->runs);
  print_bar(c, out);
  if (isfinite(c->seconds_left)) pl_str_printf(out, ", about %s left", pl_format_duration(c->seconds_left, left));
  pl_str_append(out, "\n");
  for (size_t i = 0; i < PL_SHOWN_STATES; i++)
    for (pl_attempt_end end = 0; end < PL_ATTEMPT_ENDS; end++)
      if (c->ends[order[i]][end] > 0) print_group(s, c, order[i], end, out);
  if (s->note[0] != '\0') pl_str_printf(out, "Slurm could not be asked: %s\n", s->note);
}
