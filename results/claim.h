/* Claim files: whoever's name is in the file holds what it stands for (a run, a sweep directory).
 *
 * Only link(2) and rename(2) decide; nothing is locked, and no decision rests on what was read being up to date. A
 * claim is a file that is linked to PATH when PATH does not exist. Whoever may take over from the holder in PATH links
 * its own file to PATH.<hash of the holder's line>, which only one can, and then renames it to PATH. A holder that ends
 * its claim links it to that name itself, and the next one links to PATH.<another hash of the line>: PATH stays. No two
 * claims have the same line, so each has one successor, and who goes by an old line is led to the last claim from
 * there. These names are kept for a minute, longer than file systems keep what they have read.
 *
 * Tested with answers that get lost, locks that do not work and reads that lag behind, on local file systems. NFS
 * itself is untested. */
#ifndef PL_RESULTS_CLAIM_H
#define PL_RESULTS_CLAIM_H

#include "core/base/str.h"
#include "results/claim_owner.h"

typedef enum pl_claim_state {
  PL_CLAIM_NONE,
  PL_CLAIM_LIVE, /* its process lives, or nothing can be said about it from here: another host, another PID namespace */
  PL_CLAIM_DEAD  /* its process on this host is gone (pid and start time, or the boot, differ) */
} pl_claim_state;

pl_claim_state pl_claim_look(const char *path);

/* Who holds it, for messages: "process 4711 on host node3", or "an unknown process". Appended. */
void pl_claim_describe(const char *path, pl_str *out);

/* What else shows that a holder is gone. */
typedef struct pl_claim_rules {
  /* Whether Slurm says that the job of a claim ("CLUSTER:JOB/RESTARTS") is not running; NULL: it is not asked. */
  bool (*job_is_gone)(const char *job);
  const char *stood_still; /* a line that pl_claim_watch called still, or NULL */
} pl_claim_rules;

/* *taken is false, without error, when somebody else holds or is just taking it; a process does not take twice. A dead
 * claim is taken over; of any number of takers at most one wins. PL_FAIL when the file cannot be made. */
PL_MUST_CHECK pl_status pl_claim_take(const char *path, bool *taken, pl_err *e);

/* The same with further rules; NULL: none. */
PL_MUST_CHECK pl_status pl_claim_take_by(const char *path, const pl_claim_rules *rules, bool *taken, pl_err *e);

/* Seconds after which a claim whose counter stands still may be taken over: 300, or PIPELAG_CLAIM_SECONDS. Holders that
 * keep a claim for long count at least ten times as often. */
double pl_claim_seconds(void);

/* Counts on in the claim of this process. False when the claim is somebody else's, or gone. */
bool pl_claim_beat(const char *path);

/* True when the claim that this process took is somebody else's now, or gone; false also while it cannot be read. */
bool pl_claim_is_lost(const char *path);

/* A holder that is looked at again and again, by this process's own clock. Zero-initialise. */
typedef struct pl_claim_watch {
  char line[PL_CLAIM_LINE]; /* as seen last */
  double since;             /* seen first */
} pl_claim_watch;

typedef enum pl_claim_motion {
  PL_CLAIM_UNSURE,
  PL_CLAIM_MOVES, /* its counter went on */
  PL_CLAIM_STILL  /* not for pl_claim_seconds */
} pl_claim_motion;

pl_claim_motion pl_claim_watch_on(const char *path, pl_claim_watch *w);

/* For the holder of a claim: removes what killed processes left in its folder, files NAME.tmp.PID that were being
 * written and old names of other claims. What a live process of this host writes is left alone. */
void pl_claim_tidy(const char *path);

/* Ends the claim if it is this process's own and removes its files: for what nobody takes any more, and for short
 * locks. Only somebody whose reads lag behind could then take it at the same time as somebody else. */
void pl_claim_release(const char *path);

/* Ends the claim if it is this process's own; its file stays. */
void pl_claim_end(const char *path);

#endif
