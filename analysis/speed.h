/* How fast real pipelines were: what their stages spent their time on, tokens per second, and the gain over synchronous
 * training. */
#ifndef PL_ANALYSIS_SPEED_H
#define PL_ANALYSIS_SPEED_H

#include "analysis/arms.h"

/* Means over the runs of an arm that recorded the times of their stages (results/times.h), at any learning rate. */
typedef struct pl_speed_row {
  const pl_arm *arm;
  size_t runs;
  double bubble;             /* of a run's whole time, over all stages */
  double communication;      /* share of that time inside the transport */
  double at_once;            /* stages that compute at the same time, of all replicas: 1 where they take turns */
  double tokens_per_second;  /* of the last attempt, training alone */
  double seconds_per_update; /* from it */
  double gain;               /* tokens per second over those of the baseline; NaN unless both are measured_pipelines */
} pl_speed_row;

typedef struct pl_speed_table {
  pl_speed_row *rows; /* of arms with such runs */
  size_t count;
} pl_speed_table;

/* Reads the times of all runs with several stages. */
PL_MUST_CHECK pl_status pl_speed_compute(const pl_arms *arms, pl_speed_table *out, pl_err *e);
void pl_speed_free(pl_speed_table *t);

/* Whether its stages overlapped: those of a pipeline in one process take turns, and its speed is not the schedule's. */
bool pl_speed_is_measured(const pl_speed_row *r);

/* The gain of an arm; NaN when it was not measured. */
double pl_speed_gain(const pl_speed_table *t, const pl_arm *a);

#endif
