#include <string.h>

#include "core/base/memory.h"
#include "core/pipeline/rounds.h"
#include "core/pipeline/world.h"

struct pl_gather {
  pl_rounds rounds;
};

struct pl_sum {
  char nothing;
};

static pl_status agree(pl_world *w, pl_status mine, pl_err *e) {
  (void)w;
  (void)e;
  return mine;
}

static pl_status share(pl_world *w, pl_str *text, pl_err *e) {
  (void)w;
  return pl_str_check(text, e);
}

static void gather_close(pl_gather *g) {
  if (!g) return;
  pl_rounds_close(&g->rounds);
  pl_free(g);
}

static pl_status gather_open(pl_world *w, const size_t *count, size_t window, pl_gather **out, pl_err *e) {
  (void)w;
  pl_status st = PL_OK;
  pl_gather *g = NULL;
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *g, "a gather", &g, e));
  PL_TRY(pl_rounds_open(count[0], window, &g->rounds, e));
  *out = g;
out:
  if (st != PL_OK) gather_close(g);
  return st;
}

static pl_status gather_post(pl_gather *g, const double *own, pl_err *e) {
  size_t place = 0;
  pl_status st = pl_rounds_post(&g->rounds, &place, e);
  if (st == PL_OK && g->rounds.size > 0) memcpy(pl_rounds_at(&g->rounds, place), own, g->rounds.size * sizeof *own);
  return st;
}

static const double *gather_next(pl_gather *g) {
  size_t place = 0;
  return pl_rounds_oldest(&g->rounds, &place) ? pl_rounds_at(&g->rounds, place) : NULL;
}

static void gather_pop(pl_gather *g) { pl_rounds_pop(&g->rounds); }

/* The sum over one process is what is there. */
static pl_status sum_open(pl_world *w, pl_device *device, const size_t *ranks, size_t count, size_t size, pl_sum **out,
                          pl_err *e) {
  (void)w;
  (void)device;
  (void)ranks;
  (void)count;
  (void)size;
  return pl_alloc(1, sizeof **out, "a sum", out, e);
}

static pl_status sum_begin(pl_sum *s, pl_real *array, pl_err *e) {
  (void)s;
  (void)array;
  (void)e;
  return PL_OK;
}

static pl_status sum_ready(pl_sum *s, bool *ready, pl_err *e) {
  (void)s;
  (void)e;
  *ready = true;
  return PL_OK;
}

static void sum_close(pl_sum *s) { pl_free(s); }

static pl_status transport(pl_world *w, const pl_grid *g, const pl_transport_args *args, pl_transport **out,
                           pl_err *e) {
  (void)w;
  (void)g;
  return pl_transport_local(args, out, e);
}

static pl_status progress(pl_world *w, pl_err *e) {
  (void)w;
  (void)e;
  return PL_OK;
}

static void leave_it_to_the_caller(pl_world *w, int exit_status, const char *sentence) {
  (void)w;
  (void)exit_status;
  (void)sentence;
}

static void close(pl_world *w) { pl_free(w); }

static const pl_world_type local_type = {.name = "local",
                                         .agree = agree,
                                         .share = share,
                                         .gather_open = gather_open,
                                         .gather_post = gather_post,
                                         .gather_next = gather_next,
                                         .gather_pop = gather_pop,
                                         .gather_close = gather_close,
                                         .sum_open = sum_open,
                                         .sum_begin = sum_begin,
                                         .sum_ready = sum_ready,
                                         .sum_close = sum_close,
                                         .transport = transport,
                                         .progress = progress,
                                         .abort = leave_it_to_the_caller,
                                         .close = close};

pl_status pl_world_alone(pl_world **out, pl_err *e) {
  pl_status st = pl_alloc(1, sizeof **out, "the processes", out, e);
  if (st == PL_OK) **out = (pl_world){.type = &local_type, .size = 1};
  return st;
}
