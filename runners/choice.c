#include "runners/choice.h"

#include <stdio.h>
#include <unistd.h>

pl_status pl_choice_named(const pl_options *o, const pl_states *s, bool *chosen, bool *named, pl_err *e) {
  *named = o->arg_count > 1;
  for (size_t i = 1; i < o->arg_count; i++) {
    size_t index;
    pl_status st = pl_states_find(s, o->args[i], &index, e);
    if (st != PL_OK) return st;
    chosen[index] = true;
  }
  return PL_OK;
}

size_t pl_choice_count(const bool *chosen, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += chosen[i];
  return sum;
}

pl_status pl_choice_confirm(const pl_options *o, const char *verb, size_t runs, pl_err *e) {
  if (o->yes || runs <= PL_CHOICE_UNASKED) return PL_OK;
  if (isatty(STDIN_FILENO) != 1)
    return pl_fail(e, PL_BAD, "%s: would %s %zu runs; allowed: at most %d without -y", o->args[0], verb, runs,
                   PL_CHOICE_UNASKED);
  fprintf(stderr, "%s %zu runs of %s? [y/N] ", verb, runs, o->args[0]);
  int answer = getchar();
  return answer == 'y' || answer == 'Y' ? PL_OK : pl_fail(e, PL_BAD, "nothing was changed");
}
