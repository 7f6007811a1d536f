#include "results/provenance.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "pl_version.h"
#include "results/json_file.h"

extern char **environ;

/* What can change bits, by its key in an attempt of meta.json; another of these than before ends the "bitwise" mark. */
static const char *const bit_keys[] = {"version", "git_commit", "git_diff", "binary_hash",
                                       "cpu",     "kernel",     "threads",  "data_fingerprint"};

#define BINARY_LIMIT ((size_t)1 << 30)

static pl_json *hex_json(uint64_t hash) {
  char hex[PL_ID_SIZE];
  pl_hash_hex(hash, hex);
  return pl_json_new_string(hex);
}

static void read_binary(char out[PL_ID_SIZE]) {
  char *bytes;
  size_t length;
  if (pl_file_read("/proc/self/exe", BINARY_LIMIT, &bytes, &length, NULL) != PL_OK) return;
  pl_hash_hex(pl_hash(bytes, length), out);
  pl_free(bytes);
}

/* "model name : AMD EPYC ..." of the first processor. */
static void read_cpu(char *out, size_t size) {
  char line[256];
  FILE *info = fopen("/proc/cpuinfo", "re");
  while (info && out[0] == '\0' && fgets(line, sizeof line, info)) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    line[strcspn(line, "\n")] = '\0';
    snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
  }
  if (info) fclose(info);
}

void pl_origin_read(pl_origin *out) {
  *out = (pl_origin){0};
  read_binary(out->binary);
  if (gethostname(out->host, sizeof out->host - 1) != 0) out->host[0] = '\0';
  read_cpu(out->cpu, sizeof out->cpu);
}

static pl_json *known(const char *text) { return text[0] != '\0' ? pl_json_new_string(text) : pl_json_new_null(); }

/* Variables that steer a run, without those that let somebody in. */
static bool is_recorded(const char *variable) {
  static const char *const prefixes[] = {"PIPELAG_", "OPENBLAS_", "SLURM_", "CUDA_VISIBLE_DEVICES"};
  static const char *const secrets[] = {"JWT", "TOKEN", "SECRET", "PASSW"};
  bool ours = false;
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    ours = ours || strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0;
  const char *value = strchr(variable, '=');
  for (size_t i = 0; i < sizeof secrets / sizeof *secrets && value; i++) {
    const char *found = strstr(variable, secrets[i]);
    ours = ours && (!found || found > value);
  }
  return ours && value;
}

static pl_json *environment(void) {
  pl_json *object = pl_json_new_object();
  for (char **v = environ; v && *v && object; v++) {
    char name[128];
    size_t length = strcspn(*v, "=");
    if (!is_recorded(*v) || length >= sizeof name) continue;
    memcpy(name, *v, length);
    name[length] = '\0';
    if (!pl_json_set(object, name, pl_json_new_string(*v + length + 1))) {
      pl_json_release(object);
      object = NULL;
    }
  }
  return object;
}

static pl_json *describe(const pl_attempt *a) {
  char stamp[32];
  pl_origin own;
  if (!a->origin) pl_origin_read(&own);
  const pl_origin *origin = a->origin ? a->origin : &own;
  pl_clock_stamp(stamp);
  pl_json *o = pl_json_new_object();
  bool ok = o && pl_json_set(o, "attempt", pl_json_new_int(a->attempt)) &&
            pl_json_set(o, "start_step", pl_json_new_int(a->start_step)) &&
            pl_json_set(o, "started", pl_json_new_string(stamp)) &&
            pl_json_set(o, "version", pl_json_new_string(PL_VERSION)) &&
            pl_json_set(o, "git_commit", pl_json_new_string(PL_GIT_COMMIT)) &&
            pl_json_set(o, "git_diff", pl_json_new_string(PL_GIT_DIFF)) &&
            pl_json_set(o, "binary_hash", known(origin->binary)) && pl_json_set(o, "host", known(origin->host)) &&
            pl_json_set(o, "cpu", known(origin->cpu)) &&
            pl_json_set(o, "kernel", pl_json_new_string(a->device_kernel)) &&
            pl_json_set(o, "threads", pl_json_new_int(a->threads)) &&
            pl_json_set(o, "data_fingerprint", hex_json(a->data_fingerprint)) && pl_json_set(o, "env", environment());
  if (a->note) ok = ok && pl_json_set(o, "note", pl_json_new_string(a->note));
  if (ok) return o;
  pl_json_release(o);
  return NULL;
}

/* "threads (2, was 1), kernel (...)"; empty when nothing that can change bits differs. */
static void list_differences(const pl_json *now, const pl_json *before, pl_str *out) {
  char new_value[80], old_value[80];
  for (size_t i = 0; i < sizeof bit_keys / sizeof *bit_keys; i++) {
    const pl_json *a = pl_json_get(now, bit_keys[i]), *b = pl_json_get(before, bit_keys[i]);
    if (a && b && pl_json_equal(a, b)) continue;
    pl_str_printf(out, "%s%s (%s, was %s)", out->length ? ", " : "", bit_keys[i],
                  a ? pl_json_show(a, new_value) : "unknown", b ? pl_json_show(b, old_value) : "unknown");
  }
}

static pl_status find_difference(const pl_json *now, const pl_json *attempts, char **difference, pl_err *e) {
  pl_str what = {0}, sentence = {0};
  const pl_json *before = pl_json_at(attempts, pl_json_size(attempts) - 1);
  list_differences(now, before, &what);
  if (what.length > 0)
    pl_str_printf(&sentence, "attempt %lld differs from attempt %lld in %s; the run is no longer marked bitwise",
                  (long long)pl_json_get_int(now, "attempt", 0), (long long)pl_json_get_int(before, "attempt", 0),
                  what.text);
  pl_status st = pl_str_check(&what, e);
  if (st == PL_OK) st = pl_str_check(&sentence, e);
  if (st == PL_OK) *difference = sentence.text;
  if (st != PL_OK) pl_str_free(&sentence);
  pl_str_free(&what);
  return st;
}

/* The old meta.json, or a fresh one; a file that a power cut left empty counts as missing. */
static pl_status read_meta(const char *path, pl_json **meta, pl_err *e) {
  struct stat info;
  if (stat(path, &info) == 0 && info.st_size > 0) {
    pl_status st = pl_json_file_read(path, meta, e);
    if (st == PL_OK && pl_json_kind_of(pl_json_get(*meta, "attempts")) != PL_JSON_ARRAY)
      st = pl_fail(e, PL_FAIL, "%s: has no list of attempts; delete it to go on without what it recorded", path);
    return st;
  }
  *meta = pl_json_new_object();
  if (*meta && pl_json_set(*meta, "attempts", pl_json_new_array())) return PL_OK;
  return pl_fail(e, PL_FAIL, "%s: out of memory", path);
}

/* The list of attempts with one more; NULL when memory is out. */
static pl_json *extended(const pl_json *attempts, const pl_json *attempt) {
  pl_json *list = pl_json_copy(attempts);
  if (list && pl_json_append(list, pl_json_retain(attempt))) return list;
  pl_json_release(list);
  return NULL;
}

static pl_status write_meta(const char *path, pl_json *meta, const pl_json *attempt, bool bitwise, pl_err *e) {
  const bool first = pl_json_size(pl_json_get(meta, "attempts")) == 0;
  bool ok = pl_json_set(meta, "bitwise", pl_json_new_bool(bitwise)) &&
            pl_json_set(meta, "attempts", extended(pl_json_get(meta, "attempts"), attempt));
  return (first ? pl_json_file_write_unsynced : pl_json_file_write)(path, ok ? meta : NULL, e);
}

pl_status pl_provenance_add(const char *run_folder, const pl_attempt *a, char **difference, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  pl_json *meta = NULL, *attempt = NULL;
  *difference = NULL;
  PL_TRY(pl_path_join(run_folder, "meta.json", &path, e));
  PL_TRY(read_meta(path, &meta, e));
  attempt = describe(a);
  if (!attempt) PL_TRY(pl_fail(e, PL_FAIL, "%s: out of memory", path));
  /* An attempt that starts from nothing owes nothing to those before it. */
  bool resumed = a->start_step > 0 && pl_json_size(pl_json_get(meta, "attempts")) > 0;
  if (resumed) PL_TRY(find_difference(attempt, pl_json_get(meta, "attempts"), difference, e));
  bool bitwise = (!resumed || (pl_json_bool(pl_json_get(meta, "bitwise")) && !*difference)) && !a->note;
  PL_TRY(write_meta(path, meta, attempt, bitwise, e));
out:
  if (st != PL_OK) {
    pl_free(*difference);
    *difference = NULL;
  }
  pl_json_release(attempt);
  pl_json_release(meta);
  pl_free(path);
  return st;
}
