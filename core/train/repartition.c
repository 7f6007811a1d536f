#include "core/train/repartition.h"

#include <inttypes.h>

#include "core/config/run_schedule.h"
#include "core/train/checkpoint.h"

static pl_status check_segments(const pl_repartition *r, pl_err *e) {
  for (size_t q = 0; q < r->to->stages; q++)
    for (size_t i = 0; i < r->to->layout[q]->count; i++) {
      const pl_segment *g = &r->to->layout[q]->segments[i];
      size_t p = 0;
      const pl_segment *found = pl_saved_find(r->from, g->name, &p);
      if (!found || found->rows != g->rows || found->cols != g->cols)
        return pl_fail(e, PL_BAD, "the checkpoint has no segment %s of %zu x %zu; allowed: the data that the run had",
                       g->name, g->rows, g->cols);
    }
  return PL_OK;
}

static bool is_uniform(const pl_saved *s) {
  for (size_t i = 1; i < s->stages; i++)
    if (s->delay[i] != s->delay[0]) return false;
  return true;
}

/* Layers that move to a stage of another delay would read versions that nobody kept, and their corrections would look
 * back by another distance. */
static pl_status check_delays(const pl_repartition *r, pl_err *e) {
  const pl_run_config *from = r->from->args.config, *to = r->to->args.config;
  pl_str before = {0}, after = {0};
  if (is_uniform(r->from) && is_uniform(r->to) && r->from->delay[0] == r->to->delay[0]) return PL_OK;
  pl_run_config_delay_name(from, &before);
  pl_run_config_delay_name(to, &after);
  pl_status st = pl_fail(
      e, PL_BAD,
      "pipeline.stages: %" PRId64 " stages of %s have the delays %.80s and %" PRId64
      " of %s have %.80s, so layers move to another delay, for which the checkpoint has no weight versions; allowed: a "
      "schedule with one delay for every stage and every number of stages (gpipe, 1f1b, 2bw, ...), or --restart-ring",
      from->pipeline.stages, pl_run_config_schedule_name(from), pl_str_text(&before), to->pipeline.stages,
      pl_run_config_schedule_name(to), pl_str_text(&after));
  pl_str_free(&before);
  pl_str_free(&after);
  return st;
}

static int64_t oldest_version(int64_t newest, size_t depth) {
  int64_t oldest = newest - (int64_t)depth + 1;
  return oldest > 0 ? oldest : 0;
}

static pl_status check_versions(const pl_repartition *r, pl_err *e) {
  const int64_t newest = r->from->counters.step;
  size_t least = r->from->depth[0], most = r->to->depth[0];
  for (size_t p = 1; p < r->from->stages; p++)
    if (r->from->depth[p] < least) least = r->from->depth[p];
  for (size_t q = 1; q < r->to->stages; q++)
    if (r->to->depth[q] > most) most = r->to->depth[q];
  if (oldest_version(newest, least) <= oldest_version(newest, most)) return PL_OK;
  return pl_fail(e, PL_BAD,
                 "pipeline.schedule: weights of version %" PRId64
                 " will be read, but the checkpoint's are from version %" PRId64
                 " on; allowed: a schedule that reads back as far as before, or --restart-ring",
                 oldest_version(newest, most), oldest_version(newest, least));
}

static size_t all_arrays(const pl_saved *s, size_t stage) {
  const pl_run_config *c = s->args.config;
  size_t sum = 0;
  for (size_t k = 0; k < c->correction_count; k++) sum += pl_correction_arrays(c, k, s->delay[stage]);
  return sum;
}

/* Corrections find their state by the number of calls before. */
static bool same_state(const pl_repartition *r, size_t p, size_t q, int64_t calls) {
  const pl_run_config *c = r->to->args.config;
  for (size_t k = 0; k < c->correction_count; k++)
    if (pl_correction_arrays(c, k, r->from->delay[p]) != pl_correction_arrays(c, k, r->to->delay[q])) return false;
  return r->from->stage[p].delayed == calls;
}

/* Whether all layers of a stage bring the same kind of state; *calls: of its corrections before. */
static bool keeps_state(const pl_repartition *r, size_t q, int64_t *calls) {
  for (size_t i = 0; i < r->to->layout[q]->count; i++) {
    size_t p = 0;
    (void)pl_saved_find(r->from, r->to->layout[q]->segments[i].name, &p);
    if (i == 0) *calls = r->from->stage[p].delayed;
    if (!same_state(r, p, q, *calls)) return false;
  }
  return true;
}

bool pl_repartition_drops_state(const pl_repartition *r, size_t stage) {
  int64_t calls = 0;
  bool any = all_arrays(r->to, stage) > 0;
  for (size_t i = 0; i < r->to->layout[stage]->count && !any; i++) {
    size_t p = 0;
    (void)pl_saved_find(r->from, r->to->layout[stage]->segments[i].name, &p);
    any = all_arrays(r->from, p) > 0;
  }
  return any && !keeps_state(r, stage, &calls);
}

static pl_status check_state(const pl_repartition *r, pl_err *e) {
  for (size_t q = 0; q < r->to->stages; q++)
    if (pl_repartition_drops_state(r, q))
      return pl_fail(e, PL_BAD,
                     "pipeline.stages: layers of stage %zu come from stages whose corrections began at different "
                     "updates; allowed: --restart-ring",
                     q);
  return PL_OK;
}

pl_status pl_repartition_check(const pl_repartition *r, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(check_segments(r, e));
  if (r->restart_ring) goto out;
  PL_TRY(check_delays(r, e));
  PL_TRY(check_versions(r, e));
  PL_TRY(check_state(r, e));
out:
  return st;
}

static void move(const pl_segment *source, const pl_real *from, const pl_segment *g, const pl_stage *stage,
                 pl_real *to) {
  stage->device->ops->copy(stage->device, to + g->offset, from + source->offset, g->rows * g->cols * sizeof *to);
}

/* Versions from before the start are read by nobody. */
static void move_versions(const pl_repartition *r, const pl_segment *source, const pl_stage *from, const pl_segment *g,
                          pl_stage *to) {
  const int64_t newest = to->ring.newest;
  for (int64_t v = newest; v >= oldest_version(newest, to->ring.depth); v--)
    move(source, pl_ring_at(&from->ring, r->restart_ring ? newest : v), g, to, pl_ring_at(&to->ring, v));
}

static void fill(const pl_repartition *r, size_t q) {
  pl_stage *to = &r->to->stage[q];
  const size_t optimizer = ((const pl_optimizer_type *)r->to->args.config->optimizer.type)->state_arrays;
  int64_t calls = 0;
  const bool keeps = keeps_state(r, q, &calls);
  const size_t states = optimizer + (keeps ? all_arrays(r->to, q) : 0);
  to->ring.newest = r->from->counters.step;
  to->applied = r->from->counters.applied;
  to->delayed = keeps ? calls : 0;
  for (size_t i = 0; i < to->layout->count; i++) {
    const pl_segment *g = &to->layout->segments[i];
    size_t p = 0;
    const pl_segment *source = pl_saved_find(r->from, g->name, &p); /* a tied copy's is its original */
    const pl_stage *from = &r->from->stage[p];
    move_versions(r, source, from, g, to);
    for (size_t k = 0; k < states; k++) move(source, from->state[k], g, to, to->state[k]);
  }
}

static pl_status write_stage(const pl_repartition *r, size_t q, const char *folder, uint64_t *checksum, pl_err *e) {
  pl_status st = PL_OK;
  pl_checkpoints c = {0};
  PL_TRY(pl_saved_hold(r->to, q, e));
  fill(r, q);
  PL_TRY(pl_checkpoints_open(r->to->args.config, r->to->stage, r->to->stages, folder, &c, e));
  PL_TRY(pl_checkpoints_write(&c, q, checksum, e));
out:
  pl_checkpoints_close(&c);
  pl_saved_drop(r->to, q);
  return st;
}

pl_status pl_repartition_write(const pl_repartition *r, const char *folder, pl_err *e) {
  pl_status st = PL_OK;
  uint64_t checksums[PL_MAX_STAGES];
  pl_checkpoints c = {0};
  for (size_t q = 0; q < r->to->stages; q++) PL_TRY(write_stage(r, q, folder, &checksums[q], e));
  PL_TRY(pl_checkpoints_open(r->to->args.config, r->to->stage, r->to->stages, folder, &c, e));
  PL_TRY(pl_checkpoints_publish(&c, &r->from->counters, checksums, NULL, e));
out:
  pl_checkpoints_close(&c);
  return st;
}
