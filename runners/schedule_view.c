#include "runners/schedule_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/pipeline/draw.h"

enum { COLUMNS = 240, LISTED = 16 /* delays in a table's cell */ };

pl_status pl_schedule_view_make(const pl_schedule *s, const pl_schedule_type *type, const pl_costs *costs,
                                int64_t updates, pl_schedule_view *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_schedule_view){.schedule = s, .type = type, .costs = *costs, .updates = updates};
  PL_TRY(pl_schedule_check(s, &out->facts, e));
  PL_TRY(pl_alloc(s->stages * s->microbatches, sizeof *out->delay, "the delays", &out->delay, e));
  PL_TRY(pl_schedule_delays(s, out->delay, e));
  PL_TRY(pl_schedule_bubble(s, costs, updates, &out->bubble, e));
  PL_TRY(pl_schedule_slack(s, &out->slack, e));
  PL_TRY(pl_timeline_make(s, costs, updates, &out->timeline, e));
out:
  return st;
}

void pl_schedule_view_free(pl_schedule_view *v) {
  pl_free(v->delay);
  pl_timeline_free(&v->timeline);
}

static double sets_in_flight(const pl_schedule_view *v, size_t stage) {
  return (double)v->facts.slots[stage] / (double)pl_schedule_chunks(v->schedule);
}

/* One number when all microbatches have it, else one each. */
static void write_delays(const pl_schedule_view *v, size_t stage, pl_str *out) {
  const size_t m = v->schedule->microbatches;
  const int64_t *delay = v->delay + stage * m;
  bool equal = true;
  for (size_t j = 1; j < m; j++) equal = equal && delay[j] == delay[0];
  for (size_t j = 0; j < m && j < LISTED && (j == 0 || !equal); j++)
    pl_str_printf(out, "%s%lld", j > 0 ? " " : "", (long long)delay[j]);
  if (!equal && m > LISTED) pl_str_append(out, " ...");
}

static void write_table(const pl_schedule_view *v, pl_str *out) {
  bool gaps = false;
  for (size_t p = 0; p < v->schedule->stages; p++) gaps = gaps || v->facts.gap[p] != 0;
  pl_str_printf(out, "%-6s %-9s %-10s %-18s %s%s\n", "stage", "versions", "in flight", "memory",
                gaps ? "mismatch  " : "", "delay (by microbatch where they differ)");
  for (size_t p = 0; p < v->schedule->stages; p++) {
    char sets[32], memory[80];
    pl_format_number(round(sets_in_flight(v, p) * 1000) / 1000, sets);
    bool one_version = v->facts.depth[p] == 1, one_set = strcmp(sets, "1") == 0;
    snprintf(memory, sizeof memory, "%.0zuw + %sa + g + o", one_version ? 0 : v->facts.depth[p], one_set ? "" : sets);
    pl_str_printf(out, "%-6zu %-9zu %-10s %-18s ", p, v->facts.depth[p], sets, memory);
    if (gaps) pl_str_printf(out, "%-9lld ", (long long)v->facts.gap[p]);
    write_delays(v, p, out);
    pl_str_append(out, "\n");
  }
  pl_str_append(out, "memory: w weights, a activations of a microbatch, g gradient, o optimizer state of the stage\n");
  if (gaps) pl_str_append(out, "mismatch: updates between the weights of a backward and those of its forward\n");
}

static void write_bubble(const pl_schedule_view *v, pl_str *out) {
  if (v->type && v->type->one_process) {
    pl_str_append(out, "bubble: none is derived: the stages run one after the other in one process\n");
    return;
  }
  pl_str_printf(out,
                "bubble: %.4f of the time from start to stop of %lld updates (%.6g), %.4f of a running update (%.6g)\n",
                v->bubble.fraction, (long long)v->updates, v->bubble.end, v->bubble.steady, v->bubble.period);
}

static void write_slack(const pl_schedule_view *v, pl_str *out) {
  pl_str_append(out, "global clip, tied head: ");
  if (v->type && v->type->one_process)
    pl_str_append(out, "simulated (with delays that differ between stages only with simulate_only)\n");
  else if (!v->slack.exists)
    pl_str_printf(out, "not allowed: update t of stage %zu needs data of stage %zu that does not exist yet\n",
                  v->slack.stage, v->slack.other);
  else if (isinf(v->slack.least))
    pl_str_append(out, "allowed: there is one stage\n");
  else
    pl_str_printf(out, "allowed: slack of %.4g forward times\n", v->slack.least);
}

static void write_legend(const pl_schedule_view *v, pl_str *out) {
  bool split = false;
  for (size_t i = 0; i < v->timeline.count; i++) split = split || v->timeline.events[i].in->op == PL_OP_BACKWARD_INPUT;
  pl_str_printf(out, "a column is %.4g; F forward, %s, | update; microbatches are counted over all updates\n\n",
                pl_draw_unit(&v->timeline), split ? "I and W backward for input and weights" : "B backward");
}

pl_status pl_schedule_view_text(const pl_schedule_view *v, pl_str *out, pl_err *e) {
  pl_status st = PL_OK;
  const pl_schedule *s = v->schedule;
  pl_str_printf(out, "%s: %zu stage%s, %zu microbatch%s an update", s->name, s->stages, s->stages == 1 ? "" : "s",
                s->microbatches, s->microbatches == 1 ? "" : "es");
  if (pl_schedule_chunks(s) > 1) pl_str_printf(out, ", %zu chunks a stage", s->chunks);
  if (v->type) pl_str_printf(out, "\n%s\nsource: %s", v->type->summary, v->type->source);
  pl_str_append(out, "\n\n");
  PL_TRY(pl_draw_text(&v->timeline, COLUMNS, out, e));
  write_legend(v, out);
  write_table(v, out);
  pl_str_append(out, "\n");
  write_bubble(v, out);
  write_slack(v, out);
out:
  return st;
}

static pl_json *stage_json(const pl_schedule_view *v, size_t p) {
  const size_t m = v->schedule->microbatches;
  pl_json *stage = pl_json_new_object(), *delay = pl_json_new_array();
  bool whole = true;
  for (size_t j = 0; j < m; j++) whole = whole && pl_json_append(delay, pl_json_new_int(v->delay[p * m + j]));
  whole = pl_json_set(stage, "delay", pl_json_new_int(v->facts.delay[p])) && whole;
  whole = pl_json_set(stage, "delay_by_microbatch", delay) && whole;
  whole = whole && pl_json_set(stage, "versions", pl_json_new_int((int64_t)v->facts.depth[p])) &&
          pl_json_set(stage, "in_flight", pl_json_new_number(sets_in_flight(v, p))) &&
          pl_json_set(stage, "slots", pl_json_new_int((int64_t)v->facts.slots[p])) &&
          pl_json_set(stage, "version_mismatch", pl_json_new_int(v->facts.gap[p]));
  return pl_json_keep(stage, whole);
}

static pl_json *event_json(const pl_schedule_view *v, const pl_event *event) {
  pl_json *out = pl_json_new_object();
  bool computes = pl_op_computes(event->in->op);
  bool whole = pl_json_set(out, "stage", pl_json_new_int((int64_t)event->stage)) &&
               pl_json_set(out, "op", pl_json_new_string(pl_op_name(event->in->op))) &&
               pl_json_set(out, "update", pl_json_new_int(event->update)) &&
               pl_json_set(out, "version", pl_json_new_int(event->version)) &&
               pl_json_set(out, "start", pl_json_new_number(event->start)) &&
               pl_json_set(out, "end", pl_json_new_number(event->end));
  if (computes) whole = whole && pl_json_set(out, "microbatch", pl_json_new_int((int64_t)event->in->microbatch));
  if (computes && pl_schedule_chunks(v->schedule) > 1)
    whole = whole && pl_json_set(out, "chunk", pl_json_new_int((int64_t)event->in->chunk));
  return pl_json_keep(out, whole);
}

static pl_json *bubble_json(const pl_bubble *b) {
  pl_json *out = pl_json_new_object();
  bool whole = pl_json_set(out, "end", pl_json_new_number(b->end)) &&
               pl_json_set(out, "fraction", pl_json_new_number(b->fraction)) &&
               pl_json_set(out, "period", pl_json_new_number(b->period)) &&
               pl_json_set(out, "steady_fraction", pl_json_new_number(b->steady));
  return pl_json_keep(out, whole);
}

static pl_json *slack_json(const pl_slack *s) {
  pl_json *out = pl_json_new_object();
  bool whole = pl_json_set(out, "allowed", pl_json_new_bool(s->exists)) &&
               pl_json_set(out, "stage", pl_json_new_int((int64_t)s->stage)) &&
               pl_json_set(out, "needs_stage", pl_json_new_int((int64_t)s->other)) &&
               pl_json_set(out, "slack", pl_json_new_number(s->least));
  return pl_json_keep(out, whole);
}

pl_json *pl_schedule_view_json(const pl_schedule_view *v) {
  const pl_schedule *s = v->schedule;
  const bool real = !v->type || !v->type->one_process;
  pl_json *out = pl_json_new_object(), *stages = pl_json_new_array(), *events = pl_json_new_array();
  bool whole = true;
  for (size_t p = 0; p < s->stages; p++) whole = pl_json_append(stages, stage_json(v, p)) && whole;
  for (size_t i = 0; i < v->timeline.count; i++)
    whole = pl_json_append(events, event_json(v, &v->timeline.events[i])) && whole;
  whole = pl_json_set(out, "schedule", pl_json_new_string(s->name)) && whole;
  whole = pl_json_set(out, "stages", pl_json_new_int((int64_t)s->stages)) && whole;
  whole = pl_json_set(out, "microbatches", pl_json_new_int((int64_t)s->microbatches)) && whole;
  whole = pl_json_set(out, "chunks", pl_json_new_int((int64_t)pl_schedule_chunks(s))) && whole;
  whole = pl_json_set(out, "updates", pl_json_new_int(v->updates)) && whole;
  whole = pl_json_set(out, "one_process", pl_json_new_bool(!real)) && whole;
  whole = pl_json_set(out, "by_stage", stages) && whole;
  whole = pl_json_set(out, "bubble", real ? bubble_json(&v->bubble) : pl_json_new_null()) && whole;
  whole = pl_json_set(out, "global", real ? slack_json(&v->slack) : pl_json_new_null()) && whole;
  whole = pl_json_set(out, "events", events) && whole;
  return pl_json_keep(out, whole);
}
