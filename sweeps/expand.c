#include <string.h>

#include "core/base/memory.h"
#include "core/train/trainer.h"
#include "sweeps/parts.h"

/* Puts the axis's current step into the run's entries and axis values. */
static pl_status show_axis(pl_sweep *s, const pl_block *b, pl_axis *axis, pl_err *e) {
  for (size_t k = 0; k < axis->count; k++) {
    pl_axis_key *key = &axis->keys[k];
    const pl_json *value = pl_json_at(key->values, (size_t)axis->at);
    if (key->values == NULL) {
      pl_json *drawn = NULL;
      pl_status st = pl_draw_at(&key->draw, axis->at, &drawn, &value, e);
      if (st != PL_OK) return st;
      pl_json_release(key->drawn);
      key->drawn = drawn;
    }
    s->values[s->base_count + b->fixed_count + key->slot] = (pl_entry){.path = key->path, .value = value, .where = ""};
    if (key->column != SIZE_MAX) s->axis_values[key->column] = value;
  }
  return PL_OK;
}

static pl_status enter_block(pl_sweep *s, pl_block *b, pl_err *e) {
  for (size_t i = 0; i < s->column_count; i++) s->axis_values[i] = NULL;
  for (size_t i = 0; i < b->fixed_count; i++) {
    size_t column = pl_sweep_column(s, b->fixed[i].path);
    s->values[s->base_count + i] = b->fixed[i];
    if (column != SIZE_MAX) s->axis_values[column] = b->fixed[i].value;
  }
  for (size_t a = 0; a < b->axis_count; a++) {
    b->axes[a].at = 0;
    pl_status st = show_axis(s, b, &b->axes[a], e);
    if (st != PL_OK) return st;
  }
  s->value_count = s->base_count + b->fixed_count + b->slots;
  s->inside = true;
  return PL_OK;
}

/* Steps to the next combination: within the block like an odometer, else into the next block. */
static pl_status advance(pl_sweep *s, bool *more, pl_err *e) {
  *more = true;
  if (s->inside) {
    pl_block *b = &s->blocks[s->block];
    for (size_t a = b->axis_count; a-- > 0;) {
      pl_axis *axis = &b->axes[a];
      if (axis->length == 1) continue;
      axis->at = (axis->at + 1) % axis->length;
      pl_status st = show_axis(s, b, axis, e);
      if (st != PL_OK || axis->at != 0) return st;
    }
    s->inside = false;
    s->block++;
  }
  *more = s->block < s->block_count;
  return *more ? enter_block(s, &s->blocks[s->block], e) : PL_OK;
}

static void write_axis_where(const pl_block *b, const pl_axis *axis, const char *path, pl_str *out) {
  switch (axis->origin) {
  case PL_AXIS_OWN:
  case PL_AXIS_ZIP:
    pl_block_where(b, out);
    pl_str_printf(out, "%s%s", axis->origin == PL_AXIS_ZIP ? ".zip." : ".", path);
    break;
  case PL_AXIS_SET:
    pl_str_printf(out, "--set %s", path);
    if (axis->length == 1) return;
    break;
  case PL_AXIS_OWN_SEEDS:
    pl_block_where(b, out);
    pl_str_append(out, ".seeds");
    break;
  case PL_AXIS_SWEEP_SEEDS:
    pl_str_append(out, "seeds");
    break;
  }
  pl_str_printf(out, "[%llu]", (unsigned long long)axis->at);
}

/* Where each entry of the current combination was written, one text per entry. */
static void write_wheres(const pl_sweep *s, const pl_block *b, pl_str *texts) {
  for (size_t i = 0; i < s->base_count; i++)
    pl_str_printf(&texts[i], "%s%s", s->is_run_file ? "" : "base.", s->values[i].path);
  texts += s->base_count;
  for (size_t i = 0; i < b->fixed_count; i++) {
    pl_block_where(b, &texts[i]);
    pl_str_printf(&texts[i], "%s%s", b->kind == PL_BLOCK_RUNS ? "." : ".base.", b->fixed[i].path);
  }
  texts += b->fixed_count;
  for (size_t a = 0; a < b->axis_count; a++)
    for (size_t k = 0; k < b->axes[a].count; k++)
      write_axis_where(b, &b->axes[a], b->axes[a].keys[k].path, &texts[b->axes[a].keys[k].slot]);
}

/* For messages that do not say which combination they are about. */
static void prefix_label(const pl_sweep *s, pl_err *e) {
  const pl_sweep_run run = {.axis_values = s->axis_values};
  pl_str label = {0};
  pl_sweep_label(s, &run, &label);
  if (label.length > 0) pl_err_prefix(e, "%.300s", pl_str_text(&label));
  pl_str_free(&label);
}

static bool starts_with_one_of(const char *text, const pl_str *starts, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (starts[i].length > 0 && strncmp(text, starts[i].text, starts[i].length) == 0) return true;
  return false;
}

/* Builds without the places, which cost time; only a failure is built once more with them. */
static pl_status build(pl_sweep *s, pl_err *e) {
  pl_str *texts = NULL;
  pl_status st = PL_OK;
  size_t count = s->value_count;
  if (pl_run_config_build_with(s->registries, s->values, count, &s->memo, &s->config, NULL) == PL_OK) return PL_OK;
  PL_TRY(pl_alloc(count, sizeof *texts, "the places of settings", &texts, e));
  write_wheres(s, &s->blocks[s->block], texts);
  for (size_t i = 0; i < count; i++) s->values[i].where = pl_str_text(&texts[i]);
  st = pl_run_config_build_with(s->registries, s->values, count, &s->memo, &s->config, e);
  if (st != PL_OK && e != NULL && !starts_with_one_of(e->text, texts, count)) prefix_label(s, e);
out:
  for (size_t i = 0; texts != NULL && i < count; i++) {
    s->values[i].where = "";
    pl_str_free(&texts[i]);
  }
  pl_free(texts);
  return st;
}

/* Exclusion comes before the relations between sections are checked, so that it can drop combinations that break them.
 */
static pl_status look_at(pl_sweep *s, bool *kept, pl_err *e) {
  pl_status st = PL_OK;
  *kept = false;
  s->counts.produced++;
  PL_TRY(build(s, e));
  if (pl_rules_hold(&s->exclude, &s->config) || (s->only_if.count > 0 && !pl_rules_hold(&s->only_if, &s->config))) {
    s->counts.excluded++;
    return PL_OK;
  }
  st = pl_run_config_check_with(&s->config, &s->memo, e);
  if (st != PL_OK) {
    prefix_label(s, e);
    return st;
  }
  uint64_t id = pl_run_config_id(&s->config);
  PL_TRY(pl_id_set_add(&s->ids, id, kept, e));
  s->run = (pl_sweep_run){.index = s->counts.runs, .id = id, .config = &s->config, .axis_values = s->axis_values};
  s->counts.runs += *kept;
  s->counts.merged += !*kept;
out:
  return st;
}

static pl_status nothing_left(const pl_sweep *s, pl_err *e) {
  const char *rules = s->only_if.count == 0 ? "exclude removes" : "only_if removes";
  if (s->exclude.count > 0 && s->only_if.count > 0) rules = "exclude and only_if remove";
  const unsigned long long all = s->counts.produced;
  if (all == 1) return pl_fail(e, PL_BAD, "%s the only run; allowed: at least one run left", rules);
  return pl_fail(e, PL_BAD, "%s all %llu runs; allowed: at least one run left", rules, all);
}

pl_status pl_sweep_next(pl_sweep *s, const pl_sweep_run **run, pl_err *e) {
  pl_status st = PL_OK;
  *run = NULL;
  for (bool kept = false, more = true; !kept;) {
    PL_TRY(advance(s, &more, e));
    if (!more && s->counts.runs == 0) PL_TRY(nothing_left(s, e));
    if (!more) return PL_OK;
    PL_TRY(look_at(s, &kept, e));
  }
  *run = &s->run;
  return PL_OK;
out:
  pl_err_prefix(e, "%s", s->path);
  return st;
}

void pl_sweep_rewind(pl_sweep *s) {
  s->block = 0;
  s->inside = false;
  s->counts = (pl_sweep_counts){0};
  pl_id_set_clear(&s->ids);
}

pl_sweep_counts pl_sweep_counted(const pl_sweep *s) { return s->counts; }

static uint64_t block_count(const pl_block *b) {
  uint64_t count = 1;
  for (size_t a = 0; a < b->axis_count; a++)
    if (__builtin_mul_overflow(count, b->axes[a].length, &count)) return UINT64_MAX;
  return count;
}

uint64_t pl_sweep_upper_count(const pl_sweep *s) {
  uint64_t total = 0;
  for (size_t i = 0; i < s->block_count; i++)
    if (__builtin_add_overflow(total, block_count(&s->blocks[i]), &total)) return UINT64_MAX;
  return total;
}
