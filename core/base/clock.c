#include "core/base/clock.h"

#include <time.h>

double pl_clock_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void pl_clock_stamp(char out[32]) {
  time_t now = time(NULL);
  struct tm utc;
  gmtime_r(&now, &utc);
  if (strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0) out[0] = '\0';
}
