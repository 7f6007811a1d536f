/* Heat maps: the final loss, or the gap, over two keys of the configuration. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/config_view.h"
#include "analysis/key_values.h"
#include "analysis/plots.h"
#include "core/base/memory.h"

enum { MOST_PANELS = 24, MOST_LABELLED = 8 };

/* One axis: its values as texts, numbers by size, other texts in order of appearance behind them. */
typedef struct axis {
  const char *key;
  char **texts;
  size_t count;
} axis;

typedef struct spot {
  uint64_t panel;
  size_t at[2]; /* places on the axes */
  const pl_arm *arm;
  double value; /* NaN: nothing finished */
  size_t n, diverged;
} spot;

typedef struct heat {
  axis axes[2];
  bool by_rate; /* an axis is the learning rate: losses are shown, else gaps */
  spot *spots;
  size_t count;
  double low, high;
  size_t least, most;   /* seeds */
  pl_key_values keys;   /* of the arms: what titles tell panels apart by */
  const char **ignored; /* the axes and what goes along with them, closed by NULL */
} heat;

static const char *const default_keys[2] = {"optimizer.lr", "delay"};
static const char rate_key[] = "optimizer.lr";

static bool text_before(const char *a, const char *b) {
  double x = 0, y = 0;
  bool number = pl_parse_real(a, &x), other = pl_parse_real(b, &y);
  return number && other ? x < y : number && !other;
}

/* The place of a text, which is added at the end when it is new. */
static pl_status add_text(axis *a, const char *text, size_t *place, pl_err *e) {
  pl_status st = PL_OK;
  for (*place = 0; *place < a->count; ++*place)
    if (strcmp(a->texts[*place], text) == 0) return PL_OK;
  PL_TRY(pl_grow(a->count, a->count + 1, sizeof a->texts[0], "an axis", &a->texts, e));
  PL_TRY(pl_strdup(text, &a->texts[a->count], e));
  a->count++;
out:
  return st;
}

/* Sorts the texts and moves the spots along. */
static void sort_axis(heat *h, int which) {
  axis *a = &h->axes[which];
  for (size_t i = 1; i < a->count; i++)
    for (size_t k = i; k > 0 && text_before(a->texts[k], a->texts[k - 1]); k--) {
      char *text = a->texts[k];
      a->texts[k] = a->texts[k - 1];
      a->texts[k - 1] = text;
      for (size_t s = 0; s < h->count; s++) {
        if (h->spots[s].at[which] == k)
          h->spots[s].at[which] = k - 1;
        else if (h->spots[s].at[which] == k - 1)
          h->spots[s].at[which] = k;
      }
    }
}

static bool axis_text(const pl_arm *a, const pl_arm_cell *cell, const char *key, pl_str *out) {
  char number[32];
  out->length = 0;
  if (strcmp(key, rate_key) != 0) return pl_config_text(a->config, key, out);
  pl_str_append(out, pl_format_number(cell->lr, number));
  return true;
}

static const pl_gap_row *best_row(const pl_gap_table *t, const pl_arm *a) {
  for (size_t i = 0; i < t->count; i++)
    if (t->rows[i].arm == a && t->rows[i].reading == PL_READING_BEST) return &t->rows[i];
  return NULL;
}

/* What a spot shows; false for nothing to show. */
static bool measure(const heat *h, const pl_gap_table *t, const pl_arm_cell *cell, spot *s) {
  if (h->by_rate) {
    s->value = pl_arm_cell_mean(cell, NULL, 0, &s->diverged);
    for (size_t i = 0; i < cell->count; i++) s->n += pl_arm_finished(&cell->runs[i]);
    return s->n + s->diverged > 0;
  }
  const pl_gap_row *r = s->arm->sync ? NULL : best_row(t, s->arm);
  if (!r || (r->gap.n == 0 && r->diverged == 0)) return false;
  s->value = r->gap.mean;
  s->n = r->gap.n;
  s->diverged = r->diverged;
  return true;
}

static pl_status add_spot(heat *h, const pl_plot_input *in, const pl_arm *a, const pl_arm_cell *cell, pl_str *scratch,
                          pl_err *e) {
  pl_status st = PL_OK;
  spot s = {.arm = a, .value = NAN};
  if (!cell || !measure(h, in->table, cell, &s)) return PL_OK;
  for (int i = 0; i < 2; i++) {
    if (!axis_text(a, cell, h->axes[i].key, scratch)) return PL_OK;
    PL_TRY(pl_str_check(scratch, e));
    PL_TRY(add_text(&h->axes[i], pl_str_text(scratch), &s.at[i], e));
  }
  s.panel = pl_config_hash_without(a->config, h->ignored, scratch);
  if (!isnan(s.value)) {
    h->low = fmin(h->low, s.value);
    h->high = fmax(h->high, s.value);
    if (s.n < h->least) h->least = s.n;
    if (s.n > h->most) h->most = s.n;
  }
  h->spots[h->count++] = s;
out:
  return st;
}

/* An axis, a parameter of the section that is one, or what comes with a delay. */
static bool goes_along(const heat *h, const char *key) {
  for (int i = 0; i < 2; i++) {
    size_t length = strlen(h->axes[i].key);
    if (strncmp(key, h->axes[i].key, length) == 0 && (key[length] == '\0' || key[length] == '.')) return true;
    if (strcmp(h->axes[i].key, "delay") == 0 && strcmp(key, "simulate_only") == 0) return true;
  }
  return false;
}

static pl_status list_ignored(heat *h, const pl_plot_input *in, pl_arm_range range, pl_err *e) {
  pl_status st = PL_OK;
  size_t n = 0;
  for (size_t i = range.first; i < range.last; i++) PL_TRY(pl_key_values_add(&h->keys, in->arms->arms[i].config, e));
  PL_TRY(pl_alloc(h->keys.count + 1, sizeof h->ignored[0], "keys", &h->ignored, e));
  for (size_t i = 0; i < h->keys.count; i++)
    if (goes_along(h, h->keys.sets[i].key)) h->ignored[n++] = h->keys.sets[i].key;
out:
  return st;
}

static pl_status collect(heat *h, const pl_plot_input *in, pl_arm_range range, pl_err *e) {
  pl_status st = PL_OK;
  size_t most = 0;
  pl_str scratch = {0};
  for (size_t i = range.first; i < range.last; i++) most += in->arms->arms[i].cell_count;
  PL_TRY(pl_alloc(most, sizeof h->spots[0], "a heat map", &h->spots, e));
  PL_TRY(list_ignored(h, in, range, e));
  for (size_t i = range.first; i < range.last; i++) {
    const pl_arm *a = &in->arms->arms[i];
    if (!h->by_rate) PL_TRY(add_spot(h, in, a, a->best, &scratch, e));
    for (size_t k = 0; h->by_rate && k < a->cell_count; k++) PL_TRY(add_spot(h, in, a, &a->cells[k], &scratch, e));
  }
  for (int i = 0; i < 2; i++) sort_axis(h, i);
  PL_TRY(pl_str_check(&scratch, e));
out:
  pl_str_free(&scratch);
  return st;
}

static void heat_free(heat *h) {
  for (int i = 0; i < 2; i++) {
    for (size_t k = 0; k < h->axes[i].count; k++) pl_free(h->axes[i].texts[k]);
    pl_free(h->axes[i].texts);
  }
  pl_free(h->ignored);
  pl_key_values_free(&h->keys);
  pl_free(h->spots);
}

/* "optimizer adamw, correction ef": what varies and is no axis. */
static void append_title(const heat *h, const pl_arm *a, pl_str *out) {
  for (size_t i = 0; i < h->keys.count; i++) {
    const pl_key_set *k = &h->keys.sets[i];
    pl_str value = {0};
    if (k->count < 2 || strcmp(k->key, "seed") == 0 || strcmp(k->key, rate_key) == 0 || goes_along(h, k->key)) continue;
    if (pl_config_text(a->config, k->key, &value))
      pl_str_printf(out, "%s%s %s", out->length ? ", " : "", k->key, pl_str_text(&value));
    if (value.failed) out->failed = true;
    pl_str_free(&value);
  }
}

static void append_tics(const axis *a, const char *which, bool slanted, pl_str *out) {
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
static void append_plot(const heat *h, const char *file, size_t block, pl_str *body) {
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

static void append_panel(const heat *h, size_t first, pl_plot *p, pl_str *body) {
  pl_str title = {0}, series = {0};
  append_title(h, h->spots[first].arm, &title);
  for (size_t i = first; i < h->count; i++) {
    const spot *s = &h->spots[i];
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

static void append_axes(const heat *h, pl_str *body) {
  pl_str_append(body, "unset key\nunset grid\nset xlabel ");
  pl_plot_quote(body, h->axes[0].key);
  pl_str_append(body, "\nset ylabel ");
  pl_plot_quote(body, strcmp(h->axes[1].key, "delay") == 0 ? "delay (updates)" : h->axes[1].key);
  pl_str_printf(body, "\nset cblabel '%s (nats/token)'\n", h->by_rate ? "final validation loss" : "gap to sync");
  pl_str_append(body, "set palette defined (0 '#00224E', 1 '#123570', 2 '#3B496C', 3 '#575D6D', 4 '#707173', 5 "
                      "'#8A8779', 6 '#A69D75', 7 '#C4B56C', 8 '#FDE737')\n");
  if (pl_plot_spans_decades(h->low, h->high)) pl_str_append(body, "set logscale cb\n");
  if (h->low < h->high) pl_str_printf(body, "set cbrange [%.9g:%.9g]\n", h->low, h->high);
  append_tics(&h->axes[0], "x", h->axes[0].count > 5, body);
  append_tics(&h->axes[1], "y", false, body);
}

static void draw(const heat *h, const char *group, pl_plot *p) {
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
  pl_status st = PL_OK;
  const char *const *keys = in->heat[0] ? in->heat : default_keys;
  heat h = {.axes = {{.key = keys[0]}, {.key = keys[1]}}, .low = INFINITY, .high = -INFINITY, .least = SIZE_MAX};
  h.by_rate = strcmp(keys[0], rate_key) == 0 || strcmp(keys[1], rate_key) == 0;
  p->columns = "x place,y place,value,n,diverged";
  PL_TRY(collect(&h, in, group, e));
  if (h.axes[0].count > 1 && h.axes[1].count > 1 && h.low <= h.high)
    draw(&h, in->heat[0] ? "" : in->arms->arms[group.first].group, p);
out:
  heat_free(&h);
  return st;
}
