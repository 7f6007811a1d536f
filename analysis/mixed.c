#include "analysis/mixed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/memory.h"

const char *const pl_fact_names[PL_FACTS] = {"program", "kernel", "cpu", "threads", "data fingerprint"};

enum { TEXT = 96, SHOWN = 3 /* values of a fact that are named */ };

/* Of one run: the places of its values; SIZE_MAX without a record. */
typedef struct record {
  size_t value[PL_FACTS];
} record;

typedef struct value_seen {
  char text[TEXT];
  size_t runs;
} value_seen;

typedef struct mix {
  const pl_arms *arms;
  record *records; /* of arms->runs */
  value_seen *values[PL_FACTS];
  size_t count[PL_FACTS], capacity[PL_FACTS];
  size_t resumed;           /* runs without their bitwise mark */
  size_t mixed_pairs;       /* runs that differ from a synchronous run of their seed */
  bool pair_fact[PL_FACTS]; /* in this */
} mix;

static pl_status note_value(mix *m, pl_fact f, const char *text, size_t *place, pl_err *e) {
  size_t i = 0;
  while (i < m->count[f] && strcmp(m->values[f][i].text, text) != 0) i++;
  if (i == m->capacity[f]) {
    size_t larger = 2 * m->capacity[f] + 4;
    pl_status st = pl_grow(m->count[f], larger, sizeof *m->values[f], "how runs were made", &m->values[f], e);
    if (st != PL_OK) return st;
    m->capacity[f] = larger;
  }
  if (i == m->count[f]) snprintf(m->values[f][m->count[f]++].text, TEXT, "%s", text);
  m->values[f][i].runs++;
  *place = i;
  return PL_OK;
}

/* "0.1.0 3f2a91c04b7d+ build b346f2a8": the + stands for changes that were not committed. */
static void describe(const pl_json *attempt, pl_fact f, char out[TEXT]) {
  char shown[TEXT];
  switch (f) {
  case PL_FACT_PROGRAM:
    snprintf(out, TEXT, "%.20s %.12s%s build %.8s", pl_json_get_string(attempt, "version", "?"),
             pl_json_get_string(attempt, "git_commit", "?"), pl_json_get_string(attempt, "git_diff", "")[0] ? "+" : "",
             pl_json_get_string(attempt, "binary_hash", "?"));
    break;
  case PL_FACT_KERNEL:
  case PL_FACT_CPU:
    snprintf(out, TEXT, "%s", pl_json_get_string(attempt, pl_fact_names[f], "unknown"));
    break;
  case PL_FACT_THREADS:
    snprintf(out, TEXT, "%s", pl_format_number(pl_json_get_number(attempt, "threads", NAN), shown));
    break;
  case PL_FACT_DATA:
  case PL_FACTS:
    snprintf(out, TEXT, "%s", pl_json_get_string(attempt, "data_fingerprint", "unknown"));
    break;
  }
}

static pl_status read_record(mix *m, const pl_catalog_run *run, record *out, pl_err *e) {
  pl_status st = PL_OK;
  char text[TEXT];
  pl_json *meta = NULL;
  PL_TRY(pl_catalog_meta(run, &meta, e));
  const pl_json *attempts = pl_json_get(meta, "attempts");
  size_t count = pl_json_size(attempts);
  if (pl_json_kind_of(attempts) != PL_JSON_ARRAY || count == 0) goto out;
  for (pl_fact f = 0; f < PL_FACTS; f++) {
    describe(pl_json_at(attempts, count - 1), f, text);
    PL_TRY(note_value(m, f, text, &out->value[f], e));
  }
  const pl_json *bitwise = pl_json_get(meta, "bitwise");
  if (pl_json_kind_of(bitwise) == PL_JSON_BOOL && !pl_json_bool(bitwise)) m->resumed++;
out:
  pl_json_release(meta);
  return st;
}

static const record *record_of(const mix *m, const pl_arm_run *r) { return &m->records[r - m->arms->runs]; }

static bool has_record(const mix *m, const pl_arm_run *r) {
  return record_of(m, r)->value[PL_FACT_PROGRAM] != SIZE_MAX;
}

/* Compares a run with the synchronous runs of its seed, at whatever learning rate. */
static bool differs_from_sync(mix *m, const pl_arm_run *r, const pl_arm *sync) {
  bool differs = false;
  for (size_t i = 0; i < sync->cell_count; i++)
    for (size_t k = 0; k < sync->cells[i].count; k++) {
      const pl_arm_run *s = &sync->cells[i].runs[k];
      if (s->seed != r->seed || !has_record(m, s)) continue;
      for (pl_fact f = 0; f < PL_FACTS; f++) {
        if (record_of(m, s)->value[f] == record_of(m, r)->value[f]) continue;
        differs = true;
        m->pair_fact[f] = true;
      }
    }
  return differs;
}

static void compare_pairs(mix *m) {
  for (size_t i = 0; i < m->arms->count; i++) {
    const pl_arm *a = &m->arms->arms[i];
    if (!a->baseline || a->baseline == a) continue;
    for (size_t j = 0; j < a->cell_count; j++)
      for (size_t k = 0; k < a->cells[j].count; k++)
        if (has_record(m, &a->cells[j].runs[k]))
          m->mixed_pairs += differs_from_sync(m, &a->cells[j].runs[k], a->baseline);
  }
}

static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

static void append_values(const mix *m, pl_fact f, pl_str *out) {
  for (size_t i = 0; i < m->count[f] && i < SHOWN; i++) {
    const value_seen *v = &m->values[f][i];
    pl_str_printf(out, "%s\"%s\" (%zu run%s)", i > 0 ? ", " : "", v->text, v->runs, plural(v->runs));
  }
  if (m->count[f] > SHOWN) pl_str_printf(out, " and %zu more", m->count[f] - SHOWN);
}

/* Runs on different data may be meant so, unless they are a pair. */
static void append_differences(const mix *m, pl_str *out) {
  bool any = false;
  for (pl_fact f = 0; f < PL_FACTS; f++) {
    if (m->count[f] < 2 || (f == PL_FACT_DATA && !m->pair_fact[f])) continue;
    if (!any) pl_str_append(out, "the compared runs were not all made alike");
    any = true;
    pl_str_printf(out, "; %s ", pl_fact_names[f]);
    append_values(m, f, out);
  }
  if (any)
    pl_str_printf(out, "; %zu run%s in this from a synchronous run of the same seed", m->mixed_pairs,
                  m->mixed_pairs == 1 ? " differs" : "s differ");
}

static pl_status read_all(mix *m, pl_err *e) {
  const pl_arms *arms = m->arms;
  pl_status st = pl_alloc(arms->run_count, sizeof m->records[0], "how runs were made", &m->records, e);
  for (size_t i = 0; i < arms->run_count && st == PL_OK; i++) {
    memset(&m->records[i], 0xff, sizeof m->records[i]); /* SIZE_MAX */
    if (!isnan(arms->runs[i].loss)) st = read_record(m, arms->runs[i].run, &m->records[i], e);
  }
  return st;
}

static void mix_free(mix *m) {
  for (pl_fact f = 0; f < PL_FACTS; f++) pl_free(m->values[f]);
  pl_free(m->records);
}

pl_status pl_facts_list(const pl_arms *arms, pl_str out[PL_FACTS], pl_err *e) {
  pl_status st = PL_OK;
  mix m = {.arms = arms};
  PL_TRY(read_all(&m, e));
  for (pl_fact f = 0; f < PL_FACTS; f++) append_values(&m, f, &out[f]);
out:
  mix_free(&m);
  return st;
}

pl_status pl_mixed_find(const pl_arms *arms, pl_str *differences, pl_str *resumed, pl_err *e) {
  pl_status st = PL_OK;
  mix m = {.arms = arms};
  PL_TRY(read_all(&m, e));
  compare_pairs(&m);
  append_differences(&m, differences);
  if (m.resumed > 0)
    pl_str_printf(resumed,
                  "%zu run%s resumed by another program, kernel, processor or data and lost the mark \"bitwise\"",
                  m.resumed, m.resumed == 1 ? " was" : "s were");
  PL_TRY(pl_str_check(differences, e));
  PL_TRY(pl_str_check(resumed, e));
out:
  mix_free(&m);
  return st;
}
