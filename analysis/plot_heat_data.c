/* The losses, or gaps, over two keys of the configuration that a heat map shows. */
#include <math.h>
#include <string.h>

#include "analysis/config_view.h"
#include "analysis/plot_heat.h"
#include "core/base/memory.h"

static const char *const default_keys[2] = {"optimizer.lr", "delay"};
static const char rate_key[] = "optimizer.lr";

static bool text_before(const char *a, const char *b) {
  double x = 0, y = 0;
  bool number = pl_parse_real(a, &x), other = pl_parse_real(b, &y);
  return number && other ? x < y : number && !other;
}

/* The place of a text, which is added at the end when it is new. */
static pl_status add_text(pl_heat_axis *a, const char *text, size_t *place, pl_err *e) {
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
static void sort_axis(pl_heat *h, int which) {
  pl_heat_axis *a = &h->axes[which];
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
  if (isnan(pl_arm_cell_rate(cell))) return false;
  pl_str_append(out, pl_format_number(cell->lr, number));
  return true;
}

static const pl_gap_row *best_row(const pl_gap_table *t, const pl_arm *a) {
  for (size_t i = 0; i < t->count; i++)
    if (t->rows[i].arm == a && t->rows[i].reading == PL_READING_BEST) return &t->rows[i];
  return NULL;
}

/* What a spot shows; false for nothing to show. */
static bool measure(const pl_heat *h, const pl_gap_table *t, const pl_arm_cell *cell, pl_heat_spot *s) {
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

static pl_status add_spot(pl_heat *h, const pl_plot_input *in, const pl_arm *a, const pl_arm_cell *cell,
                          pl_str *scratch, pl_err *e) {
  pl_status st = PL_OK;
  pl_heat_spot s = {.arm = a, .value = NAN};
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
static bool goes_along(const pl_heat *h, const char *key) {
  for (int i = 0; i < 2; i++) {
    size_t length = strlen(h->axes[i].key);
    if (strncmp(key, h->axes[i].key, length) == 0 && (key[length] == '\0' || key[length] == '.')) return true;
    if (strcmp(h->axes[i].key, "delay") == 0 && strcmp(key, "simulate_only") == 0) return true;
  }
  return false;
}

static pl_status list_ignored(pl_heat *h, const pl_plot_input *in, pl_arm_range range, pl_err *e) {
  pl_status st = PL_OK;
  size_t n = 0;
  for (size_t i = range.first; i < range.last; i++) PL_TRY(pl_key_values_add(&h->keys, in->arms->arms[i].config, e));
  PL_TRY(pl_alloc(h->keys.count + 1, sizeof h->ignored[0], "keys", &h->ignored, e));
  for (size_t i = 0; i < h->keys.count; i++)
    if (goes_along(h, h->keys.sets[i].key)) h->ignored[n++] = h->keys.sets[i].key;
out:
  return st;
}

static pl_status add_spots(pl_heat *h, const pl_plot_input *in, pl_arm_range range, pl_err *e) {
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

void pl_heat_free(pl_heat *h) {
  for (int i = 0; i < 2; i++) {
    for (size_t k = 0; k < h->axes[i].count; k++) pl_free(h->axes[i].texts[k]);
    pl_free(h->axes[i].texts);
  }
  pl_free(h->ignored);
  pl_key_values_free(&h->keys);
  pl_free(h->spots);
}

/* A parameter of the optimizer that the optimizer's name says already: it is the same in all of its spots. */
static bool follows_from_optimizer(const pl_heat *h, const pl_arm *a, const char *key, const char *value) {
  bool follows = strncmp(key, "optimizer.", strlen("optimizer.")) == 0;
  pl_str other = {0};
  for (size_t i = 0; follows && i < h->count; i++) {
    const pl_arm *b = h->spots[i].arm;
    if (b->config->optimizer.type != a->config->optimizer.type) continue;
    other.length = 0;
    follows = pl_config_text(b->config, key, &other) && strcmp(pl_str_text(&other), value) == 0;
  }
  pl_str_free(&other);
  return follows;
}

void pl_heat_title(const pl_heat *h, const pl_arm *a, pl_str *out) {
  for (size_t i = 0; i < h->keys.count; i++) {
    const pl_key_set *k = &h->keys.sets[i];
    pl_str value = {0};
    if (k->count < 2 || strcmp(k->key, "seed") == 0 || strcmp(k->key, rate_key) == 0 || goes_along(h, k->key)) continue;
    if (pl_config_text(a->config, k->key, &value) && !follows_from_optimizer(h, a, k->key, pl_str_text(&value)))
      pl_str_printf(out, "%s%s %s", out->length ? ", " : "", k->key, pl_str_text(&value));
    if (value.failed) out->failed = true;
    pl_str_free(&value);
  }
}

pl_status pl_heat_collect(const pl_plot_input *in, pl_arm_range range, pl_heat *out, pl_err *e) {
  const char *const *keys = in->heat[0] ? in->heat : default_keys;
  *out = (pl_heat){.axes = {{.key = keys[0]}, {.key = keys[1]}}, .low = INFINITY, .high = -INFINITY, .least = SIZE_MAX};
  out->by_rate = strcmp(keys[0], rate_key) == 0 || strcmp(keys[1], rate_key) == 0;
  pl_status st = add_spots(out, in, range, e);
  if (st != PL_OK) pl_heat_free(out);
  return st;
}
