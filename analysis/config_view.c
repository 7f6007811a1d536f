#include "analysis/config_view.h"

#include <string.h>

static pl_config_part component_part(pl_slot slot, const char *prefix, const pl_section *s) {
  return (pl_config_part){slot, prefix, s->type->name, s->type->params, s->config};
}

size_t pl_config_parts(const pl_run_config *c, pl_config_part out[PL_CONFIG_PARTS]) {
  const pl_config_tables *t = pl_run_config_tables(c);
  size_t n = 0;
  out[n++] = component_part(PL_SLOT_MODEL, "model", &c->model);
  out[n++] = component_part(PL_SLOT_DATA, "data", &c->data);
  out[n++] = (pl_config_part){PL_SLOT_TRAIN, "train", NULL, t->train, &c->train};
  out[n++] = component_part(PL_SLOT_LR_SCHEDULE, "train.lr_schedule", &c->lr_schedule);
  out[n++] = (pl_config_part){PL_SLOT_PIPELINE, "pipeline", NULL, t->pipeline, &c->pipeline};
  out[n++] = (pl_config_part){PL_SLOT_ROOT, "", NULL, t->root, &c->root};
  out[n++] = component_part(PL_SLOT_OPTIMIZER, "optimizer", &c->optimizer);
  for (size_t i = 0; i < c->correction_count; i++)
    out[n++] = component_part(PL_SLOT_CORRECTION, "correction", &c->corrections[i]);
  return n;
}

/* The part of a dotted key behind "PREFIX.", or NULL when the prefix is another. */
static const char *key_below(const char *key, const char *prefix) {
  size_t length = strlen(prefix);
  if (length == 0) return key;
  return strncmp(key, prefix, length) == 0 && key[length] == '.' ? key + length + 1 : NULL;
}

bool pl_config_number(const pl_run_config *c, const char *key, double *out) {
  pl_config_part parts[PL_CONFIG_PARTS];
  size_t count = pl_config_parts(c, parts);
  for (size_t i = 0; i < count; i++) {
    const char *name = key_below(key, parts[i].prefix);
    size_t row = name ? pl_params_find(parts[i].table, name) : SIZE_MAX;
    if (row == SIZE_MAX) continue;
    pl_json *value = pl_param_get(&parts[i].table[row], parts[i].config);
    pl_json_kind kind = value ? pl_json_kind_of(value) : PL_JSON_NULL;
    *out = pl_json_number(value);
    pl_json_release(value);
    return kind == PL_JSON_INT || kind == PL_JSON_REAL;
  }
  return false;
}

bool pl_config_text(const pl_run_config *c, const char *key, pl_str *out) {
  pl_config_part parts[PL_CONFIG_PARTS];
  size_t count = pl_config_parts(c, parts);
  if (strcmp(key, "correction") == 0) {
    pl_run_config_correction_name(c, out);
    return true;
  }
  if (strcmp(key, "delay") == 0) {
    pl_run_config_delay_name(c, out);
    return true;
  }
  for (size_t i = 0; i < count; i++) {
    if (parts[i].type && strcmp(key, parts[i].prefix) == 0) {
      pl_str_append(out, parts[i].type);
      return true;
    }
    const char *name = key_below(key, parts[i].prefix);
    size_t row = name ? pl_params_find(parts[i].table, name) : SIZE_MAX;
    if (row == SIZE_MAX) continue;
    pl_config_value(&parts[i], &parts[i].table[row], out);
    return true;
  }
  return false;
}

void pl_config_key(const pl_config_part *part, const pl_param *row, pl_str *out) {
  pl_str_printf(out, "%s%s%s", part->prefix, part->prefix[0] ? "." : "", row ? row->name : "");
}

static bool is_listed(const char *const *keys, const char *key) {
  for (; *keys; keys++)
    if (strcmp(*keys, key) == 0) return true;
  return false;
}

uint64_t pl_config_hash_without(const pl_run_config *c, const char *const *keys, pl_str *scratch) {
  pl_config_part parts[PL_CONFIG_PARTS];
  size_t count = pl_config_parts(c, parts);
  uint64_t hash = 0;
  for (size_t i = 0; i < count; i++) {
    if (parts[i].type && !is_listed(keys, parts[i].prefix))
      hash = pl_hash_join(hash, pl_hash_join(pl_hash_text(parts[i].prefix), pl_hash_text(parts[i].type)));
    for (const pl_param *row = parts[i].table; row->type != PL_END; row++) {
      scratch->length = 0;
      pl_config_key(&parts[i], row, scratch);
      const char *key = pl_str_text(scratch);
      if (row->not_identity || strcmp(key, "seed") == 0 || strcmp(key, "optimizer.lr") == 0 || is_listed(keys, key))
        continue;
      pl_config_value(&parts[i], row, scratch);
      hash = pl_hash_join(hash, pl_hash(pl_str_text(scratch), scratch->length));
    }
  }
  return hash;
}

void pl_config_value(const pl_config_part *part, const pl_param *row, pl_str *out) {
  pl_json *value = pl_param_get(row, part->config);
  if (!value)
    out->failed = true;
  else if (pl_json_kind_of(value) == PL_JSON_STRING)
    pl_str_append(out, pl_json_string(value));
  else
    pl_json_write_canonical(value, out);
  pl_json_release(value);
}
