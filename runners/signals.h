/* Signals: INT, TERM, USR1, USR2 ask to finish the update and checkpoint; a second one, or 20 seconds, ends by that
 * signal. */
#ifndef PL_RUNNERS_SIGNALS_H
#define PL_RUNNERS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

enum { PL_SIGNAL_GRACE = 20 }; /* seconds */

/* Installs the handlers. limited: also end by the signal PL_SIGNAL_GRACE seconds after the first one (a trainer);
 * otherwise only the second signal ends (a parent that waits for its trainers). */
void pl_signals_install(bool limited);

/* From now on, until the next installation, repeated signals end nothing: Slurm sends them to every process of a job,
 * and to the parent that passes them on. */
void pl_signals_be_patient(void);

/* Non-zero once asked to stop: the signal's number. */
const volatile sig_atomic_t *pl_signals_stop(void);

/* The latest of them, which is another one than the first when more came. */
int pl_signals_latest(void);

/* Around a fork: held back in the parent, they reach a child when it has installed its own handlers. What comes earlier
 * would go to the parent's in the child, and be forgotten. `before` is for the parent's sigprocmask(SIG_SETMASK). */
void pl_signals_hold(sigset_t *before);
void pl_signals_let_through(void);

/* Back to default actions, unblocked. */
void pl_signals_reset(void);

#endif
