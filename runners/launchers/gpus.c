#include "runners/launchers/gpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/device/cuda_module.h"

#define VISIBLE "CUDA_VISIBLE_DEVICES"

enum { NAME = 256 };

typedef struct answer {
  pl_status status;
  size_t count;
  pl_err error;
} answer;

static _Noreturn void tell(int to) {
  answer a = {0};
  a.status = pl_cuda_gpus(NULL, 0, &a.count, &a.error);
  _exit(write(to, &a, sizeof a) == sizeof a ? 0 : 1);
}

/* False when the process ended without an answer. */
static bool hear(int from, answer *a) {
  size_t got = 0;
  while (got < sizeof *a) {
    const ssize_t part = read(from, (char *)a + got, sizeof *a - got);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    got += (size_t)part;
  }
  return true;
}

static pl_status ask(size_t *count, pl_err *e) {
  answer a = {0};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return pl_fail(e, PL_FAIL, "a pipe for a question to the GPUs cannot be made: %s", strerror(errno));
  const pid_t pid = fork();
  if (pid == 0) tell(ends[1]);
  close(ends[1]);
  const bool heard = pid > 0 && hear(ends[0], &a);
  close(ends[0]);
  while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
  if (!heard) return pl_fail(e, PL_BAD, "cuda: no device (the process that asked for them ended without an answer)");
  *count = a.count;
  return a.status == PL_OK ? PL_OK : pl_fail(e, a.status, "%s", a.error.text);
}

pl_status pl_gpus_find(pl_gpus *out, pl_err *e) {
  const char *list = getenv(VISIBLE);
  *out = (pl_gpus){0};
  pl_status st = ask(&out->count, e);
  if (st == PL_OK && list != NULL) st = pl_strdup(list, &out->list, e);
  return st;
}

pl_status pl_gpus_listed(pl_gpus *out, pl_err *e) {
  const char *list = getenv(VISIBLE);
  *out = (pl_gpus){0};
  if (list == NULL || list[0] == '\0') return PL_OK;
  out->count = 1;
  for (const char *c = list; *c != '\0'; c++) out->count += *c == ',';
  return pl_strdup(list, &out->list, e);
}

void pl_gpus_free(pl_gpus *g) {
  pl_free(g->list);
  *g = (pl_gpus){0};
}

/* Of GPU number i; what the list has behind those that exist counts for nothing. */
static void name_of(const pl_gpus *g, size_t i, char name[NAME]) {
  const char *at = g->list;
  if (at == NULL) {
    snprintf(name, NAME, "%zu", i);
    return;
  }
  for (; i > 0 && strchr(at, ',') != NULL; i--) at = strchr(at, ',') + 1;
  snprintf(name, NAME, "%.*s", (int)strcspn(at, ","), at);
}

void pl_gpus_choose(const pl_gpus *g, size_t place) {
  char name[NAME];
  if (g->count == 0) return;
  name_of(g, place % g->count, name);
  setenv(VISIBLE, name, 1);
}

void pl_gpus_write(const pl_gpus *g, pl_str *out) {
  char name[NAME];
  for (size_t i = 0; i < g->count; i++) {
    name_of(g, i, name);
    pl_str_printf(out, "%s%s", i > 0 ? ", " : "", name);
  }
}
