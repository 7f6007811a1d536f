/* The line of text in a claim file, which says who holds it. */
#ifndef PL_RESULTS_CLAIM_OWNER_H
#define PL_RESULTS_CLAIM_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PL_CLAIM_LINE = 512 };

/* A process, so that neither a new process with an old pid nor one on another machine is taken for it. */
typedef struct pl_owner {
  char host[65], boot[40], space[40]; /* host name, boot id, PID namespace; "-" when unknown */
  long long pid;
  unsigned long long start; /* ticks after boot, field 22 of /proc/PID/stat; 0 when unknown */
  char job[128];            /* "CLUSTER:JOB/RESTARTS" of Slurm, JOB as 12_3 in an array; "-" outside of Slurm */
  char nonce[17];           /* 16 random hex digits: no two claims are equal */
  unsigned long long counter;
} pl_owner;

/* This process, with a nonce of its own and a counter of 0. */
pl_owner pl_owner_self(void);

/* One line, the counter last and of fixed width, so that it can be rewritten in place. */
void pl_owner_print(const pl_owner *o, char line[PL_CLAIM_LINE]);
bool pl_owner_parse(const char *line, pl_owner *out);

/* Bytes of a line before its counter: the same as long as the holder is the same. */
size_t pl_owner_length(const char *line);

bool pl_owner_is_self(const pl_owner *o);

/* True when it is certain from here that the process is gone: this host's boot, or the pid and its start time, differ.
 */
bool pl_owner_is_gone(const pl_owner *o);

/* Reads a claim file, or a small file of /proc. False with errno set. */
bool pl_claim_read(const char *path, char line[PL_CLAIM_LINE]);

#endif
