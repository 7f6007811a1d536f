/* The measured timeline as text, as SVG and as JSON. */
#include <inttypes.h>
#include <math.h>

#include "core/pipeline/draw.h"
#include "runners/schedule_measured.h"

enum { COLUMNS = 240 };

static double shorter(double a, double b) { return b > 0 && b < a ? b : a; }

/* Of a forward or a backward, or of a half of it, in a chunk. */
static double shortest_mean(const pl_measured *m) {
  double shortest = INFINITY;
  for (size_t p = 0; p < m->schedule->stages; p++) {
    const pl_stage_costs *c = &m->costs[p];
    shortest = shorter(shorter(shorter(shortest, c->forward), c->backward - c->weight), c->weight);
  }
  return isfinite(shortest) ? shortest / (double)pl_schedule_chunks(m->schedule) : 0;
}

static bool is_split(const pl_measured *m) {
  bool split = false;
  for (size_t p = 0; p < m->schedule->stages; p++) split = split || m->costs[p].weight > 0;
  return split;
}

static void write_stages(const pl_measured *m, pl_str *out) {
  const bool split = is_split(m);
  pl_str_printf(out, "%-6s %11s %12s%s %10s %9s %11s\n", "stage", "forward ms", "backward ms",
                split ? "  weights ms" : "", "update ms", "busy", "ideal busy");
  for (size_t p = 0; p < m->schedule->stages; p++) {
    const pl_stage_costs *c = &m->costs[p];
    pl_str_printf(out, "%-6zu %11.4g %12.4g", p, 1e3 * c->forward, 1e3 * c->backward);
    if (split) pl_str_printf(out, " %11.4g", 1e3 * c->weight);
    pl_str_printf(out, " %10.4g %8.1f%% %10.1f%%\n", 1e3 * c->update, 100 * m->real_pace.busy[p],
                  100 * m->ideal_pace.busy[p]);
  }
  pl_str_printf(out, "mean times of a microbatch in a stage%s; of an update the shortest, as it may wait for others\n",
                split ? ", both halves of the backward and the second one alone" : "");
}

static void write_pace(const pl_measured *m, pl_str *out) {
  const pl_pace *r = &m->real_pace, *i = &m->ideal_pace;
  pl_str_printf(out, "\n%-12s %10s %10s\n", "", "measured", "ideal");
  pl_str_printf(out, "%-12s %7.5g ms %7.5g ms   %+.1f%%\n", m->first == m->last ? "one update" : "period",
                1e3 * r->period, 1e3 * i->period, i->period > 0 ? 100 * (r->period / i->period - 1) : 0.0);
  pl_str_printf(out, "%-12s %10.4f %10.4f\n", "bubble", r->bubble, i->bubble);
  if (m->first == m->last)
    pl_str_append(out, "of the one update from its beginning to its end; two or more tell a running pipeline's\n");
}

pl_status pl_measured_text(const pl_measured *m, const char *title, int64_t updates, pl_str *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_timeline real = {0}, ideal = {0};
  const double unit = shortest_mean(m);
  PL_TRY(pl_measured_cut(m, &m->real, updates, &real, e));
  PL_TRY(pl_measured_cut(m, &m->ideal, updates, &ideal, e));
  const int64_t from = pl_measured_from(m, updates), to = from + updates - 1;
  pl_str_printf(out, "%s: %zu stages, %zu microbatches an update; %s, updates %" PRId64 " to %" PRId64 "\n\n",
                m->schedule->name, m->schedule->stages, m->schedule->microbatches, title, m->first, m->last);
  pl_str_printf(out, "measured, updates %" PRId64 " to %" PRId64 "\n", from, to < m->last ? to : m->last);
  PL_TRY(pl_draw_text_in(&real, unit, COLUMNS, out, e));
  pl_str_append(out, "\nideal: the same times in every microbatch, messages free\n");
  PL_TRY(pl_draw_text_in(&ideal, unit, COLUMNS, out, e));
  pl_str_printf(out, "\na column is %.4g ms, times are rounded; F forward, %s, | update\n\n", 1e3 * unit,
                is_split(m) ? "I and W backward for input and weights" : "B backward");
  write_stages(m, out);
  write_pace(m, out);
out:
  pl_timeline_free(&real);
  pl_timeline_free(&ideal);
  return st;
}

pl_status pl_measured_svg(const pl_measured *m, int64_t updates, pl_str *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_timeline real = {0}, ideal = {0};
  pl_str titles[2] = {0};
  PL_TRY(pl_measured_cut(m, &m->real, updates, &real, e));
  PL_TRY(pl_measured_cut(m, &m->ideal, updates, &ideal, e));
  pl_str_printf(&titles[0], "measured: %.5g ms an update, bubble %.1f%%", 1e3 * m->real_pace.period,
                100 * m->real_pace.bubble);
  pl_str_printf(&titles[1], "ideal with the same times: %.5g ms an update, bubble %.1f%%", 1e3 * m->ideal_pace.period,
                100 * m->ideal_pace.bubble);
  PL_TRY(pl_str_check(&titles[0], e));
  PL_TRY(pl_str_check(&titles[1], e));
  const pl_panel panels[] = {{titles[0].text, &real}, {titles[1].text, &ideal}};
  pl_draw_svg_panels(panels, 2, shortest_mean(m), out);
out:
  pl_str_free(&titles[0]);
  pl_str_free(&titles[1]);
  pl_timeline_free(&real);
  pl_timeline_free(&ideal);
  return st;
}

static pl_json *pace_json(const pl_pace *p) {
  pl_json *out = pl_json_new_object();
  return pl_json_keep(out, pl_json_set(out, "period", pl_json_new_number(p->period)) &&
                               pl_json_set(out, "bubble", pl_json_new_number(p->bubble)));
}

static pl_json *stage_json(const pl_measured *m, size_t p) {
  const pl_stage_costs *c = &m->costs[p];
  pl_json *out = pl_json_new_object();
  return pl_json_keep(out, pl_json_set(out, "forward", pl_json_new_number(c->forward)) &&
                               pl_json_set(out, "backward", pl_json_new_number(c->backward)) &&
                               pl_json_set(out, "backward_weight", pl_json_new_number(c->weight)) &&
                               pl_json_set(out, "update", pl_json_new_number(c->update)) &&
                               pl_json_set(out, "busy", pl_json_new_number(m->real_pace.busy[p])) &&
                               pl_json_set(out, "ideal_busy", pl_json_new_number(m->ideal_pace.busy[p])));
}

pl_json *pl_measured_json(const pl_measured *m, const char *run) {
  const pl_schedule *s = m->schedule;
  pl_json *out = pl_json_new_object(), *stages = pl_json_new_array();
  bool whole = true;
  for (size_t p = 0; p < s->stages; p++) whole = pl_json_append(stages, stage_json(m, p)) && whole;
  whole = pl_json_set(out, "run", pl_json_new_string(run)) && whole;
  whole = pl_json_set(out, "schedule", pl_json_new_string(s->name)) && whole;
  whole = pl_json_set(out, "stages", pl_json_new_int((int64_t)s->stages)) && whole;
  whole = pl_json_set(out, "microbatches", pl_json_new_int((int64_t)s->microbatches)) && whole;
  whole = pl_json_set(out, "chunks", pl_json_new_int((int64_t)pl_schedule_chunks(s))) && whole;
  whole = pl_json_set(out, "first_update", pl_json_new_int(m->first)) && whole;
  whole = pl_json_set(out, "last_update", pl_json_new_int(m->last)) && whole;
  whole = pl_json_set(out, "measured", pace_json(&m->real_pace)) && whole;
  whole = pl_json_set(out, "ideal", pace_json(&m->ideal_pace)) && whole;
  whole = pl_json_set(out, "by_stage", stages) && whole;
  return pl_json_keep(out, whole);
}
