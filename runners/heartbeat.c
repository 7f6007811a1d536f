#include "runners/heartbeat.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "results/run_dir.h"

struct pl_heartbeat {
  char *path;
  double interval;        /* seconds */
  _Atomic double checked; /* clock: when the claim was seen to be this process's */
  atomic_bool lost;
  pthread_t thread;
  bool started, ending; /* ending: under the mutex */
  pthread_mutex_t mutex;
  pthread_cond_t wake;
};

static bool note(pl_heartbeat *h, bool owns) {
  if (!owns) atomic_store(&h->lost, true);
  atomic_store(&h->checked, pl_clock_seconds());
  return !atomic_load(&h->lost);
}

static struct timespec after(double seconds) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  double whole = floor(seconds);
  t.tv_sec += (time_t)whole;
  t.tv_nsec += (long)(1e9 * (seconds - whole));
  if (t.tv_nsec >= 1000000000) {
    t.tv_sec++;
    t.tv_nsec -= 1000000000;
  }
  return t;
}

static void *beat(void *self) {
  pl_heartbeat *h = self;
  pthread_mutex_lock(&h->mutex);
  while (!h->ending) {
    const struct timespec next = after(h->interval);
    while (!h->ending && pthread_cond_timedwait(&h->wake, &h->mutex, &next) == 0) continue;
    if (h->ending) break;
    pthread_mutex_unlock(&h->mutex);
    bool owns = note(h, pl_claim_beat(h->path));
    pthread_mutex_lock(&h->mutex);
    if (!owns) break;
  }
  pthread_mutex_unlock(&h->mutex);
  return NULL;
}

static int start_thread(pl_heartbeat *h) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&h->thread, NULL, beat, h);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  h->started = error == 0;
  return error;
}

pl_status pl_heartbeat_start(const char *sweep_dir, uint64_t id, pl_heartbeat **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_heartbeat *h = NULL;
  pthread_condattr_t clock;
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *h, "the heartbeat of a run", &h, e));
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&h->wake, &clock);
  pthread_condattr_destroy(&clock);
  pthread_mutex_init(&h->mutex, NULL);
  PL_TRY(pl_run_path(sweep_dir, id, "claim", &h->path, e));
  h->interval = pl_claim_seconds() / 10;
  note(h, true);
  int error = start_thread(h);
  if (error != 0) PL_TRY(pl_fail(e, PL_FAIL, "the heartbeat of a run cannot be started: %s", strerror(error)));
  *out = h;
out:
  if (st != PL_OK) pl_heartbeat_stop(h);
  return st;
}

/* A process that was stopped for a while looks for itself before it goes on. */
bool pl_heartbeat_owns(pl_heartbeat *h) {
  if (pl_clock_seconds() - atomic_load(&h->checked) > 2 * h->interval) return pl_heartbeat_owns_now(h);
  return !atomic_load(&h->lost);
}

bool pl_heartbeat_owns_now(pl_heartbeat *h) { return note(h, !pl_claim_is_lost(h->path)); }

void pl_heartbeat_stop(pl_heartbeat *h) {
  if (!h) return;
  if (h->started) {
    pthread_mutex_lock(&h->mutex);
    h->ending = true;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->mutex);
    pthread_join(h->thread, NULL);
  }
  pthread_cond_destroy(&h->wake);
  pthread_mutex_destroy(&h->mutex);
  pl_free(h->path);
  pl_free(h);
}
