/* Heat maps: the final loss, or the gap, over two keys of the configuration. */
#include "analysis/plot_heat.h"

#include <math.h>
#include <string.h>

enum { MOST_PANELS = 24, MOST_LABELLED = 8 };

static void append_tics(const pl_heat_axis *a, const char *which, bool slanted, pl_str *out) {
  pl_str_printf(out, "set %stics (", which);
  for (size_t i = 0; i < a->count; i++) {
    pl_str_append(out, i > 0 ? ", " : "");
    pl_plot_quote(out, a->texts[i]);
    pl_str_printf(out, " %zu", i);
  }
  pl_str_printf(out, ") scale 0%s\n", slanted ? " rotate by -40" : "");
  pl_str_printf(out, "set %srange [-0.5:%g]\n", which, (double)a->count - 0.5);
}

/* Numbers stand in the cells where there is room, dark on light and light on dark. */
static void append_plot(const pl_heat *h, const char *file, size_t block, pl_str *body) {
  const char *number = "abs($3)<0.0095 ? sprintf('%.1e',$3) : sprintf('%.3f',$3)";
  bool log = pl_plot_spans_decades(h->low, h->high);
  double middle = log ? sqrt(h->low * h->high) : 0.5 * (h->low + h->high);
  pl_str_printf(body,
                "plot '%s.dat' index %zu using 1:($3==$3 ? $2 : NaN):(0.5):(0.5):3 with boxxyerror fs solid 1 noborder "
                "lc palette",
                file, block);
  if (h->axes[0].count <= MOST_LABELLED) {
    pl_str_printf(body, ", \\\n  '' index %zu using 1:($3<%.9g ? $2 : NaN):(%s) with labels font ',9' tc rgb '#FFFFFF'",
                  block, middle, number);
    pl_str_printf(body,
                  ", \\\n  '' index %zu using 1:($3>=%.9g ? $2 : NaN):(%s) with labels font ',9' tc rgb '#010101'",
                  block, middle, number);
  }
  pl_str_printf(body, ", \\\n  '' index %zu using 1:($4==0 ? $2 : NaN):('diverged') with labels font ',8'\n", block);
}

static void append_panel(const pl_heat *h, size_t first, pl_plot *p, pl_str *body) {
  pl_str title = {0}, series = {0};
  pl_heat_title(h, h->spots[first].arm, &title);
  for (size_t i = first; i < h->count; i++) {
    const pl_heat_spot *s = &h->spots[i];
    double numbers[] = {(double)s->at[0], (double)s->at[1], s->value, (double)s->n, (double)s->diverged};
    if (s->panel != h->spots[first].panel) continue;
    series.length = 0;
    pl_str_printf(&series, "%s%s%s %s, %s %s", pl_str_text(&title), title.length ? ", " : "", h->axes[0].key,
                  h->axes[0].texts[s->at[0]], h->axes[1].key, h->axes[1].texts[s->at[1]]);
    pl_plot_series(p, pl_str_text(&series));
    pl_plot_numbers(p, numbers, 5);
  }
  pl_str_append(body, "set title ");
  pl_plot_heading(body, "", pl_str_text(&title), 44);
  pl_str_append(body, "\n");
  append_plot(h, p->name, pl_plot_end_block(p), body);
  if (title.failed || series.failed) body->failed = true;
  pl_str_free(&title);
  pl_str_free(&series);
}

static void append_axes(const pl_heat *h, pl_str *body) {
  pl_str_append(body, "unset key\nunset grid\nset xlabel ");
  pl_plot_quote(body, h->axes[0].key);
  pl_str_append(body, "\nset ylabel ");
  pl_plot_quote(body, strcmp(h->axes[1].key, "delay") == 0 ? "delay (updates)" : h->axes[1].key);
  pl_str_printf(body, "\nset cblabel '%s (nats/token)' offset 0.8,0\nset cbtics font ',9'\n",
                h->by_rate ? "final validation loss" : "gap to sync");
  pl_str_append(body, "set palette defined (0 '#00224E', 1 '#123570', 2 '#3B496C', 3 '#575D6D', 4 '#707173', 5 "
                      "'#8A8779', 6 '#A69D75', 7 '#C4B56C', 8 '#FDE737')\n");
  if (pl_plot_spans_decades(h->low, h->high)) pl_str_append(body, "set logscale cb\n");
  if (h->low < h->high) pl_str_printf(body, "set cbrange [%.9g:%.9g]\n", h->low, h->high);
  append_tics(&h->axes[0], "x", h->axes[0].count > 5, body);
  append_tics(&h->axes[1], "y", false, body);
}

static void draw(const pl_heat *h, const char *group, pl_plot *p) {
  pl_str body = {0}, title = {0};
  size_t panels = 0;
  append_axes(h, &body);
  for (size_t i = 0; i < h->count && panels < MOST_PANELS; i++) {
    size_t k = 0;
    while (h->spots[k].panel != h->spots[i].panel) k++;
    if (k < i) continue;
    append_panel(h, i, p, &body);
    panels++;
  }
  pl_str_printf(&title, "%s over %s and %s", h->by_rate ? "Final loss" : "Gap to sync", h->axes[0].key, h->axes[1].key);
  pl_plot_panels(p, pl_str_text(&title), group, panels, 1, &body);
  pl_str_printf(&p->caption, "%s, mean over seeds (", pl_str_text(&title));
  pl_plot_count_text(h->least, h->most, &p->caption);
  pl_str_printf(&p->caption, ")%s", h->by_rate ? "" : ", each arm at its own best learning rate");
  if (panels == MOST_PANELS) pl_str_printf(&p->caption, "; the first %zu panels", panels);
  if (body.failed || title.failed) p->script.failed = true;
  pl_str_free(&body);
  pl_str_free(&title);
}

pl_status pl_plot_heat(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e) {
  pl_heat h;
  p->columns = "x place,y place,value,n,diverged";
  pl_status st = pl_heat_collect(in, group, &h, e);
  if (st != PL_OK) return st;
  if (h.axes[0].count > 1 && h.axes[1].count > 1 && h.low <= h.high)
    draw(&h, in->heat[0] ? "" : in->arms->arms[group.first].group, p);
  pl_heat_free(&h);
  return PL_OK;
}
