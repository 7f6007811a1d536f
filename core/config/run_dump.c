#include <stdio.h>
#include <string.h>

#include "core/config/run_parts.h"

const pl_config_tables *pl_run_config_tables(const pl_run_config *c) {
  static const pl_config_tables all = {pl_root_params, pl_train_params, pl_pipeline_params};
  return c->tables ? c->tables : &all;
}

static pl_json *dump_table(const pl_param *table, const void *config) {
  pl_json *object = pl_json_new_object();
  return pl_json_keep(object, object && pl_params_dump(table, config, object));
}

static pl_json *dump_section(const pl_section *section) {
  pl_json *object = pl_json_new_object();
  bool ok = pl_json_set(object, "type", pl_json_new_string(section->type->name)) &&
            pl_params_dump(section->type->params, section->config, object);
  return pl_json_keep(object, ok);
}

/* "none", one object, or a list of them. */
static pl_json *dump_chain(const pl_run_config *c) {
  if (c->correction_count == 0) return pl_json_new_string("none");
  if (c->correction_count == 1) return dump_section(&c->corrections[0]);
  pl_json *list = pl_json_new_array();
  bool ok = list != NULL;
  for (size_t i = 0; ok && i < c->correction_count; i++) ok = pl_json_append(list, dump_section(&c->corrections[i]));
  return pl_json_keep(list, ok);
}

pl_json *pl_run_config_dump(const pl_run_config *c) {
  const pl_config_tables *t = pl_run_config_tables(c);
  pl_json *run = pl_json_new_object(), *train = dump_table(t->train, &c->train);
  bool ok = run && pl_params_dump(t->root, &c->root, run) && pl_json_set(run, "model", dump_section(&c->model)) &&
            pl_json_set(run, "data", dump_section(&c->data)) &&
            pl_json_set(run, "optimizer", dump_section(&c->optimizer)) &&
            pl_json_set(run, "correction", dump_chain(c)) &&
            pl_json_set(run, "pipeline", dump_table(t->pipeline, &c->pipeline)) &&
            pl_json_set(train, "lr_schedule", dump_section(&c->lr_schedule));
  ok = pl_json_set(run, "train", train) && ok;
  return pl_json_keep(run, ok);
}

static uint64_t section_identity(const pl_section *section, const char *path) {
  uint64_t type = pl_hash_join(pl_hash_text(path), pl_hash_text(section->type->name));
  return type + pl_params_identity(section->type->params, section->config, path);
}

/* An imported run is never the same as one that pipelag trained. */
uint64_t pl_run_config_id(const pl_run_config *c) {
  const pl_config_tables *t = pl_run_config_tables(c);
  uint64_t sum = (c->tables ? pl_hash_text("imported") : 0) +
                 pl_params_identity(t->root, &c->root, pl_part_paths[PL_PART_ROOT]) +
                 pl_params_identity(t->train, &c->train, pl_part_paths[PL_PART_TRAIN]) +
                 pl_params_identity(t->pipeline, &c->pipeline, pl_part_paths[PL_PART_PIPELINE]) +
                 section_identity(&c->model, pl_part_paths[PL_PART_MODEL]) +
                 section_identity(&c->data, pl_part_paths[PL_PART_DATA]) +
                 section_identity(&c->optimizer, pl_part_paths[PL_PART_OPTIMIZER]) +
                 section_identity(&c->lr_schedule, pl_part_paths[PL_PART_LR_SCHEDULE]);
  for (size_t i = 0; i < c->correction_count; i++) sum += section_identity(&c->corrections[i], pl_correction_paths[i]);
  return pl_hash_join(sum, PL_ALGORITHM);
}

void pl_run_config_delays(const pl_run_config *c, int64_t *delay) {
  const pl_int_list *list = &c->root.delay;
  int64_t stages = c->pipeline.stages;
  for (int64_t p = 0; p < stages; p++) {
    size_t last = list->count > 0 ? list->count - 1 : 0;
    delay[p] = list->count == 0 ? stages - 1 - p : list->values[(size_t)p < last ? (size_t)p : last];
  }
}

void pl_run_config_correction_name(const pl_run_config *c, pl_str *out) {
  if (c->correction_count == 0) pl_str_append(out, "none");
  for (size_t i = 0; i < c->correction_count; i++) {
    if (i > 0) pl_str_append(out, "+");
    pl_str_append(out, c->corrections[i].type->name);
  }
}

void pl_run_config_delay_name(const pl_run_config *c, pl_str *out) {
  const pl_param *row = &pl_root_params[pl_params_find(pl_root_params, "delay")];
  pl_json *value = pl_param_get(row, &c->root);
  if (pl_json_string(value))
    pl_str_append(out, pl_json_string(value));
  else
    pl_json_write_canonical(value, out);
  out->failed |= !value;
  pl_json_release(value);
}

double pl_run_config_lr(const pl_run_config *c) {
  double lr;
  memcpy(&lr, c->optimizer.config, sizeof lr);
  return lr;
}
