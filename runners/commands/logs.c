/* pipelag logs DIR RUN: all attempts' logs of a run, oldest first. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/catalog.h"
#include "runners/command.h"
#include "runners/registries.h"
#include "runners/say.h"

static size_t count_matches(const pl_catalog *c, const char *text, bool by_index, const pl_catalog_run **found) {
  int64_t index = -1;
  size_t matches = 0;
  if (by_index && !pl_parse_int(text, &index)) return 0;
  for (size_t i = 0; i < c->count; i++) {
    char id[PL_ID_SIZE];
    pl_hash_hex(c->runs[i].id, id);
    if (by_index ? c->runs[i].index != (uint64_t)index : strncmp(id, text, strlen(text)) != 0) continue;
    *found = &c->runs[i];
    matches++;
  }
  return matches;
}

/* By index, else by the beginning of the id when that is unique. */
static const pl_catalog_run *find_run(const pl_catalog *c, const char *text, pl_err *e) {
  const pl_catalog_run *found = NULL;
  size_t matches = count_matches(c, text, true, &found);
  if (matches == 0) matches = count_matches(c, text, false, &found);
  if (matches == 1) return found;
  pl_fail(e, PL_NOTHING,
          "%s: run \"%.100s\" matches %zu runs; allowed: an index of `status -v`, or the beginning of one id", c->dir,
          text, matches);
  return NULL;
}

static pl_status print_log(const char *dir, uint64_t id, int64_t attempt, bool *found, pl_err *e) {
  char name[64], *path = NULL, *text = NULL;
  size_t length = 0;
  snprintf(name, sizeof name, "log.%" PRId64 ".txt", attempt);
  pl_status st = pl_run_path(dir, id, name, &path, e);
  if (st == PL_OK && pl_path_exists(path)) {
    st = pl_file_read(path, PL_JSON_MAX_BYTES, &text, &length, e);
    if (st == PL_OK) printf("== attempt %" PRId64 " ==\n%s", attempt, text);
    *found = true;
  }
  pl_free(text);
  pl_free(path);
  return st;
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_registries registries = pl_registries_all();
  pl_catalog c;
  pl_status st = pl_catalog_open(&registries, o->args[0], false, pl_say_stderr, NULL, &c, e);
  if (st != PL_OK) return st;
  const pl_catalog_run *r = find_run(&c, o->args[1], e);
  bool found = r != NULL, any = false;
  if (r == NULL) st = PL_NOTHING;
  for (int64_t attempt = 1; found && st == PL_OK; attempt++) {
    found = false;
    st = print_log(c.dir, r->id, attempt, &found, e);
    any = any || found;
  }
  if (st == PL_OK && !any) st = pl_fail(e, PL_NOTHING, "%s: run %s has no log yet", c.dir, o->args[1]);
  pl_catalog_free(&c);
  return st;
}

const pl_command pl_command_logs = {.name = "logs",
                                    .arguments = "DIR RUN",
                                    .summary = "Print the logs of a run (index or beginning of its id)",
                                    .options = "",
                                    .min_args = 2,
                                    .max_args = 2,
                                    .run = run};
