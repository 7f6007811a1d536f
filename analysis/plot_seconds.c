/* Mean loss curves against the time that training took, one panel per optimizer. */
#include <math.h>

#include "analysis/plots.h"
#include "core/base/memory.h"

enum { MOST_POINTS = 600 };
static const double shown_from = 0.2; /* share of the time whose losses set the vertical range */

typedef struct time_panel {
  pl_str lines; /* of the plot command */
  size_t curves;
  double low, high, longest;
} time_panel;

/* Adds a run's seconds at the steps of the mean curve to sum[]. *counts: it has them all. Of several attempts none
 * tells the time since the start. */
static pl_status add_seconds(const pl_arm_run *r, const pl_mean_curve *m, double *sum, bool *counts, pl_err *e) {
  pl_curve c = {0};
  size_t at = 0, found = 0;
  pl_status st = pl_arm_run_curve(r, &c, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < c.count && at < m->count; i++) {
    const pl_point *p = &c.rows[i].point;
    if (p->step != m->steps[at]) continue;
    if (!isnan(p->values[PL_SERIES_seconds])) found++;
    at++;
  }
  *counts = c.attempts == 1 && found == m->count;
  at = 0;
  for (size_t i = 0; *counts && i < c.count && at < m->count; i++)
    if (c.rows[i].point.step == m->steps[at]) sum[at++] += c.rows[i].point.values[PL_SERIES_seconds];
  pl_curve_free(&c);
  return PL_OK;
}

/* Mean seconds at the steps of the curve, over the *runs finished runs in one attempt. */
static pl_status read_seconds(const pl_arm_cell *cell, const pl_mean_curve *m, double *out, size_t *runs, pl_err *e) {
  *runs = 0;
  for (size_t i = 0; i < cell->count; i++) {
    bool counts = false;
    if (!pl_arm_finished(&cell->runs[i])) continue;
    pl_status st = add_seconds(&cell->runs[i], m, out, &counts, e);
    if (st != PL_OK) return st;
    *runs += counts;
  }
  for (size_t i = 0; i<m->count && * runs> 0; i++) out[i] /= (double)*runs;
  return PL_OK;
}

static void add_curve(const pl_arm *a, const pl_arm_cell *cell, const pl_mean_curve *m, const double *seconds,
                      size_t runs, time_panel *panel, pl_plot *p) {
  const size_t stride = m->count / MOST_POINTS + 1;
  const double last = seconds[m->count - 1];
  pl_str label = {0}, series = {0};
  pl_plot_arm_label(a, &label);
  pl_str_printf(&series, "%s, %s, lr %.4g", a->optimizer, pl_str_text(&label), cell->lr);
  pl_str_printf(&label, " (lr %.4g, n=%zu)", cell->lr, runs);
  pl_plot_series(p, pl_str_text(&series));
  for (size_t i = 0; i < m->count; i++) {
    const double point[] = {seconds[i], m->values[i]};
    if (i % stride == 0 || i + 1 == m->count) pl_plot_numbers(p, point, 2);
    panel->low = fmin(panel->low, m->values[i]);
    if (seconds[i] >= shown_from * last) panel->high = fmax(panel->high, m->values[i]);
  }
  panel->longest = fmax(panel->longest, last);
  pl_str_printf(&panel->lines, ", \\\n  '%s.dat' index %zu using 1:2 with lines lw 2", p->name, pl_plot_end_block(p));
  pl_plot_arm_style(a, &panel->lines);
  pl_str_append(&panel->lines, " title ");
  pl_plot_quote(&panel->lines, pl_str_text(&label));
  panel->curves++;
  panel->lines.failed |= label.failed || series.failed;
  pl_str_free(&series);
  pl_str_free(&label);
}

static pl_status add_arm(const pl_plot_input *in, const pl_arm *a, bool validation, time_panel *panel, pl_plot *p,
                         pl_err *e) {
  const pl_arm_cell *cell = NULL;
  pl_mean_curve m = {0};
  double *seconds = NULL;
  size_t runs = 0;
  pl_status st = PL_OK;
  PL_TRY(pl_plot_arm_curve(in, a, validation, &cell, &m, e));
  if (m.count < 2) goto out;
  PL_TRY(pl_alloc(m.count, sizeof seconds[0], "seconds", &seconds, e));
  PL_TRY(read_seconds(cell, &m, seconds, &runs, e));
  if (runs > 0) add_curve(a, cell, &m, seconds, runs, panel, p);
out:
  pl_free(seconds);
  pl_mean_curve_free(&m);
  return st;
}

static void append_panel(const pl_arm *a, bool validation, const time_panel *panel, pl_str *body) {
  pl_str_append(body, "set title ");
  pl_plot_quote(body, a->optimizer);
  pl_str_append(body, "\nset xlabel \"wall-clock time (s)\\n \" offset 0,0.6\nset ylabel ");
  pl_plot_loss_label(validation, body);
  pl_str_append(body, "\n");
  pl_plot_vertical(body, panel->low, panel->high, 0.05);
  pl_str_printf(body, "set xrange [0:%.9g]\nplot NaN notitle%s\n", panel->longest, pl_str_text(&panel->lines));
  body->failed |= panel->lines.failed;
}

pl_status pl_plot_loss_vs_seconds(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e) {
  pl_status st = PL_OK;
  const pl_arm *arms = in->arms->arms;
  const bool validation = pl_plot_has_validation(in, group);
  size_t panels = 0, most_curves = 0;
  pl_str body = {0};
  time_panel panel = {0};
  p->columns = "seconds,loss";
  for (size_t i = group.first; i < group.last; i = pl_arms_of_optimizer(in->arms, i).last) {
    const pl_arm_range range = pl_arms_of_optimizer(in->arms, i);
    panel = (time_panel){.low = INFINITY, .high = -INFINITY};
    for (size_t j = range.first; j < range.last; j++) PL_TRY(add_arm(in, &arms[j], validation, &panel, p, e));
    if (panel.curves > 0) {
      append_panel(&arms[i], validation, &panel, &body);
      panels++;
    }
    if (panel.curves > most_curves) most_curves = panel.curves;
    pl_str_free(&panel.lines);
  }
  if (panels > 0)
    pl_plot_panels(p, "Loss against wall-clock time, mean over seeds", arms[group.first].group, panels, most_curves,
                   &body);
  pl_str_append(&p->caption, "Loss against wall-clock time, both the mean over the seeds; time of runs in one attempt, "
                             "validation included; delay that is simulated in one process takes no less time");
  pl_plot_smoothing_text(validation, &p->caption);
  p->script.failed |= body.failed;
out:
  pl_str_free(&panel.lines);
  pl_str_free(&body);
  return st;
}
