#include "core/config/run_schedule.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/pipeline/schedule_text.h"

const pl_schedule_type *pl_run_config_schedule_type(const pl_run_config *c) {
  size_t count = 0;
  const pl_schedule_type *const *types = pl_schedule_types(&count);
  return (size_t)c->pipeline.schedule < count ? types[c->pipeline.schedule] : NULL;
}

const char *pl_run_config_schedule_name(const pl_run_config *c) {
  const pl_schedule_type *type = pl_run_config_schedule_type(c);
  return type ? type->name : "custom";
}

bool pl_run_config_in_one_process(const pl_run_config *c) {
  const pl_schedule_type *type = pl_run_config_schedule_type(c);
  return type && type->one_process;
}

size_t pl_run_config_chunks(const pl_run_config *c) {
  const pl_schedule_type *type = pl_run_config_schedule_type(c);
  if (c->pipeline.chunks > 0) return (size_t)c->pipeline.chunks;
  return type ? type->chunks : 1;
}

bool pl_run_config_has_delays(const pl_run_config *c, const int64_t *delay) {
  int64_t own[PL_MAX_STAGES];
  const pl_int_list *list = &c->root.delay;
  if (list->is_list && list->count != (size_t)c->pipeline.stages) return false;
  pl_run_config_delays(c, own);
  for (int64_t p = 0; p < c->pipeline.stages; p++)
    if (own[p] != delay[p]) return false;
  return true;
}

void pl_run_config_set_delays(pl_run_config *c, const int64_t *delay) {
  pl_int_list *list = &c->root.delay;
  *list = (pl_int_list){.count = 1, .word = -1};
  for (int64_t p = 0; p < c->pipeline.stages; p++) {
    list->values[p] = delay[p];
    list->is_list = list->is_list || delay[p] != delay[0];
  }
  if (list->is_list) list->count = (size_t)c->pipeline.stages;
}

pl_status pl_run_config_check_delays(const pl_run_config *c, const char *name, const int64_t *delay, pl_err *e) {
  if (pl_run_config_has_delays(c, delay)) return PL_OK;
  pl_run_config right = *c;
  pl_str seen = {0}, given = {0};
  pl_run_config_set_delays(&right, delay);
  pl_run_config_delay_name(c, &seen);
  pl_run_config_delay_name(&right, &given);
  pl_status st =
      pl_fail(e, PL_BAD, "delay: saw %s, but schedule %s gives %s; allowed: what it gives%s", pl_str_text(&seen), name,
              pl_str_text(&given), pl_run_config_schedule_type(c) ? ", or to leave it out" : "");
  pl_str_free(&seen);
  pl_str_free(&given);
  return st;
}

static pl_status make_named(const pl_run_config *c, const pl_schedule_type *type, pl_schedule *out, pl_err *e) {
  int64_t delay[PL_MAX_STAGES];
  pl_run_config_delays(c, delay);
  const pl_schedule_args args = {.stages = (size_t)c->pipeline.stages,
                                 .microbatches = (size_t)c->pipeline.microbatches,
                                 .chunks = (size_t)c->pipeline.chunks,
                                 .delay = type->takes_delay ? delay : NULL,
                                 .allow_min_microbatches = c->pipeline.allow_min_microbatches};
  return pl_schedule_make(type, &args, out, e);
}

static pl_status check_size(const pl_run_config *c, const pl_schedule *s, pl_err *e) {
  size_t chunks = pl_run_config_chunks(c);
  if (s->stages == (size_t)c->pipeline.stages && s->microbatches == (size_t)c->pipeline.microbatches &&
      pl_schedule_chunks(s) == chunks)
    return PL_OK;
  return pl_fail(e, PL_BAD,
                 "%s is for %zu stages, %zu microbatches and %zu chunks a stage, but pipeline.stages is %" PRId64
                 ", pipeline.microbatches %" PRId64 " and pipeline.chunks %zu; allowed: the same numbers",
                 c->pipeline.schedule_file, s->stages, s->microbatches, pl_schedule_chunks(s), c->pipeline.stages,
                 c->pipeline.microbatches, chunks);
}

static pl_status read_custom(const pl_run_config *c, const char *root, pl_schedule *out, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  *out = (pl_schedule){0};
  if (!c->pipeline.schedule_file)
    PL_TRY(pl_fail(e, PL_BAD, "missing; pipeline.schedule \"custom\" needs the path of a schedule's text form"));
  PL_TRY(pl_path_join(root ? root : "", c->pipeline.schedule_file, &path, e));
  PL_TRY(pl_schedule_read(path, out, e));
  PL_TRY(check_size(c, out, e));
out:
  pl_free(path);
  return st;
}

/* The schedule and what the checker derives of it, which is not needed of lagged: it has its delays by the way it is
 * made. */
static pl_status make(const pl_run_config *c, const char *root, pl_schedule *out, pl_schedule_facts *facts, pl_err *e) {
  const pl_schedule_type *type = pl_run_config_schedule_type(c);
  pl_status st = type ? make_named(c, type, out, e) : read_custom(c, root, out, e);
  if (st == PL_OK && !(type && type->takes_delay)) st = pl_schedule_check(out, facts, e);
  if (st == PL_BAD) pl_err_prefix(e, type ? "pipeline.schedule" : "pipeline.schedule_file");
  return st;
}

pl_status pl_run_config_schedule(const pl_run_config *c, const char *root, pl_schedule *out, pl_err *e) {
  pl_status st = PL_OK;
  const pl_schedule_type *type = pl_run_config_schedule_type(c);
  pl_schedule_facts *facts = NULL;
  *out = (pl_schedule){0};
  PL_TRY(pl_alloc(1, sizeof *facts, "a schedule's delays", &facts, e));
  PL_TRY(make(c, root, out, facts, e));
  if (!type || !type->takes_delay) PL_TRY(pl_run_config_check_delays(c, out->name, facts->delay, e));
out:
  pl_free(facts);
  return st;
}

static pl_status derive(const pl_run_config *c, const char *root, pl_run_facts *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_schedule *s = NULL;
  pl_schedule_facts *facts = NULL;
  *out = (pl_run_facts){.slack = {.exists = true}};
  PL_TRY(pl_alloc(1, sizeof *s, "a schedule", &s, e));
  PL_TRY(pl_alloc(1, sizeof *facts, "a schedule's delays", &facts, e));
  PL_TRY(make(c, root, s, facts, e));
  memcpy(out->name, s->name, sizeof out->name);
  memcpy(out->delay, facts->delay, (size_t)c->pipeline.stages * sizeof *out->delay);
  if (!pl_run_config_in_one_process(c)) PL_TRY(pl_schedule_slack(s, &out->slack, e));
out:
  if (s) pl_schedule_free(s);
  pl_free(s);
  pl_free(facts);
  return st;
}

static struct pl_run_known *recall(pl_run_memo *memo, const int64_t key[5]) {
  for (size_t i = 0; i < memo->count; i++)
    if (memcmp(memo->known[i].key, key, sizeof memo->known[i].key) == 0) return &memo->known[i];
  return NULL;
}

pl_status pl_run_config_facts(const pl_run_config *c, const char *root, pl_run_memo *memo, pl_run_facts *out,
                              pl_err *e) {
  const pl_pipeline_config *p = &c->pipeline;
  if (!memo || !pl_run_config_schedule_type(c)) return derive(c, root, out, e);
  struct pl_run_known new = {.key = {p->schedule, p->stages, p->microbatches, p->chunks, p->allow_min_microbatches}};
  struct pl_run_known *known = recall(memo, new.key);
  if (!known) {
    pl_status st = derive(c, root, &new.facts, &new.refused);
    if (st == PL_FAIL) return pl_fail(e, st, "%s", new.refused.text);
    known = &memo->known[memo->next];
    *known = new;
    memo->next = (memo->next + 1) % PL_RUN_MEMO;
    if (memo->count < PL_RUN_MEMO) memo->count++;
  }
  *out = known->facts;
  return known->refused.status == PL_OK ? PL_OK : pl_fail(e, known->refused.status, "%s", known->refused.text);
}
