#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/pipeline/mpi/open.h"
#include "core/pipeline/mpi/shared.h"

enum {
  REPORT_TAG = 1,
  PIECE = 1 << 30,    /* bytes of one broadcast: MPI counts in int */
  POKE_EVERY = 500000 /* nanoseconds */
};

void pl_mpi_enter(pl_mpi *m) {
  if (m->depth++ > 0) return;
  m->entered = pl_clock_seconds();
  pthread_mutex_lock(&m->lock);
}

pl_status pl_mpi_leave(pl_mpi *m, pl_status st) {
  if (--m->depth > 0) return st;
  pthread_mutex_unlock(&m->lock);
  m->base.waited += pl_clock_seconds() - m->entered;
  return st;
}

pl_status pl_mpi_check(int code, const char *what, pl_err *e) {
  if (code == MPI_SUCCESS) return PL_OK;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return pl_fail(e, PL_FAIL, "MPI failed while %s: %s", what, text);
}

bool pl_mpi_drop(MPI_Request *request) {
  if (*request == MPI_REQUEST_NULL) return true;
  int done = 0;
  MPI_Cancel(request);
  MPI_Test(request, &done, MPI_STATUS_IGNORE);
  if (!done) MPI_Request_free(request);
  return done;
}

/* Lets MPI work, and looks for a report. */
static pl_status poke(pl_mpi *m) {
  int there = 0;
  if (m->failure.status != PL_OK) return m->failure.status;
  pl_status st =
      pl_mpi_check(MPI_Test(&m->report, &there, MPI_STATUS_IGNORE), "waiting for reports of failures", &m->failure);
  return st == PL_OK && there ? pl_fail(&m->failure, PL_FAIL, "%s", m->sentence) : st;
}

pl_status pl_mpi_progress(pl_mpi *m, pl_err *e) {
  if (poke(m) == PL_OK && pl_mpi_sums_move(m, &m->failure) == PL_OK) return PL_OK;
  return pl_fail(e, m->failure.status, "%s", m->failure.text);
}

static void *poke_on(void *self) {
  pl_mpi *m = self;
  const struct timespec pause = {.tv_nsec = POKE_EVERY};
  while (!atomic_load(&m->ending)) {
    nanosleep(&pause, NULL);
    if (pthread_mutex_trylock(&m->lock) != 0) continue;
    if (poke(m) == PL_OK) (void)!pl_mpi_sums_move(m, &m->failure);
    pthread_mutex_unlock(&m->lock);
  }
  return NULL;
}

/* Signals are the other thread's. */
static bool start_thread(pl_mpi *m) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&m->thread, NULL, poke_on, m) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

static void end_thread(pl_mpi *m) {
  if (!m->threaded) return;
  atomic_store(&m->ending, true);
  pthread_join(m->thread, NULL);
  m->threaded = false;
}

pl_status pl_mpi_wait(pl_mpi *m, MPI_Request *request, const char *what, pl_err *e) {
  pl_status st = PL_OK;
  for (int done = 0;;) {
    PL_TRY(pl_mpi_check(MPI_Test(request, &done, MPI_STATUS_IGNORE), what, e));
    if (done) return PL_OK;
    PL_TRY(pl_mpi_progress(m, e));
  }
out:
  return st;
}

static pl_status broadcast(pl_mpi *m, MPI_Comm comm, void *bytes, size_t count, int source, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t at = 0; at < count; at += PIECE) {
    MPI_Request request = MPI_REQUEST_NULL;
    int piece = count - at < PIECE ? (int)(count - at) : PIECE;
    PL_TRY(pl_mpi_check(MPI_Ibcast((char *)bytes + at, piece, MPI_BYTE, source, comm, &request), "sending to all", e));
    PL_TRY(pl_mpi_wait(m, &request, "sending to all", e));
  }
out:
  return st;
}

/* *lowest: the lowest rank of `comm` with a failure, its size when there is none. Sets the verdict where that is this
 * rank. */
static pl_status find_failed(pl_mpi *m, MPI_Comm comm, pl_status mine, int *lowest, int *size, pl_err *e) {
  pl_status st = PL_OK;
  int rank = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  PL_TRY(pl_mpi_check(MPI_Comm_rank(comm, &rank), "asking for the rank", e));
  PL_TRY(pl_mpi_check(MPI_Comm_size(comm, size), "asking for the size", e));
  m->number = (uint64_t)(mine == PL_OK ? *size : rank);
  PL_TRY(
      pl_mpi_check(MPI_Iallreduce(MPI_IN_PLACE, &m->number, 1, MPI_UINT64_T, MPI_MIN, comm, &request), "agreeing", e));
  PL_TRY(pl_mpi_wait(m, &request, "agreeing", e));
  *lowest = (int)m->number;
  if (*lowest != rank) return PL_OK;
  m->verdict = e ? *e : (pl_err){0};
  m->verdict.status = mine;
out:
  return st;
}

pl_status pl_mpi_agree(pl_mpi *m, MPI_Comm comm, pl_status mine, pl_err *e) {
  pl_status st = PL_OK;
  int lowest = 0, size = 0;
  PL_TRY(find_failed(m, comm, mine, &lowest, &size, e));
  if (lowest == size) return PL_OK;
  PL_TRY(broadcast(m, comm, &m->verdict, sizeof m->verdict, lowest, e));
  if (e) *e = m->verdict; /* also in the place of this rank's own sentence */
  st = m->verdict.status;
out:
  return st;
}

static pl_status agree(pl_world *w, pl_status mine, pl_err *e) {
  pl_mpi *m = (pl_mpi *)w;
  pl_mpi_enter(m);
  return pl_mpi_leave(m, pl_mpi_agree(m, m->control, mine, e));
}

static pl_status share_bytes(pl_mpi *m, pl_str *text, pl_err *e) {
  pl_status st = PL_OK;
  const bool source = m->base.rank == 0;
  pl_str copy = {0};
  m->number = text->length;
  PL_TRY(broadcast(m, m->control, &m->number, sizeof m->number, 0, e));
  copy.length = (size_t)m->number;
  copy.capacity = copy.length + 1;
  st = source ? pl_str_check(text, e) : pl_alloc(copy.capacity, 1, "a text of rank 0", &copy.text, e);
  st = pl_mpi_agree(m, m->control, st, e);
  if (st != PL_OK) pl_free(copy.text);
  PL_TRY(st);
  /* Not freed when this fails: MPI may still write there. */
  PL_TRY(broadcast(m, m->control, source ? text->text : copy.text, copy.length, 0, e));
  if (source) return PL_OK;
  pl_str_free(text);
  *text = copy;
out:
  return st;
}

static pl_status share(pl_world *w, pl_str *text, pl_err *e) {
  pl_mpi *m = (pl_mpi *)w;
  pl_mpi_enter(m);
  return pl_mpi_leave(m, share_bytes(m, text, e));
}

static pl_status progress(pl_world *w, pl_err *e) {
  pl_mpi *m = (pl_mpi *)w;
  pl_mpi_enter(m);
  return pl_mpi_leave(m, pl_mpi_progress(m, e));
}

/* Nothing here waits for another rank: it may be what is broken. Higher ranks wait longer, since the first that has
 * waited in vain ends them all. */
static void report_and_wait(pl_mpi *m, const char *sentence) {
  const struct timespec pause = {.tv_nsec = 10000000};
  const double end = pl_clock_seconds() + 5 + 2 * fmin((double)m->base.rank - 1, 5);
  MPI_Request request = MPI_REQUEST_NULL;
  snprintf(m->verdict.text, sizeof m->verdict.text, "%s", sentence);
  if (MPI_Isend(m->verdict.text, PL_ERR_TEXT, MPI_CHAR, 0, REPORT_TAG, m->control, &request) != MPI_SUCCESS) return;
  while (pl_clock_seconds() < end) {
    int done = 0;
    MPI_Test(&m->report, &done, MPI_STATUS_IGNORE); /* never comes; what was sent moves on */
    nanosleep(&pause, NULL);
  }
}

static void end_all(pl_world *w, int exit_status, const char *sentence) {
  pl_mpi *m = (pl_mpi *)w;
  if (w->size == 1) return;
  end_thread(m);
  if (w->rank > 0) {
    report_and_wait(m, sentence);
    fprintf(stderr, "rank %zu, to which rank 0 does not listen: %s\n", w->rank, sentence);
  }
  MPI_Abort(m->control, exit_status);
}

static void close_world(pl_world *w) {
  pl_mpi *m = (pl_mpi *)w;
  if (!m) return;
  end_thread(m);
  pl_mpi_drop(&m->report);
  MPI_Finalize(); /* after it MPI uses nothing any more */
  pthread_mutex_destroy(&m->lock);
  pl_free(m);
}

static const pl_world_type mpi_type = {.name = "mpi",
                                       .agree = agree,
                                       .share = share,
                                       .gather_open = pl_mpi_gather_open,
                                       .gather_post = pl_mpi_gather_post,
                                       .gather_next = pl_mpi_gather_next,
                                       .gather_pop = pl_mpi_gather_pop,
                                       .gather_close = pl_mpi_gather_close,
                                       .sum_open = pl_mpi_sum_open,
                                       .sum_begin = pl_mpi_sum_begin,
                                       .sum_ready = pl_mpi_sum_ready,
                                       .sum_close = pl_mpi_sum_close,
                                       .transport = pl_mpi_transport,
                                       .progress = progress,
                                       .abort = end_all,
                                       .close = close_world};

static pl_status start(pl_mpi *m, pl_err *e) {
  pl_status st = PL_OK;
  int given = 0, rank = 0, size = 0;
  PL_TRY(pl_mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given), "starting", e));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  PL_TRY(pl_mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &m->control), "starting", e));
  PL_TRY(pl_mpi_check(MPI_Comm_rank(m->control, &rank), "starting", e));
  PL_TRY(pl_mpi_check(MPI_Comm_size(m->control, &size), "starting", e));
  m->base = (pl_world){.type = &mpi_type, .rank = (size_t)rank, .size = (size_t)size};
  PL_TRY(pl_mpi_check(MPI_Irecv(m->sentence, PL_ERR_TEXT, MPI_CHAR, MPI_ANY_SOURCE, REPORT_TAG, m->control, &m->report),
                      "starting", e));
  pthread_mutex_init(&m->lock, NULL);
  if (size > 1 && given >= MPI_THREAD_SERIALIZED) m->threaded = start_thread(m);
out:
  return st;
}

pl_status pl_world_mpi(pl_world **out, pl_err *e) {
  pl_mpi *m = NULL;
  *out = NULL;
  pl_status st = pl_alloc(1, sizeof *m, "the processes", &m, e);
  if (st == PL_OK) st = start(m, e);
  if (st == PL_OK)
    *out = &m->base;
  else
    pl_free(m);
  return st;
}
