/* Time for measuring and for stamping. */
#ifndef PL_BASE_CLOCK_H
#define PL_BASE_CLOCK_H

double pl_clock_seconds(void);     /* monotonic */
void pl_clock_stamp(char out[32]); /* now as 2026-11-30T18:00:00Z */

#endif
