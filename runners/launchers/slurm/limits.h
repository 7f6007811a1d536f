/* The cluster's own limits on what may be submitted, as far as Slurm tells them. */
#ifndef PL_RUNNERS_SLURM_LIMITS_H
#define PL_RUNNERS_SLURM_LIMITS_H

#include "runners/launchers/slurm/section.h"

enum { PL_LIMIT_NAME = 64, PL_LIMIT_TEXT = 160 };

/* A limit on the number of jobs that are waiting or running; each task of an array counts as one. */
typedef struct pl_slurm_limit {
  char text[PL_LIMIT_TEXT];                                                  /* "MaxSubmitJobs 60 of user root" */
  char account[PL_LIMIT_NAME], partition[PL_LIMIT_NAME], qos[PL_LIMIT_NAME]; /* whose jobs it counts; "": any */
  bool everyone;                                                             /* also other users' */
  int64_t most, used;
} pl_slurm_limit;

typedef struct pl_slurm_partition {
  char name[PL_LIMIT_NAME], qos[PL_LIMIT_NAME]; /* qos "": none of its own */
} pl_slurm_partition;

typedef struct pl_slurm_limits {
  char version[32];
  int64_t array_size; /* tasks that one array may have */
  pl_slurm_limit *items;
  size_t count, capacity;
  pl_slurm_partition *partitions;
  size_t partition_count;                                                    /* 0: not known */
  char account[PL_LIMIT_NAME], partition[PL_LIMIT_NAME], qos[PL_LIMIT_NAME]; /* the defaults; "": not known */
} pl_slurm_limits;

/* Asks scontrol, squeue and, where limits are enforced, sacctmgr, whose silence is no error. PL_BAD when there is no
 * Slurm ("sbatch: not found on PATH; ...") or it cannot be asked ("cannot ask Slurm: ..."). */
PL_MUST_CHECK pl_status pl_slurm_limits_read(pl_slurm_limits *out, pl_err *e);
void pl_slurm_limits_free(pl_slurm_limits *l);

/* PL_BAD when the cluster has no partition that the configuration names. */
PL_MUST_CHECK pl_status pl_slurm_limits_check(const pl_slurm_limits *l, const pl_slurm_config *c, pl_err *e);

/* How many tasks of this configuration may still be submitted; *binding is the limit that says so. INT64_MAX and NULL
 * when there is none. */
int64_t pl_slurm_limits_room(const pl_slurm_limits *l, const pl_slurm_config *c, const pl_slurm_limit **binding);

/* Counts tasks as submitted. */
void pl_slurm_limits_take(pl_slurm_limits *l, const pl_slurm_config *c, int64_t tasks);

#endif
