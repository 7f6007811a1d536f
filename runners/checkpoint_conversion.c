#include "runners/checkpoint_conversion.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/config/run_schedule.h"

/* What of a run may change with its number of stages. */
static bool may_change(const char *key) {
  static const char *const keys[] = {"delay=", "name=", "notes="};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (strncmp(key, keys[i], strlen(keys[i])) == 0) return true;
  return strncmp(key, "pipeline.", 9) == 0 && strncmp(key, "pipeline.stages=", 16) != 0;
}

static pl_status check_use(const pl_options *o, pl_err *e) {
  if (o->schedule.stages == 0)
    return pl_fail(e, PL_BAD, "checkpoint repartition: --stages is missing; allowed: a whole number from 1");
  for (size_t i = 0; i < o->set_count; i++)
    if (!may_change(o->set_texts[i]))
      return pl_fail(e, PL_BAD,
                     "--set: saw \"%.100s\", but this stays the same run but for its stages; allowed: pipeline.* other "
                     "than pipeline.stages, delay, name, notes",
                     o->set_texts[i]);
  return PL_OK;
}

static bool is_set(const pl_options *o, const char *key) {
  const size_t length = strlen(key);
  for (size_t i = 0; i < o->set_count; i++)
    if (strncmp(o->set_texts[i], key, length) == 0 && o->set_texts[i][length] == '=') return true;
  return false;
}

/* What was written down for one number of stages must be written down again for another. */
static pl_status check_lists(const pl_options *o, const pl_run_config *c, pl_err *e) {
  const bool derived = pl_run_config_schedule_type(c) && !pl_run_config_schedule_type(c)->takes_delay;
  const struct {
    bool there;
    const char *key, *value;
  } lists[] = {{c->pipeline.partition.count > 0, "pipeline.partition", "[1,1,...]"},
               {c->root.delay.is_list && !derived, "delay", "[1,1,...]"},
               {c->pipeline.schedule_file != NULL, "pipeline.schedule_file", "FILE"}};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    if (lists[i].there && !is_set(o, lists[i].key))
      return pl_fail(e, PL_BAD, "%s: the run's is for %" PRId64 " stages; allowed: one for %zu, with --set '%s=%s'",
                     lists[i].key, c->pipeline.stages, o->schedule.stages, lists[i].key, lists[i].value);
  return PL_OK;
}

/* The run's configuration with the new number of stages and a name of its own. A delay that follows from the schedule
 * follows anew. */
static pl_json *make_document(const pl_options *o, const pl_checkpoint_source *from) {
  const pl_schedule_type *type = pl_run_config_schedule_type(from->config);
  const bool derived = type && !type->takes_delay;
  pl_json *out = pl_json_new_object(), *whole = pl_json_copy(from->document);
  pl_str name = {0};
  bool ok = out && whole;
  for (void *it = pl_json_iter(whole); it && ok; it = pl_json_iter_next(whole, it))
    if (!(derived && strcmp(pl_json_iter_key(it), "delay") == 0))
      ok = pl_json_set(out, pl_json_iter_key(it), pl_json_retain(pl_json_iter_value(it)));
  pl_str_printf(&name, "%s-run%" PRIu64 "-stages%zu", from->name, from->index, o->schedule.stages);
  ok = ok && !name.failed && pl_json_set(out, "name", pl_json_new_string(pl_str_text(&name))) &&
       pl_json_set_path(out, "pipeline.stages", pl_json_new_int((int64_t)o->schedule.stages));
  pl_str_free(&name);
  pl_json_release(whole);
  return pl_json_keep(out, ok);
}

/* The plan's only run, in memory of its own: the sweep's is gone when the plan is frozen. */
static pl_status keep_config(pl_conversion *c, const char *path, pl_err *e) {
  pl_status st = PL_OK;
  const pl_sweep_run *run = NULL;
  pl_sweep_rewind(c->plan.sweep);
  PL_TRY(pl_sweep_next(c->plan.sweep, &run, e));
  if (!run || c->plan.count != 1)
    PL_TRY(pl_fail(e, PL_BAD, "--set: gives %zu runs; allowed: one value for each key", c->plan.count));
  if (run->id == c->from.id)
    PL_TRY(pl_fail(e, PL_BAD, "--stages: saw %" PRId64 ", which run %s has; allowed: another number",
                   run->config->pipeline.stages, c->from.hex));
  c->document = pl_run_config_dump(run->config);
  if (!c->document) PL_TRY(pl_fail(e, PL_FAIL, "out of memory for a configuration"));
  PL_TRY(pl_alloc(1, sizeof *c->config, "a configuration", &c->config, e));
  PL_TRY(pl_run_config_from_json(&c->plan.registries, c->document, path, c->config, e));
out:
  return st;
}

static pl_status make_plan(const pl_options *o, pl_conversion *c, pl_err *e) {
  pl_status st = PL_OK;
  pl_json *document = NULL;
  char *path = NULL;
  PL_TRY(check_lists(o, c->from.config, e));
  PL_TRY(pl_run_path(c->from.dir, c->from.id, "config.json", &path, e));
  document = make_document(o, &c->from);
  if (!document) PL_TRY(pl_fail(e, PL_FAIL, "out of memory for a configuration"));
  PL_TRY(pl_plan_make_from(o, document, path, c->from.dir, &c->plan, e));
  PL_TRY(keep_config(c, path, e));
  c->dir = c->plan.dir;
  c->plan.dir = NULL;
  for (size_t n = strlen(c->dir); n > 1 && c->dir[n - 1] == '/'; n--) c->dir[n - 1] = '\0';
  if (pl_path_exists(c->dir))
    st = pl_fail(e, PL_BAD, "%s: is there already; allowed: a new directory (-o DIR)", c->dir);
out:
  pl_json_release(document);
  pl_free(path);
  return st;
}

static void judge(pl_conversion *c) {
  const pl_run_config *a = c->from.config, *b = c->config;
  if (b->train.clip > 0 && b->train.clip_scope == PL_CLIP_STAGE)
    c->why = "train.clip_scope is stage: from here on norms are those of the new stages";
  else if (a->pipeline.microbatches != b->pipeline.microbatches || a->pipeline.replicas != b->pipeline.replicas)
    c->why = "other microbatches or replicas: sums are rounded in another order from here on";
  else if (!pl_run_config_schedule_type(a) || !pl_run_config_schedule_type(b))
    c->why = "a custom schedule: whether it reads the same versions as before is not checked";
  c->bitwise = !c->work.restart_ring && !c->why;
}

static pl_status open_target(pl_conversion *c, pl_err *e) {
  pl_status st = pl_alloc(1, sizeof *c->saved, "a checkpoint", &c->saved, e);
  if (st != PL_OK) return st;
  const pl_saved_args args = {
      .config = c->config, .root = c->plan.data_root, .vocab = c->from.vocab, .device = c->from.device};
  return pl_saved_open(&args, c->saved, e);
}

pl_status pl_conversion_plan(const pl_options *o, pl_conversion *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_conversion){0};
  PL_TRY(check_use(o, e));
  PL_TRY(pl_checkpoint_source_open(o, &out->from, e));
  PL_TRY(make_plan(o, out, e));
  PL_TRY(open_target(out, e));
  out->work = (pl_repartition){.from = out->from.saved, .to = out->saved, .restart_ring = o->restart_ring};
  PL_TRY(pl_repartition_check(&out->work, e));
  judge(out);
out:
  return st;
}

void pl_conversion_close(pl_conversion *c) {
  if (c->saved) pl_saved_close(c->saved);
  pl_free(c->saved);
  pl_free(c->config);
  pl_json_release(c->document);
  pl_plan_free(&c->plan);
  pl_free(c->dir);
  pl_checkpoint_source_close(&c->from);
  *c = (pl_conversion){0};
}
