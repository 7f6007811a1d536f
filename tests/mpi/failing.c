/* failing HOW: the last of several processes fails; the others see it. Not a cmocka program: it does not end well.
 *   progress  rank 0 looks for reports between its work
 *   agree     rank 0 waits for an agreement
 *   deaf      rank 0 never listens
 *   killed    the last process is killed */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/pipeline/world.h"

static void rest(void) {
  const struct timespec pause = {.tv_nsec = 2000000};
  nanosleep(&pause, NULL);
}

static void fail(pl_world *w, const char *how) {
  if (strcmp(how, "killed") == 0) raise(SIGKILL);
  w->type->abort(w, 42, "rank 3, stage 3, update 17: the loss is purple");
}

int main(int count, char **argument) {
  pl_err e = {0};
  pl_world *w = NULL;
  if (count < 2 || pl_world_open(&w, &e) != PL_OK) return 1;
  const char *how = argument[1];
  if (w->rank + 1 == w->size) fail(w, how);
  while (w->rank > 0 || strcmp(how, "deaf") == 0) rest(); /* none of them looks: it must not matter */
  pl_status st = PL_OK;
  if (strcmp(how, "agree") == 0) st = w->type->agree(w, PL_OK, &e);
  for (; st == PL_OK; rest()) st = w->type->progress(w, &e);
  fprintf(stderr, "rank 0 says: %s\n", e.text);
  w->type->abort(w, 40 + (int)st, e.text);
  return 0;
}
