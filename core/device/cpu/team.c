#include "core/device/cpu/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/memory.h"

/* How long a thread looks for what it waits for before it sleeps: about what falling asleep and waking up cost. */
static const double SPIN_SECONDS = 20e-6;

typedef struct member {
  pl_team *team;
  size_t thread;
  pthread_t id;
} member;

struct pl_team {
  size_t threads, started; /* started: members that run, of threads - 1 */
  bool spins;
  void (*work)(void *arg, size_t thread); /* NULL: the end */
  void *arg;
  atomic_uint region; /* counts them; set with the lock held */
  atomic_size_t busy; /* members that have not finished the region */
  pthread_mutex_t lock;
  pthread_cond_t begun, finished;
  member members[];
};

static bool has_begun(pl_team *t, unsigned last) { return atomic_load(&t->region) != last; }
static bool has_finished(pl_team *t, unsigned unused) {
  (void)unused;
  return atomic_load(&t->busy) == 0;
}

static void relax(void) {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

/* Both conditions change with the lock held, or before a signal that is sent with it held. */
static void wait_until(pl_team *t, bool (*holds)(pl_team *t, unsigned last), unsigned last, pthread_cond_t *signal) {
  if (t->spins)
    for (const double end = pl_clock_seconds() + SPIN_SECONDS; pl_clock_seconds() < end; relax())
      if (holds(t, last)) return;
  pthread_mutex_lock(&t->lock);
  while (!holds(t, last)) pthread_cond_wait(signal, &t->lock);
  pthread_mutex_unlock(&t->lock);
}

static void begin(pl_team *t, void (*work)(void *arg, size_t thread), void *arg) {
  t->work = work;
  t->arg = arg;
  atomic_store(&t->busy, t->started);
  pthread_mutex_lock(&t->lock);
  atomic_fetch_add(&t->region, 1);
  pthread_cond_broadcast(&t->begun);
  pthread_mutex_unlock(&t->lock);
}

static void *live(void *arg) {
  member *m = arg;
  pl_team *t = m->team;
  for (unsigned region = 0;; region++) {
    wait_until(t, has_begun, region, &t->begun);
    if (!t->work) return NULL;
    t->work(t->arg, m->thread);
    if (atomic_fetch_sub(&t->busy, 1) > 1) continue;
    pthread_mutex_lock(&t->lock);
    pthread_cond_signal(&t->finished);
    pthread_mutex_unlock(&t->lock);
  }
}

void pl_team_run(pl_team *t, void (*work)(void *arg, size_t thread), void *arg) {
  begin(t, work, arg);
  work(arg, 0);
  wait_until(t, has_finished, 0, &t->finished);
}

/* Where threads share a CPU, one that spins keeps another from what it waits for. */
static bool has_cpus_for(size_t threads) {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 && (size_t)CPU_COUNT(&allowed) >= threads;
}

/* New threads inherit the mask, so that signals go to those of the program that know what to do. */
static pl_status start(pl_team *t, pl_err *e) {
  sigset_t all, before;
  int error = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (; t->started < t->threads - 1; t->started++) {
    member *m = &t->members[t->started];
    *m = (member){.team = t, .thread = t->started + 1};
    error = pthread_create(&m->id, NULL, live, m);
    if (error != 0) break;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error == 0) return PL_OK;
  return pl_fail(e, PL_FAIL, "thread %zu of %zu cannot be started: %s", t->started + 2, t->threads, strerror(error));
}

pl_status pl_team_new(size_t threads, pl_team **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_team *t = NULL;
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *t + (threads - 1) * sizeof *t->members, "the threads", &t, e));
  t->threads = threads;
  t->spins = has_cpus_for(threads);
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->begun, NULL);
  pthread_cond_init(&t->finished, NULL);
  PL_TRY(start(t, e));
  *out = t;
  t = NULL;
out:
  pl_team_free(t);
  return st;
}

void pl_team_free(pl_team *t) {
  if (!t) return;
  begin(t, NULL, NULL);
  for (size_t i = 0; i < t->started; i++) pthread_join(t->members[i].id, NULL);
  pthread_cond_destroy(&t->begun);
  pthread_cond_destroy(&t->finished);
  pthread_mutex_destroy(&t->lock);
  pl_free(t);
}
