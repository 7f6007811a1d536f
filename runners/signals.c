#include "runners/signals.h"

#include <string.h>
#include <unistd.h>

static const int asked[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
enum { ASKED = sizeof asked / sizeof *asked };

/* A signal handler can reach nothing but globals: the only mutable ones of the program. */
static volatile sig_atomic_t stop_signal;
static volatile sig_atomic_t latest_signal;
static volatile sig_atomic_t grace_limited;
static volatile sig_atomic_t patient;

static void end_by(int signal_number) {
  struct sigaction act = {.sa_handler = SIG_DFL};
  sigaction(signal_number, &act, NULL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  raise(signal_number);
}

static void on_signal(int signal_number) {
  latest_signal = signal_number;
  if (stop_signal != 0 && patient) return;
  if (stop_signal != 0) end_by(signal_number);
  stop_signal = signal_number;
  if (grace_limited) alarm(PL_SIGNAL_GRACE);
}

static void on_alarm(int signal_number) {
  (void)signal_number;
  end_by(stop_signal != 0 ? stop_signal : SIGTERM);
}

void pl_signals_install(bool limited) {
  stop_signal = latest_signal = 0;
  patient = false;
  grace_limited = limited;
  struct sigaction act = {.sa_handler = on_signal};
  sigemptyset(&act.sa_mask);
  for (int i = 0; i < ASKED; i++) sigaction(asked[i], &act, NULL);
  act.sa_handler = on_alarm;
  if (limited) sigaction(SIGALRM, &act, NULL);
}

void pl_signals_be_patient(void) { patient = true; }

int pl_signals_latest(void) { return latest_signal; }

const volatile sig_atomic_t *pl_signals_stop(void) { return &stop_signal; }

static sigset_t asked_set(void) {
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < ASKED; i++) sigaddset(&set, asked[i]);
  return set;
}

void pl_signals_hold(sigset_t *before) {
  const sigset_t set = asked_set();
  sigprocmask(SIG_BLOCK, &set, before);
}

void pl_signals_let_through(void) {
  const sigset_t set = asked_set();
  sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void pl_signals_reset(void) {
  alarm(0);
  stop_signal = 0;
  struct sigaction act = {.sa_handler = SIG_DFL};
  for (int i = 0; i < ASKED; i++) sigaction(asked[i], &act, NULL);
  sigaction(SIGALRM, &act, NULL);
  pl_signals_let_through();
}
