/* The figures of a report: one set for each group of arms. */
#ifndef PL_ANALYSIS_PLOTS_H
#define PL_ANALYSIS_PLOTS_H

#include "analysis/arms.h"
#include "analysis/gap.h"
#include "analysis/gnuplot.h"
#include "analysis/mean_curve.h"

typedef struct pl_plot_input {
  const pl_catalog *catalog;
  const pl_arms *arms;
  const pl_gap_table *table;
  const pl_gap_options *options;
  const char *heat[2]; /* keys of the heat map's axes; NULL: learning rate and delay, where both vary */
} pl_plot_input;

/* The arms [first, last) of one group, or of one optimizer in a group. */
typedef struct pl_arm_range {
  size_t first, last;
} pl_arm_range;

/* One kind of figure: fills in script, data, size and caption for a group; leaves `blocks` 0 when there is nothing to
 * show. */
typedef pl_status (*pl_plot_function)(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e);

pl_status pl_plot_loss_curves(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e);
pl_status pl_plot_loss_vs_seconds(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e);
pl_status pl_plot_loss_vs_lr(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e);
pl_status pl_plot_gap_vs_delay(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e);
pl_status pl_plot_won_back(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e);
pl_status pl_plot_mechanism(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e);
pl_status pl_plot_heat(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e);

/* PL_BAD, naming the keys that can be, unless both keys differ between runs; keys of NULL are the ones above. */
PL_MUST_CHECK pl_status pl_plot_heat_check(const char *const keys[2], const pl_arms *arms, pl_err *e);

/* The arms from `first` on that share its group, or its group and optimizer. */
pl_arm_range pl_arms_of_group(const pl_arms *a, size_t first);
pl_arm_range pl_arms_of_optimizer(const pl_arms *a, size_t first);

/* Whether validation losses are drawn: where there are enough of them for a curve. */
bool pl_plot_has_validation(const pl_plot_input *in, pl_arm_range range);

/* The curve that is drawn for an arm: the mean of validation losses, or of smoothed train losses, at the learning rate
 * of *cell, NULL and no curve when there is none. Released by pl_mean_curve_free. */
PL_MUST_CHECK pl_status pl_plot_arm_curve(const pl_plot_input *in, const pl_arm *a, bool validation,
                                          const pl_arm_cell **cell, pl_mean_curve *out, pl_err *e);

/* Appends the label of the loss axis, a gnuplot string, and to a caption how losses were smoothed. */
void pl_plot_loss_label(bool validation, pl_str *script);
void pl_plot_smoothing_text(bool validation, pl_str *caption);

/* Colour-blind safe colours (Okabe & Ito 2008) and a grey, black first; they repeat after nine. */
const char *pl_plot_color(size_t rank);

/* Appends " lc rgb '#...' dt N": colour by delay, dashes by correction, so that a style means the same in all panels.
 */
void pl_plot_arm_style(const pl_arm *a, pl_str *script);

/* Appends "sync", "delay 1" or "delay 1, ef". */
void pl_plot_arm_label(const pl_arm *a, pl_str *label);

/* Appends what a curve at one learning rate is called in the CSV, "adamw, delay 1, lr 0.004", and in a legend, "delay 1
 * (lr 0.004, n=5)"; without the rate where an imported run states none. The label must be empty. */
void pl_plot_cell_names(const pl_arm *a, const pl_arm_cell *cell, size_t n, pl_str *series, pl_str *label);

/* Appends a gnuplot string of the title and, in lines of about `width` letters below it, the detail, which may have
 * lines of its own; returns the number of lines. */
size_t pl_plot_heading(pl_str *script, const char *title, const char *detail, size_t width);

/* Whether the vertical axis of values in [low, high] is logarithmic: they are positive and span decades. */
bool pl_plot_spans_decades(double low, double high);

/* Appends the vertical range: [low, high] and a margin on both sides, `share` of the height; logarithmic as above. */
void pl_plot_vertical(pl_str *script, double low, double high, double share);

/* Appends "n = 5", or "n = 3 to 5"; nothing when low > high. */
void pl_plot_count_text(size_t low, size_t high, pl_str *out);

/* Puts panels, each drawn by its own plot command in `body`, side by side under a heading, with room for a legend below
 * each: sets the figure's size and script. */
void pl_plot_panels(pl_plot *p, const char *title, const char *group, size_t panels, size_t legend_rows,
                    const pl_str *body);

/* The same with the number of columns. */
void pl_plot_panel_rows(pl_plot *p, const char *title, const char *group, size_t panels, size_t columns,
                        size_t legend_rows, const pl_str *body);

#endif
