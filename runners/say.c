#include "runners/say.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void pl_say_stderr(void *self, const char *line) {
  (void)self;
  fprintf(stderr, "pipelag: %s\n", line);
}

void pl_say_stdout(void *self, const char *line) {
  (void)self;
  printf("%s\n", line);
}

pl_status pl_print(pl_str *text, pl_err *e) {
  pl_status st = pl_str_check(text, e);
  if (st == PL_OK && fputs(pl_str_text(text), stdout) < 0)
    st = pl_fail(e, PL_FAIL, "standard output cannot be written: %s", strerror(errno));
  pl_str_free(text);
  return st;
}
