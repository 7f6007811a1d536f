/* Progress of long work on standard error: a bar that redraws on a terminal, plain lines elsewhere. */
#ifndef PL_RUNNERS_PROGRESS_H
#define PL_RUNNERS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct pl_progress {
  bool terminal, quiet, drawn;
  double started, last; /* clock */
} pl_progress;

pl_progress pl_progress_begin(bool quiet);

/* Whether it is time to show something again: 5 times a second on a terminal, every 10 seconds elsewhere. */
bool pl_progress_due(const pl_progress *p);

/* Shows "[####----]  41% TEXT, 01:23 left" when it is due, the bar as wide as the terminal has room beside the words.
 * `share` is the part of the work done since the beginning, in [0, 1]; the remaining time is estimated from it. */
void pl_progress_show(pl_progress *p, double share, const char *text);

/* Prints a line of its own (a run that ended); the bar is redrawn below it. */
void pl_progress_line(pl_progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Removes the bar. */
void pl_progress_end(pl_progress *p);

/* "12.3k", "4.56M": three significant digits. `out` holds 16 bytes. Returns `out`. */
char *pl_format_count(double value, char *out);

/* "01:23" or "2:03:04". `out` holds 24 bytes. Returns `out`. */
char *pl_format_duration(double seconds, char *out);

#endif
