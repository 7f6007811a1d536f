#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "results/claim.h"

/* Longer than an NFS client keeps what it knows of a file (acregmax, acdirmax). */
enum { MEMORY_SECONDS = 60 };

/* NAME.tmp.PID of a process that is gone. */
static bool is_abandoned(const char *name) {
  char *end;
  const char *mark = strstr(name, ".tmp.");
  if (!mark || mark[5] < '1' || mark[5] > '9') return false;
  long pid = strtol(mark + 5, &end, 10);
  return *end == '\0' && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* A file that is just being written is no owner yet and stays. */
static bool is_dead_claim(const char *path) {
  char line[PL_CLAIM_LINE];
  pl_owner o;
  return pl_claim_read(path, line) && pl_owner_parse(line, &o) && pl_owner_is_gone(&o);
}

/* By the clock of the file system alone. */
static bool is_old(const char *path, const char *claim) {
  struct stat info, now;
  return stat(path, &info) == 0 && stat(claim, &now) == 0 && now.st_mtime - info.st_mtime > MEMORY_SECONDS;
}

/* What follows "CLAIM.": a hash, so that it names a successor. */
static bool is_successor(const char *rest) {
  return strlen(rest) == PL_ID_LENGTH && strspn(rest, "0123456789abcdef") == PL_ID_LENGTH;
}

/* `all`: the names of successors alone, but also those that somebody who read an old line could run into. */
static bool is_leftover(const char *claim, const char *file, const char *name, bool all) {
  const char *own = strrchr(claim, '/') ? strrchr(claim, '/') + 1 : claim;
  size_t length = strlen(own);
  if (strncmp(name, own, length) != 0 || name[length] != '.') return !all && is_abandoned(name);
  if (!is_successor(name + length + 1)) return !all && is_dead_claim(file);
  return all || is_old(file, claim);
}

static void remove_leftovers(const char *claim, bool all) {
  char *folder = NULL, *file = NULL;
  if (pl_path_folder(claim, &folder, NULL) != PL_OK) return;
  DIR *entries = opendir(folder);
  for (struct dirent *d = entries ? readdir(entries) : NULL; d; d = readdir(entries)) {
    if (pl_path_join(folder, d->d_name, &file, NULL) != PL_OK) continue;
    if (is_leftover(claim, file, d->d_name, all)) unlink(file);
    pl_free(file);
  }
  if (entries) closedir(entries);
  pl_free(folder);
}

void pl_claim_tidy(const char *path) { remove_leftovers(path, false); }

void pl_claim_release(const char *path) {
  if (pl_claim_is_lost(path)) return;
  remove_leftovers(path, true);
  unlink(path);
}
