#include "core/device/cpu/threaded.h"

#include <stdio.h>

#include "core/base/memory.h"

typedef struct region {
  pl_threaded *t;
  size_t tasks, units, grain;
  pl_threaded_work *work;
  const void *args;
} region;

/* Where the part of a thread begins: grains are dealt out evenly. */
static size_t bound(const region *r, size_t thread) {
  const size_t grains = (r->units + r->grain - 1) / r->grain, at = grains * thread / r->tasks * r->grain;
  return at < r->units ? at : r->units;
}

static void work_on_part(void *arg, size_t thread) {
  const region *r = arg;
  if (thread >= r->tasks) return;
  const size_t first = bound(r, thread), end = bound(r, thread + 1);
  if (first < end) r->work(&r->t->parts[thread], thread, r->args, first, end);
}

void pl_threaded_split(pl_device *d, double tasks, size_t units, size_t grain, pl_threaded_work *work,
                       const void *args) {
  pl_threaded *t = d->state;
  region r = {.t = t, .tasks = t->threads, .units = units, .grain = grain, .work = work, .args = args};
  if (tasks < (double)t->threads) r.tasks = (size_t)tasks;
  if (r.tasks > 1 && units > grain)
    pl_team_run(t->team, work_on_part, &r);
  else
    work(&t->parts[0], 0, args, 0, units);
}

static void close_all(pl_threaded *t) {
  if (!t) return;
  pl_team_free(t->team);
  for (size_t i = 0; i < t->threads; i++) pl_cpu_close_part(&t->parts[i]);
  pl_free(t);
}

/* The parts' table has no product by the BLAS, attention's neither. */
static void make_tables(pl_threaded *t, pl_precision precision) {
  const pl_cpu_state *one = t->parts[0].state;
  t->part_ops = *t->parts[0].ops;
  t->part_ops.gemm = one->parts->gemm_packed;
  if (precision == PL_PRECISION_FP32) t->part_ops.gemm_low = one->parts->gemm_packed;
  for (size_t i = 0; i < t->threads; i++) t->parts[i].ops = &t->part_ops;
  t->ops = t->part_ops;
  t->ops.stretch *= 4 * t->threads; /* a region costs more than a call */
  pl_threaded_products(&t->ops);
  pl_threaded_rows(&t->ops);
}

pl_status pl_threaded_open(pl_device *d, pl_err *e) {
  pl_status st = PL_OK;
  pl_threaded *t = NULL;
  PL_TRY(pl_alloc(1, sizeof *t + d->threads * sizeof *t->parts, "the device", &t, e));
  for (; t->threads < d->threads; t->threads++) {
    pl_device *part = &t->parts[t->threads];
    part->precision = d->precision;
    part->threads = 1;
    PL_TRY(pl_cpu_open_part(part, e));
  }
  PL_TRY(pl_team_new(d->threads, &t->team, e));
  make_tables(t, d->precision);
  snprintf(d->kernel, sizeof d->kernel, "%.56s, %zu threads, packed products", t->parts[0].kernel, t->threads);
  d->ops = &t->ops;
  d->state = t;
  t = NULL;
out:
  close_all(t);
  return st;
}

void pl_threaded_close(pl_device *d) { close_all(d->state); }
