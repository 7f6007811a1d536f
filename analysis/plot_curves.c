/* Mean loss curves, one panel per optimizer. */
#include <math.h>
#include <string.h>

#include "analysis/mean_curve.h"
#include "analysis/plots.h"
#include "core/base/memory.h"

enum { MOST_POINTS = 600, LEAST_VALIDATIONS = 10 };
static const double smoothing = 0.95;
static const double shown_from = 0.2; /* share of the steps whose losses set the vertical range */

typedef struct curve_panel {
  pl_str lines; /* of the plot command */
  size_t curves;
  double low, high;
} curve_panel;

/* The learning rate at which an arm is drawn: the fixed one, where there is one, else its best. */
static const pl_arm_cell *drawn_cell(const pl_plot_input *in, const pl_arm *a) {
  const char *key = in->options->at_key;
  const pl_arm_cell *fixed = key && strcmp(key, "optimizer.lr") == 0 ? pl_arm_cell_at(a, in->options->at_value) : NULL;
  return fixed ? fixed : a->best;
}

/* Validation losses are drawn where there are enough of them for a curve. */
static bool has_validation(const pl_plot_input *in, pl_arm_range range) {
  for (size_t i = range.first; i < range.last; i++) {
    const pl_train_config *t = &in->arms->arms[i].config->train;
    if (t->val_every <= 0 || t->steps / t->val_every < LEAST_VALIDATIONS) return false;
  }
  return true;
}

static void add_curve(const pl_arm *a, const pl_arm_cell *cell, const pl_mean_curve *m, curve_panel *panel,
                      pl_plot *p) {
  size_t stride = m->count / MOST_POINTS + 1;
  double from = shown_from * (double)m->steps[m->count - 1];
  bool began = false;
  pl_str label = {0};
  for (size_t i = 0; i < m->count; i++) {
    double point[] = {(double)m->steps[i], m->values[i]};
    if (i % stride == 0 || i + 1 == m->count) pl_plot_numbers(p, point, 2);
    panel->low = fmin(panel->low, m->values[i]);
    if (!began && point[0] >= from) {
      panel->high = fmax(panel->high, m->values[i]);
      began = true;
    }
  }
  pl_plot_arm_label(a, &label);
  pl_str_printf(&label, " (lr %.4g, n=%zu)", cell->lr, m->seeds);
  pl_str_printf(&panel->lines, "%s'%s.dat' index %zu using 1:2 with lines lw 2", panel->lines.length ? ", \\\n  " : "",
                p->name, pl_plot_end_block(p));
  pl_plot_arm_style(a, &panel->lines);
  pl_str_append(&panel->lines, " title ");
  pl_plot_quote(&panel->lines, pl_str_text(&label));
  pl_str_free(&label);
  panel->curves++;
}

static pl_status add_arm(const pl_plot_input *in, const pl_arm *a, bool validation, curve_panel *panel, pl_plot *p,
                         pl_err *e) {
  const pl_arm_cell *cell = drawn_cell(in, a);
  pl_mean_curve m = {0};
  if (!cell) return PL_OK;
  pl_status st = pl_mean_curve_read(cell, validation ? PL_SERIES_val_loss : PL_SERIES_train_loss, &m, e);
  if (st != PL_OK) return st;
  if (!validation) pl_smooth(m.values, m.count, smoothing);
  if (m.count > 1) add_curve(a, cell, &m, panel, p);
  pl_mean_curve_free(&m);
  return PL_OK;
}

static void close_panel(const pl_arm *a, bool validation, const curve_panel *panel, pl_str *body) {
  pl_str_append(body, "set title ");
  pl_plot_quote(body, a->optimizer);
  pl_str_append(body, "\nset xlabel \"updates\\n \" offset 0,0.6\nset ylabel ");
  if (validation)
    pl_plot_quote(body, "validation loss (nats/token)");
  else
    pl_str_printf(body, "'train loss, EMA %g (nats/token)'", smoothing);
  pl_str_append(body, "\n");
  pl_plot_vertical(body, panel->low, panel->high, 0.05);
  pl_str_printf(body, "plot %s\n", pl_str_text(&panel->lines));
}

pl_status pl_plot_loss_curves(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e) {
  pl_status st = PL_OK;
  const pl_arm *arms = in->arms->arms;
  bool validation = has_validation(in, group);
  size_t panels = 0, most_curves = 0;
  pl_str body = {0};
  curve_panel panel = {0};
  for (size_t i = group.first; i < group.last; i = pl_arms_of_optimizer(in->arms, i).last) {
    pl_arm_range range = pl_arms_of_optimizer(in->arms, i);
    panel = (curve_panel){.low = INFINITY, .high = -INFINITY};
    for (size_t j = range.first; j < range.last; j++) PL_TRY(add_arm(in, &arms[j], validation, &panel, p, e));
    if (panel.lines.length > 0) {
      close_panel(&arms[i], validation, &panel, &body);
      panels++;
      if (panel.curves > most_curves) most_curves = panel.curves;
    }
    pl_str_free(&panel.lines);
  }
  if (panels > 0)
    pl_plot_panels(p, "Loss curves, mean over seeds", arms[group.first].group, panels, most_curves, &body);
  pl_str_append(&p->caption, "Loss curves, mean over the seeds that finished");
  if (!validation)
    pl_str_printf(&p->caption, "; train loss smoothed by a debiased exponential moving average, weight %g", smoothing);
out:
  pl_str_free(&panel.lines);
  pl_str_free(&body);
  return st;
}
