#include "runners/program.h"

#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"

#define FILE_LIMIT ((size_t)1 << 30)

static pl_status hash_file(const char *path, char out[PL_ID_SIZE], pl_err *e) {
  char *bytes;
  size_t length;
  pl_status st = pl_file_read(path, FILE_LIMIT, &bytes, &length, e);
  if (st != PL_OK) return st;
  pl_hash_hex(pl_hash(bytes, length), out);
  pl_free(bytes);
  return PL_OK;
}

pl_status pl_program_hash(char out[PL_ID_SIZE], pl_err *e) { return hash_file("/proc/self/exe", out, e); }

/* The path in a line of /proc/self/maps when it is a library's code. */
static const char *library_in(char *line) {
  char *path = strchr(line, '/');
  if (!path || !strstr(line, " r-xp ") || !strstr(path, ".so")) return NULL;
  path[strcspn(path, "\n")] = '\0';
  return path;
}

pl_json *pl_program_libraries(void) {
  char line[4352], hash[PL_ID_SIZE];
  pl_json *object = pl_json_new_object();
  bool ok = object != NULL;
  FILE *maps = fopen("/proc/self/maps", "re");
  while (ok && maps && fgets(line, sizeof line, maps)) {
    const char *path = library_in(line);
    if (!path) continue;
    const char *name = strrchr(path, '/') + 1;
    if (pl_json_get(object, name) || hash_file(path, hash, NULL) != PL_OK) continue;
    ok = pl_json_set(object, name, pl_json_new_string(hash));
  }
  if (maps) fclose(maps);
  return pl_json_keep(object, ok);
}

static void add_difference(const char *what, const char *now, const char *before, pl_str *out) {
  if (strcmp(now, before) == 0) return;
  pl_str_printf(out, "%s%s (%s, was %s)", out->length > 0 ? ", " : "", what, now, before);
}

static void compare_libraries(const pl_json *now, const pl_json *before, pl_str *out) {
  for (void *it = pl_json_iter(before); it; it = pl_json_iter_next(before, it)) {
    const char *name = pl_json_iter_key(it), *hash = pl_json_string(pl_json_iter_value(it));
    if (hash) add_difference(name, pl_json_get_string(now, name, "not loaded"), hash, out);
  }
}

pl_status pl_program_compare(const char *hash, const pl_json *libraries, pl_str *out, pl_err *e) {
  char own[PL_ID_SIZE];
  pl_status st = pl_program_hash(own, e);
  if (st != PL_OK) return st;
  if (hash[0] != '\0') add_difference("program", own, hash, out);
  pl_json *now = libraries ? pl_program_libraries() : NULL;
  if (now) compare_libraries(now, libraries, out);
  pl_json_release(now);
  return pl_str_check(out, e);
}
