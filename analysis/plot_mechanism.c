/* Drift and gradient cosine of the delayed arms against updates: for each optimizer a panel of each that was logged. */
#include "analysis/plot_lines.h"

static const struct {
  pl_series series;
  const char *title, *what, *label;
} kinds[] = {{PL_SERIES_gradient_cos, "gradient cosine", "gradient cosine of ", "'cos(stale, fresh gradient)'"},
             {PL_SERIES_drift, "drift", "drift of ", "'|x_t - x_s| / |x_t|'"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static pl_status add_arm(const pl_arm *a, size_t kind, pl_line_panel *panel, pl_plot *p, pl_err *e) {
  pl_mean_curve m = {0};
  if (a->sync || !a->best) return PL_OK;
  pl_status st = pl_mean_curve_read(a->best, kinds[kind].series, &m, e);
  if (st != PL_OK) return st;
  if (m.count > 1) pl_line_panel_add(panel, a, a->best, m.seeds, kinds[kind].what, &m, NULL, 0, p);
  pl_mean_curve_free(&m);
  return PL_OK;
}

static void append_panel(const pl_arm *a, size_t kind, const pl_line_panel *panel, pl_str *body) {
  pl_str title = {0};
  pl_str_printf(&title, "%s, %s", a->optimizer, kinds[kind].title);
  pl_line_panel_draw(panel, pl_str_text(&title), "updates", kinds[kind].label, body);
  body->failed |= title.failed;
  pl_str_free(&title);
}

/* Tells of the kinds that have panels. */
static void append_caption(const bool shown[KINDS], pl_str *caption) {
  if (shown[0])
    pl_str_append(caption,
                  "Cosine between the gradient that an update used and that of its batch at the newest weights");
  pl_str_append(caption, shown[0] && shown[1] ? ", and how" : shown[1] ? "How" : "");
  if (shown[1]) pl_str_append(caption, " far the weights went since the gradient read them");
  pl_str_printf(caption,
                ", mean over the seeds that finished (n in the legends), each arm at its own best learning rate; "
                "without delay %s",
                shown[0] && shown[1] ? "they are 1 and 0"
                : shown[0]           ? "it is 1"
                                     : "it is 0");
}

pl_status pl_plot_mechanism(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e) {
  pl_status st = PL_OK;
  const pl_arm *arms = in->arms->arms;
  size_t panels = 0, most_curves = 0;
  bool shown[KINDS] = {false};
  pl_str body = {0};
  pl_line_panel panel = pl_line_panel_new();
  p->columns = "updates,value";
  for (size_t i = group.first; i < group.last; i = pl_arms_of_optimizer(in->arms, i).last) {
    const pl_arm_range range = pl_arms_of_optimizer(in->arms, i);
    for (size_t kind = 0; kind < KINDS; kind++) {
      panel = pl_line_panel_new();
      for (size_t j = range.first; j < range.last; j++) PL_TRY(add_arm(&arms[j], kind, &panel, p, e));
      if (panel.curves > 0) {
        append_panel(&arms[i], kind, &panel, &body);
        panels++;
        shown[kind] = true;
      }
      if (panel.curves > most_curves) most_curves = panel.curves;
      pl_line_panel_free(&panel);
    }
  }
  if (panels > 0)
    pl_plot_panel_rows(p, "What delay does, mean over seeds", arms[group.first].group, panels, panels > 1 ? 2 : 1,
                       most_curves, &body);
  append_caption(shown, &p->caption);
  p->script.failed |= body.failed;
out:
  pl_line_panel_free(&panel);
  pl_str_free(&body);
  return st;
}
