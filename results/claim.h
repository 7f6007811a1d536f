/* Claim files: whoever's name is in the file holds what it stands for (a run, a sweep directory). Made by link(2) and
 * rename(2) alone, so they also work on shared file systems without locks. */
#ifndef PL_RESULTS_CLAIM_H
#define PL_RESULTS_CLAIM_H

#include "core/base/str.h"

typedef enum pl_claim_state {
  PL_CLAIM_NONE,
  PL_CLAIM_LIVE, /* its process lives, or nothing can be said about it from here: another host, another PID namespace */
  PL_CLAIM_DEAD  /* its process on this host is gone (pid and start time, or the boot, differ) */
} pl_claim_state;

pl_claim_state pl_claim_look(const char *path);

/* Who holds it, for messages: "process 4711 on host node3", or "an unknown process". Appended. */
void pl_claim_describe(const char *path, pl_str *out);

/* *taken is false, without error, when somebody else holds or is just taking it; a process does not take twice. A dead
 * claim is taken over; of any number of takers at most one wins. PL_FAIL when the file cannot be made. */
PL_MUST_CHECK pl_status pl_claim_take(const char *path, bool *taken, pl_err *e);

/* For the holder of a claim: removes what killed processes left in its folder, files NAME.tmp.PID that were being
 * written and the beginnings of other claims. What a live process of this host writes is left alone. */
void pl_claim_tidy(const char *path);

/* Removes the file if it is this process's own. */
void pl_claim_release(const char *path);

#endif
