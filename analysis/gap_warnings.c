/* What a reader of the gap table must know about the runs behind it. */
#include <math.h>
#include <string.h>

#include "analysis/config_view.h"
#include "analysis/gap.h"
#include "analysis/mixed.h"

static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

/* Losses at every learning rate, also at those that no reading shows. */
static pl_status warn_diverged(const pl_arm *a, pl_notes *warnings, pl_err *e) {
  char lr[32];
  pl_str where = {0};
  for (size_t i = 0; i < a->cell_count; i++) {
    size_t bad = 0;
    (void)pl_arm_cell_mean(&a->cells[i], NULL, 0, &bad);
    if (bad > 0)
      pl_str_printf(&where, "%s%s (%zu of %zu)", where.length > 0 ? ", " : "", pl_format_number(a->cells[i].lr, lr),
                    bad, a->cells[i].count);
  }
  pl_status st = pl_str_check(&where, e);
  if (st == PL_OK && where.length > 0)
    st = pl_note(warnings, e, "%s: runs diverged at optimizer.lr %s; loss and gap there are over the others", a->name,
                 where.text);
  pl_str_free(&where);
  return st;
}

/* A run that says it is done and has no finite loss counts as unfinished. */
static pl_status warn_nonfinite(const pl_arms *arms, pl_notes *warnings, pl_err *e) {
  char id[PL_ID_SIZE], loss[32];
  for (size_t i = 0; i < arms->run_count; i++) {
    const pl_catalog_run *r = arms->runs[i].run;
    if (!r->has_result || r->result.state != PL_RUN_DONE || isfinite(r->result.outcome.final_val_loss)) continue;
    pl_hash_hex(r->id, id);
    pl_status st =
        pl_note(warnings, e, "run %s (%s): is done with a final validation loss of %s; it counts as unfinished", id,
                r->label, pl_format_number(r->result.outcome.final_val_loss, loss));
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

static pl_status warn_missing(const pl_arms *arms, pl_notes *warnings, pl_err *e) {
  pl_status st = PL_OK;
  if (arms->with_result < arms->selected)
    PL_TRY(
        pl_note(warnings, e,
                arms->failed > 0 ? "%zu of %zu runs have no result (%zu failed)" : "%zu of %zu runs have no result yet",
                arms->selected - arms->with_result, arms->selected, arms->failed));
  if (arms->catalog->unreadable > 0)
    PL_TRY(pl_note(warnings, e, "%zu run folder%s could not be read and %s left out", arms->catalog->unreadable,
                   plural(arms->catalog->unreadable), arms->catalog->unreadable == 1 ? "is" : "are"));
out:
  return st;
}

/* The data of an arm as its configuration states it. */
static uint64_t data_of(const pl_arm *a, pl_str *text) {
  pl_config_part parts[PL_CONFIG_PARTS];
  size_t count = pl_config_parts(a->config, parts);
  text->length = 0;
  for (size_t i = 0; i < count; i++) {
    if (parts[i].slot != PL_SLOT_DATA) continue;
    pl_str_append(text, parts[i].type);
    for (size_t k = 0; parts[i].table[k].type != PL_END; k++) {
      pl_str_append(text, " ");
      pl_config_value(&parts[i], &parts[i].table[k], text);
    }
  }
  return pl_hash(pl_str_text(text), text->length);
}

/* Losses per token mean something else with other text or another tokenizer. */
static pl_status warn_data(const pl_arms *arms, pl_notes *warnings, pl_err *e) {
  pl_str text = {0};
  bool differ = false;
  uint64_t first = arms->count > 0 ? data_of(&arms->arms[0], &text) : 0;
  for (size_t i = 1; i < arms->count && !differ; i++) differ = data_of(&arms->arms[i], &text) != first;
  pl_status st = pl_str_check(&text, e);
  pl_str_free(&text);
  if (st != PL_OK || !differ) return st;
  return pl_note(warnings, e,
                 "arms were trained on different data; losses and targets compare within a group, not between groups, "
                 "whose text or tokenizer differs");
}

/* How the runs were made. */
static pl_status warn_mixed(const pl_arms *arms, pl_notes *warnings, pl_err *e) {
  pl_str texts[2] = {{0}, {0}};
  pl_status st = pl_mixed_find(arms, &texts[0], &texts[1], e);
  for (size_t i = 0; i < 2; i++) {
    if (st == PL_OK && texts[i].length > 0) st = pl_note(warnings, e, "%s", texts[i].text);
    pl_str_free(&texts[i]);
  }
  return st;
}

pl_status pl_gap_warn(const pl_arms *arms, pl_notes *warnings, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < arms->count; i++) PL_TRY(warn_diverged(&arms->arms[i], warnings, e));
  PL_TRY(warn_nonfinite(arms, warnings, e));
  PL_TRY(warn_missing(arms, warnings, e));
  PL_TRY(warn_data(arms, warnings, e));
  PL_TRY(warn_mixed(arms, warnings, e));
out:
  return st;
}
