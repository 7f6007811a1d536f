#include "analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/config_view.h"
#include "analysis/join.h"
#include "analysis/significance.h"
#include "core/base/memory.h"

static const pl_sheet_column key_columns[] = {{"key", false}, {"A", false}, {"B", false}};
static const pl_sheet_column arm_columns[] = {{"optimizer", false}, {"delay", false}, {"correction", false},
                                              {"lr A", true},       {"lr B", true},   {"loss A", true},
                                              {"loss B", true},     {"B - A", true},  {"95% interval", true},
                                              {"p (Holm)", true},   {"n", true}};

/* Two arms with the difference of their losses. */
typedef struct match {
  const pl_arm *a, *b;
  const pl_arm_cell *a_cell, *b_cell;
  pl_estimate a_loss, b_loss, difference; /* B - A */
  double p;
} match;

typedef struct compare_work {
  const pl_side *a, *b;
  const pl_gap_options *options;
  pl_comparison *out;
  const char **given; /* keys with one value on each side, closed by NULL */
  match *matches;
  size_t count;
} compare_work;

static int by_id(const void *a, const void *b) {
  const pl_side_run *x = a, *y = b;
  return x->id < y->id ? -1 : x->id > y->id;
}

pl_status pl_side_add(pl_side *s, uint64_t id, const pl_run_config *c, const pl_catalog_run *run, pl_err *e) {
  pl_status st = PL_OK;
  if (s->count == s->capacity) {
    size_t larger = s->capacity ? 2 * s->capacity : 256;
    PL_TRY(pl_grow(s->capacity, larger, sizeof s->runs[0], "the list of runs", &s->runs, e));
    s->capacity = larger;
  }
  PL_TRY(pl_key_values_add(&s->keys, c, e));
  s->runs[s->count++] = (pl_side_run){id, run};
out:
  return st;
}

void pl_side_sort(pl_side *s) { qsort(s->runs, s->count, sizeof s->runs[0], by_id); }

void pl_side_free(pl_side *s) {
  pl_key_values_free(&s->keys);
  pl_free(s->runs);
  *s = (pl_side){0};
}

static pl_json *key_json(const char *key, const pl_key_set *a, const pl_key_set *b) {
  pl_str texts[2] = {{0}, {0}};
  pl_key_set_text(a, &texts[0]);
  pl_key_set_text(b, &texts[1]);
  pl_json *o = pl_json_new_object();
  bool ok = o && !texts[0].failed && !texts[1].failed && pl_json_set(o, "key", pl_json_new_string(key)) &&
            pl_json_set(o, "a", pl_json_new_string(pl_str_text(&texts[0]))) &&
            pl_json_set(o, "b", pl_json_new_string(pl_str_text(&texts[1])));
  pl_str_free(&texts[0]);
  pl_str_free(&texts[1]);
  return pl_json_keep(o, ok);
}

static size_t values_of(const pl_key_set *s) { return s ? s->count : 0; }

/* One key with its values on both sides, when they differ. */
static pl_status compare_key(compare_work *w, const char *key, size_t *given, pl_err *e) {
  const pl_key_set *a = pl_key_values_find(&w->a->keys, key), *b = pl_key_values_find(&w->b->keys, key);
  pl_sheet_row *row = NULL;
  if (pl_key_sets_equal(a, b)) return PL_OK;
  pl_status st = pl_sheet_add(&w->out->keys, "Keys that differ", "", key_json(key, a, b), &row, e);
  if (st != PL_OK) return st;
  pl_str_append(&row->cells[0], key);
  pl_key_set_text(a, &row->cells[1]);
  pl_key_set_text(b, &row->cells[2]);
  if (values_of(a) <= 1 && values_of(b) <= 1) w->given[(*given)++] = key;
  return PL_OK;
}

static pl_status compare_keys(compare_work *w, pl_err *e) {
  pl_status st = PL_OK;
  size_t given = 0;
  PL_TRY(pl_alloc(w->a->keys.count + w->b->keys.count + 1, sizeof w->given[0], "keys", &w->given, e));
  for (size_t i = 0; i < w->a->keys.count; i++) PL_TRY(compare_key(w, w->a->keys.sets[i].key, &given, e));
  for (size_t i = 0; i < w->b->keys.count; i++)
    if (!pl_key_values_find(&w->a->keys, w->b->keys.sets[i].key))
      PL_TRY(compare_key(w, w->b->keys.sets[i].key, &given, e));
out:
  return st;
}

static bool has_outcome(const pl_catalog_run *r) {
  return r && r->has_result && (r->result.state == PL_RUN_DONE || r->result.state == PL_RUN_DIVERGED);
}

static pl_status compare_runs(compare_work *w, pl_err *e) {
  enum { NAMED = 5 };
  pl_comparison *c = w->out;
  char id[PL_ID_SIZE];
  for (size_t i = 0, j = 0; i < w->a->count; i++) {
    const pl_side_run *a = &w->a->runs[i], *b = w->b->runs;
    while (j < w->b->count && b[j].id < a->id) j++;
    if (j == w->b->count || b[j].id != a->id) continue;
    c->both++;
    if (!has_outcome(a->run) || !has_outcome(b[j].run)) continue;
    c->compared++;
    if (pl_same_result(a->run, b[j].run)) continue;
    if (++c->different > NAMED) continue;
    pl_hash_hex(a->id, id);
    pl_status st = pl_note(&c->warnings, e, "run %s (%s) has another result in B than in A", id, a->run->label);
    if (st != PL_OK) return st;
  }
  c->only_a = w->a->count - c->both;
  c->only_b = w->b->count - c->both;
  return PL_OK;
}

static const pl_arm_cell *cell_of(const compare_work *w, const pl_arm *a) {
  bool fixed = w->options->at_key && strcmp(w->options->at_key, "optimizer.lr") == 0;
  return fixed ? pl_arm_cell_at(a, w->options->at_value) : a->best;
}

static void measure(const compare_work *w, pl_pairs *pairs, match *m) {
  pl_pairs_match(m->a_cell, m->b_cell, NULL, w->options->at_key ? NULL : w->a->arms->select_on, pairs);
  m->a_loss = pl_estimate_of(pairs->a, pairs->count);
  m->b_loss = pl_estimate_of(pairs->b, pairs->count);
  for (size_t i = 0; i < pairs->count; i++) pairs->b[i] -= pairs->a[i];
  m->difference = pl_estimate_of(pairs->b, pairs->count);
  m->p = pl_p_value(&m->difference);
}

static pl_status match_arms(compare_work *w, pl_err *e) {
  pl_status st = PL_OK;
  const pl_arms *a = w->a->arms, *b = w->b->arms;
  uint64_t *hashes = NULL;
  pl_pairs pairs = {0};
  pl_str scratch = {0};
  PL_TRY(pl_alloc(b->count, sizeof hashes[0], "arms", &hashes, e));
  PL_TRY(pl_alloc(a->count, sizeof w->matches[0], "arms", &w->matches, e));
  PL_TRY(pl_pairs_alloc(a->max_runs, &pairs, e));
  for (size_t i = 0; i < b->count; i++) hashes[i] = pl_config_hash_without(b->arms[i].config, w->given, &scratch);
  for (size_t i = 0; i < a->count; i++) {
    uint64_t hash = pl_config_hash_without(a->arms[i].config, w->given, &scratch);
    size_t k = 0;
    while (k < b->count && hashes[k] != hash) k++;
    if (k == b->count) continue;
    match m = {.a = &a->arms[i], .b = &b->arms[k]};
    m.a_cell = cell_of(w, m.a);
    m.b_cell = cell_of(w, m.b);
    if (!m.a_cell || !m.b_cell) continue;
    measure(w, &pairs, &m);
    w->matches[w->count++] = m;
  }
  PL_TRY(pl_str_check(&scratch, e));
out:
  pl_str_free(&scratch);
  pl_pairs_free(&pairs);
  pl_free(hashes);
  return st;
}

static pl_status adjust(compare_work *w, pl_err *e) {
  pl_status st = PL_OK;
  double *p = NULL, *scratch = NULL;
  PL_TRY(pl_alloc(w->count, sizeof p[0], "p-values", &p, e));
  PL_TRY(pl_alloc(w->count, sizeof scratch[0], "p-values", &scratch, e));
  for (size_t i = 0; i < w->count; i++) p[i] = w->matches[i].p;
  pl_holm(p, w->count, scratch);
  for (size_t i = 0; i < w->count; i++) w->matches[i].p = p[i];
out:
  pl_free(scratch);
  pl_free(p);
  return st;
}

static pl_json *match_json(const match *m) {
  pl_json *o = pl_json_new_object();
  return pl_json_keep(o, pl_json_set_arm(o, m->a) &&
                             pl_json_set(o, "lr_a", pl_json_number_or_null(pl_arm_cell_rate(m->a_cell))) &&
                             pl_json_set(o, "lr_b", pl_json_number_or_null(pl_arm_cell_rate(m->b_cell))) &&
                             pl_json_set(o, "loss_a", pl_json_number_or_null(m->a_loss.mean)) &&
                             pl_json_set(o, "loss_b", pl_json_number_or_null(m->b_loss.mean)) &&
                             pl_json_set(o, "difference", pl_json_estimate(&m->difference)) &&
                             pl_json_set(o, "p_holm", pl_json_number_or_null(m->p)));
}

static pl_status show_matches(compare_work *w, pl_err *e) {
  pl_status st = PL_OK;
  pl_sheet *s = &w->out->arms;
  for (size_t i = 0; i < w->count; i++) {
    const match *m = &w->matches[i];
    pl_sheet_row *row = NULL;
    PL_TRY(pl_sheet_add(s, "Arms of A and B that differ in nothing else", m->a->group, match_json(m), &row, e));
    pl_str *c = row->cells;
    pl_show_arm(m->a, c);
    pl_show_rate(pl_arm_cell_rate(m->a_cell), &c[3]);
    pl_show_rate(pl_arm_cell_rate(m->b_cell), &c[4]);
    pl_show_number(m->a_loss.mean, m->a_loss.mean, false, &c[5]);
    pl_show_number(m->b_loss.mean, m->a_loss.mean, false, &c[6]);
    pl_show_number(m->difference.mean, m->a_loss.mean, true, &c[7]);
    pl_show_interval(&m->difference, m->a_loss.mean, &c[8]);
    pl_show_p(m->p, &c[9]);
    pl_str_printf(&c[10], "%zu", m->difference.n);
  }
  PL_TRY(pl_note(&s->notes, e,
                 "texts are those of A. Losses and B - A over the n seeds that finished in both; interval and p by "
                 "paired t, p adjusted by Holm for this table."));
  if (w->count == 0)
    PL_TRY(pl_note(&w->out->warnings, e,
                   "no arm of A has one of B that differs from it only in keys with one value on each side"));
out:
  return st;
}

pl_status pl_compare(const pl_side *a, const pl_side *b, const pl_gap_options *o, pl_comparison *out, pl_err *e) {
  pl_status st = PL_OK;
  compare_work w = {.a = a, .b = b, .options = o, .out = out};
  *out = (pl_comparison){.keys = {.name = "keys", .file = "keys", .columns = key_columns, .column_count = 3},
                         .arms = {.name = "arms",
                                  .file = "arms",
                                  .columns = arm_columns,
                                  .column_count = sizeof arm_columns / sizeof arm_columns[0]}};
  PL_TRY(compare_keys(&w, e));
  PL_TRY(compare_runs(&w, e));
  if (a->arms && b->arms) {
    PL_TRY(match_arms(&w, e));
    PL_TRY(adjust(&w, e));
    PL_TRY(show_matches(&w, e));
  }
  PL_TRY(pl_sheet_check(&out->keys, e));
  PL_TRY(pl_sheet_check(&out->arms, e));
out:
  pl_free(w.given);
  pl_free(w.matches);
  if (st != PL_OK) pl_comparison_free(out);
  return st;
}

void pl_comparison_free(pl_comparison *c) {
  pl_sheet_free(&c->keys);
  pl_sheet_free(&c->arms);
  pl_notes_free(&c->warnings);
  *c = (pl_comparison){0};
}

void pl_comparison_text(const pl_comparison *c, pl_str *out) {
  pl_str_printf(out, "%zu run%s in both, %zu only in A, %zu only in B", c->both, c->both == 1 ? "" : "s", c->only_a,
                c->only_b);
  if (c->compared > 0)
    pl_str_printf(out, "; of %zu with a result in both, %zu differ%s", c->compared, c->different,
                  c->different == 1 ? "s" : "");
  pl_str_append(out, ".\n");
  pl_sheet_text(&c->keys, out);
  pl_sheet_text(&c->arms, out);
  pl_warnings_text(&c->warnings, out);
}

pl_json *pl_comparison_json(const pl_comparison *c) {
  pl_json *o = pl_json_new_object();
  return pl_json_keep(
      o, o && pl_json_set(o, "both", pl_json_count(c->both)) && pl_json_set(o, "only_a", pl_json_count(c->only_a)) &&
             pl_json_set(o, "only_b", pl_json_count(c->only_b)) &&
             pl_json_set(o, "compared", pl_json_count(c->compared)) &&
             pl_json_set(o, "different", pl_json_count(c->different)) &&
             pl_json_set(o, "keys", pl_sheet_json(&c->keys)) && pl_json_set(o, "arms", pl_sheet_json(&c->arms)) &&
             pl_json_set(o, "warnings", pl_warnings_json(&c->warnings)));
}
