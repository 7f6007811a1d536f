/* Which layers a run's stages have, and how evenly that spreads the work. */
#include <stdio.h>

#include "core/base/memory.h"
#include "core/config/run_schedule.h"
#include "core/train/partition.h"
#include "runners/progress.h"
#include "runners/say.h"
#include "runners/schedule_model.h"

/* A partition; `stages` are the virtual ones. */
typedef struct division {
  const char *name;
  size_t first[PL_MAX_STAGES + 1];
  double flops[PL_MAX_STAGES];
  size_t parameters[PL_MAX_STAGES];
  double mean, largest;
} division;

typedef struct view {
  const pl_run_config *config;
  const pl_pieces *pieces;
  size_t stages, chunks;
  division own, other;
} view;

static void measure(const view *v, division *d) {
  const size_t count = v->stages * v->chunks;
  d->mean = d->largest = 0;
  for (size_t p = 0; p < count; p++) {
    for (size_t i = d->first[p]; i < d->first[p + 1]; i++) {
      d->flops[p] += v->pieces->items[i].time.forward;
      d->parameters[p] += v->pieces->items[i].parameters;
    }
    d->mean += d->flops[p] / (double)count;
    if (d->flops[p] > d->largest) d->largest = d->flops[p];
  }
}

/* The run's partition, and beside it the even one, or the balanced one when the run's is even. */
static pl_status divide(view *v, pl_err *e) {
  pl_status st = PL_OK;
  const pl_int_list *wanted = &v->config->pipeline.partition;
  const bool even = wanted->count == 0 && wanted->word == PL_PARTITION_EVEN;
  pl_pieces balanced = *v->pieces;
  balanced.config = NULL;
  v->own.name = wanted->count > 0 ? "as listed" : even ? "even" : "flops";
  v->other.name = even ? "flops" : "even";
  PL_TRY(pl_pieces_split(v->pieces, v->stages, v->chunks, v->own.first, e));
  if (even)
    PL_TRY(pl_pieces_split(&balanced, v->stages, v->chunks, v->other.first, e));
  else
    PL_TRY(pl_partition_even(v->pieces->count, v->stages * v->chunks, v->other.first, e));
  measure(v, &v->own);
  measure(v, &v->other);
out:
  return st;
}

static double share(const division *d, size_t count, size_t p) { return d->flops[p] / (d->mean * (double)count); }

static void write_range(const division *d, size_t p, char *out, size_t size) {
  size_t first = d->first[p], last = d->first[p + 1] - 1;
  if (first == last)
    snprintf(out, size, "%zu", first);
  else
    snprintf(out, size, "%zu-%zu", first, last);
}

static void write_row(const view *v, size_t p, pl_str *out) {
  const size_t count = v->stages * v->chunks;
  char own[48], other[48], stage[48], flops[16], parameters[16];
  write_range(&v->own, p, own, sizeof own);
  write_range(&v->other, p, other, sizeof other);
  if (v->chunks > 1)
    snprintf(stage, sizeof stage, "%zu:%zu", p % v->stages, p / v->stages);
  else
    snprintf(stage, sizeof stage, "%zu", p);
  pl_str_printf(out, "%-6s %-10s %10s %13s %6.1f%%    %-10s %6.1f%%\n", stage, own,
                pl_format_count((double)v->own.parameters[p], parameters), pl_format_count(v->own.flops[p], flops),
                100 * share(&v->own, count, p), other, 100 * share(&v->other, count, p));
}

static void write_text(const view *v, const char *path, pl_str *out) {
  const size_t count = v->stages * v->chunks;
  pl_str_printf(out, "%s: %s, %zu layers in %zu stage%s", path, v->config->model.type->name, v->pieces->count,
                v->stages, v->stages == 1 ? "" : "s");
  if (v->chunks > 1) pl_str_printf(out, " of %zu chunks", v->chunks);
  pl_str_printf(out, ", pipeline.partition %s\n\n", v->own.name);
  pl_str_printf(out, "%-6s %-10s %10s %13s %7s    %-10s %7s\n", "stage", "layers", "parameters", "FLOPs/token", "share",
                v->other.name, "share");
  for (size_t p = 0; p < count; p++) write_row(v, p, out);
  pl_str_printf(out,
                "\nbalance (largest / mean): %.3f; %s: %.3f\nFLOPs: multiply-adds times 2 of a forward; the embedding "
                "is with the first layer, the head with the last%s\n",
                v->own.largest / v->own.mean, v->other.name, v->other.largest / v->other.mean,
                v->chunks > 1 ? "; stage:chunk" : "");
}

static pl_json *division_json(const view *v, const division *d) {
  const size_t count = v->stages * v->chunks;
  pl_json *out = pl_json_new_object(), *stages = pl_json_new_array();
  bool whole = true;
  for (size_t p = 0; p < count && whole; p++) {
    pl_json *row = pl_json_new_object();
    bool ok = pl_json_set(row, "stage", pl_json_new_int((int64_t)(p % v->stages))) &&
              pl_json_set(row, "chunk", pl_json_new_int((int64_t)(p / v->stages))) &&
              pl_json_set(row, "first_layer", pl_json_new_int((int64_t)d->first[p])) &&
              pl_json_set(row, "layers", pl_json_new_int((int64_t)(d->first[p + 1] - d->first[p]))) &&
              pl_json_set(row, "parameters", pl_json_new_int((int64_t)d->parameters[p])) &&
              pl_json_set(row, "flops_per_token", pl_json_new_number(d->flops[p])) &&
              pl_json_set(row, "share", pl_json_new_number(share(d, count, p)));
    whole = pl_json_append(stages, pl_json_keep(row, ok));
  }
  whole = pl_json_set(out, "partition", pl_json_new_string(d->name)) && whole;
  whole = pl_json_set(out, "balance", pl_json_new_number(d->largest / d->mean)) && whole;
  whole = pl_json_set(out, "by_stage", stages) && whole;
  return pl_json_keep(out, whole);
}

static pl_status write_json(const view *v, pl_str *out, pl_err *e) {
  pl_json *json = pl_json_new_object();
  bool whole = pl_json_set(json, "model", pl_json_new_string(v->config->model.type->name)) &&
               pl_json_set(json, "layers", pl_json_new_int((int64_t)v->pieces->count)) &&
               pl_json_set(json, "stages", pl_json_new_int((int64_t)v->stages)) &&
               pl_json_set(json, "chunks", pl_json_new_int((int64_t)v->chunks)) &&
               pl_json_set(json, "own", division_json(v, &v->own)) &&
               pl_json_set(json, "beside", division_json(v, &v->other));
  if (whole) pl_json_write_pretty(json, out);
  pl_json_release(json);
  return whole ? PL_OK : pl_fail(e, PL_FAIL, "out of memory for the partition");
}

pl_status pl_schedule_partition(const pl_options *o, pl_err *e) {
  pl_status st = PL_OK;
  pl_schedule_model m;
  pl_pieces pieces = {0};
  pl_str out = {0};
  view *v = NULL;
  PL_TRY(pl_schedule_model_open(o, true, &m, e));
  PL_TRY(pl_schedule_model_pieces(&m, &pieces, e));
  PL_TRY(pl_alloc(1, sizeof *v, "the partition", &v, e));
  v->config = m.config;
  v->pieces = &pieces;
  v->stages = (size_t)m.config->pipeline.stages;
  v->chunks = pl_run_config_chunks(m.config);
  PL_TRY(divide(v, e));
  if (o->json)
    PL_TRY(write_json(v, &out, e));
  else
    write_text(v, o->schedule.model, &out);
  PL_TRY(pl_print(&out, e));
out:
  pl_str_free(&out);
  pl_free(v);
  pl_pieces_free(&pieces);
  pl_schedule_model_close(&m);
  return st;
}
