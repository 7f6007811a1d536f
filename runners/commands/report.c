/* pipelag report DIR...: tables, plots and the answer in words, into DIR/report. */
#include "analysis/report.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/join.h"
#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "pl_version.h"
#include "runners/command.h"
#include "runners/gap_options.h"
#include "runners/registries.h"
#include "runners/say.h"
#include "runners/signals.h"

enum { WATCH_SECONDS = 5 };

/* What one report needs besides the catalog; the texts are owned. */
typedef struct report_choice {
  const pl_options *options;
  pl_gap_choice gap;
  char *folder, *heat_text;
  const char *heat[2];
} report_choice;

static pl_status read_heat(const char *text, report_choice *out, pl_err *e) {
  if (text == NULL) return PL_OK;
  pl_status st = pl_strdup(text, &out->heat_text, e);
  if (st != PL_OK) return st;
  char *comma = strchr(out->heat_text, ',');
  if (comma == NULL || comma == out->heat_text || comma[1] == '\0' || strchr(comma + 1, ',') != NULL)
    return pl_fail(e, PL_BAD, "--heat: saw \"%s\"; allowed: two keys, for example optimizer.lr,delay", text);
  *comma = '\0';
  out->heat[0] = out->heat_text;
  out->heat[1] = comma + 1;
  return PL_OK;
}

/* Names of the directories: those of their sweeps, with a number where two have the same. */
static pl_status name_directories(const pl_joined *joined, char **names, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < joined->count && st == PL_OK; i++) {
    pl_str name = {0};
    size_t same = 0, before = 0;
    for (size_t k = 0; k < joined->count; k++)
      if (strcmp(joined->parts[k].name, joined->parts[i].name) == 0) {
        same++;
        before += k < i;
      }
    pl_str_append(&name, joined->parts[i].name);
    if (same > 1) pl_str_printf(&name, "(%zu)", before + 1);
    st = pl_str_check(&name, e);
    if (st == PL_OK) st = pl_strdup(pl_str_text(&name), &names[i], e);
    pl_str_free(&name);
  }
  return st;
}

static void append_option(const char *name, const char *value, pl_str *out) {
  if (value != NULL) pl_str_printf(out, " --%s %s", name, value);
}

static void append_command(const pl_options *o, char *const *names, pl_str *out) {
  pl_str_append(out, "pipelag report");
  for (size_t i = 0; i < o->arg_count; i++) pl_str_printf(out, " %s", names[i]);
  append_option("at", o->at, out);
  append_option("select-on", o->select_on, out);
  append_option("against", o->against, out);
  append_option("target", o->target, out);
  append_option("resolve", o->resolve, out);
  append_option("heat", o->heat, out);
  if (o->all) pl_str_append(out, " --all");
}

/* Reads the directories and writes; `reload` seconds are those of the page. */
static pl_status write_report(const report_choice *choice, int reload, pl_err *e) {
  const pl_options *o = choice->options;
  pl_registries registries = pl_registries_all();
  pl_joined joined = {0};
  pl_str command = {0};
  char **names = NULL, program[96];
  pl_status st = PL_OK;
  snprintf(program, sizeof program, "pipelag %s (%.12s%s)", PL_VERSION, PL_GIT_COMMIT,
           PL_GIT_DIFF[0] != '\0' ? "+" : "");
  PL_TRY(pl_alloc(o->arg_count, sizeof names[0], "names", &names, e));
  PL_TRY(pl_joined_open(&registries, o->args, o->arg_count, pl_say_stderr, NULL, &joined, e));
  PL_TRY(name_directories(&joined, names, e));
  append_command(o, names, &command);
  PL_TRY(pl_str_check(&command, e));
  const pl_report_input in = {.catalog = &joined.all,
                              .known = &joined.warnings,
                              .options = &choice->gap.gap,
                              .dirs = o->args,
                              .names = (const char *const *)names,
                              .dir_count = o->arg_count,
                              .command = pl_str_text(&command),
                              .program = program,
                              .heat = {choice->heat[0], choice->heat[1]},
                              .reload = reload};
  PL_TRY(pl_report_write(&in, choice->folder, o->watch ? NULL : pl_say_stdout, NULL, e));
out:
  for (size_t i = 0; names != NULL && i < o->arg_count; i++) pl_free(names[i]);
  pl_free(names);
  pl_str_free(&command);
  pl_joined_free(&joined);
  return st;
}

/* Whether a report depends on a file or folder of this name. What grows while a run goes on is read when it has ended,
 * and then its result is new too. */
static bool matters(const char *name) {
  static const char *const grows[] = {"journal", "times", "curves.h5", "claim", "ckpt"};
  for (size_t i = 0; i < sizeof grows / sizeof *grows; i++)
    if (strcmp(name, grows[i]) == 0) return false;
  return strncmp(name, "log.", 4) != 0 && strncmp(name, "trace.", 6) != 0 && strstr(name, ".tmp.") == NULL;
}

static uint64_t look_at(const FTSENT *entry) {
  const struct stat *s = entry->fts_statp;
  const int64_t facts[] = {s->st_size, s->st_mtim.tv_sec, s->st_mtim.tv_nsec};
  return pl_hash_join(pl_hash_text(entry->fts_path), pl_hash(facts, sizeof facts));
}

/* A number that changes with what is in the directories, the report itself left out. */
static pl_status look(const report_choice *choice, uint64_t *out, pl_err *e) {
  const pl_options *o = choice->options;
  char *paths[PL_MAX_ARGS + 1] = {0};
  struct stat own = {0};
  bool exists = stat(choice->folder, &own) == 0;
  for (size_t i = 0; i < o->arg_count; i++) memcpy(&paths[i], &o->args[i], sizeof paths[i]); /* fts changes none */
  FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
  if (walk == NULL) return pl_fail(e, PL_FAIL, "%s: cannot be looked through: %s", paths[0], strerror(errno));
  *out = 0;
  for (FTSENT *entry; (entry = fts_read(walk)) != NULL;) {
    bool itself = exists && entry->fts_info == FTS_D && entry->fts_statp->st_ino == own.st_ino &&
                  entry->fts_statp->st_dev == own.st_dev;
    if (itself || (entry->fts_level > 0 && !matters(entry->fts_name)))
      fts_set(walk, entry, FTS_SKIP);
    else if (entry->fts_info == FTS_F)
      *out += look_at(entry);
  }
  fts_close(walk);
  return PL_OK;
}

/* One look; writes when something changed. Only what can pass is waited out. */
static pl_status look_and_write(const report_choice *choice, uint64_t *seen, bool *written, pl_err *e) {
  uint64_t now = 0;
  pl_status st = look(choice, &now, e);
  if (st != PL_OK || now == *seen) return st;
  *seen = now;
  st = write_report(choice, 2 * WATCH_SECONDS, e);
  if (st == PL_OK) {
    printf("%s/report.html\n", choice->folder);
    fflush(stdout);
    *written = true;
  } else if (st == PL_NOTHING || *written) {
    fprintf(stderr, "pipelag: %s\n", e->text);
    *e = (pl_err){0};
    st = PL_OK;
  }
  return st;
}

/* Until a signal, which then ends the program; the page that stays does not load itself again. */
static pl_status watch(const report_choice *choice, pl_err *e) {
  const struct timespec pause = {.tv_sec = WATCH_SECONDS};
  const volatile sig_atomic_t *stop = pl_signals_stop();
  uint64_t seen = 0;
  bool written = false;
  pl_signals_install(false);
  while (*stop == 0) {
    pl_status st = look_and_write(choice, &seen, &written, e);
    if (st != PL_OK) return st;
    if (*stop == 0) nanosleep(&pause, NULL);
  }
  pl_status st = written ? write_report(choice, 0, e) : PL_OK;
  if (st != PL_OK) return st;
  int number = pl_signals_latest();
  pl_signals_reset();
  raise(number);
  return PL_STOPPED;
}

static pl_status run(const pl_options *o, pl_err *e) {
  report_choice choice = {.options = o};
  pl_status st = PL_OK;
  PL_TRY(pl_gap_choice_read(o, &choice.gap, e));
  PL_TRY(read_heat(o->heat, &choice, e));
  if (o->output != NULL)
    PL_TRY(pl_strdup(o->output, &choice.folder, e));
  else if (pl_path_exists(o->args[0]) && !pl_path_is_folder(o->args[0]))
    PL_TRY(pl_fail(e, PL_BAD, "%s: is no directory; say with -o FOLDER where the report of a collected file goes",
                   o->args[0]));
  else
    PL_TRY(pl_path_join(o->args[0], "report", &choice.folder, e));
  PL_TRY(o->watch ? watch(&choice, e) : write_report(&choice, 0, e));
out:
  pl_gap_choice_free(&choice.gap);
  pl_free(choice.folder);
  pl_free(choice.heat_text);
  return st;
}

const pl_command pl_command_report = {
    .name = "report",
    .arguments = "DIR...",
    .summary = "Write the answer, tables and plots (HTML, Markdown, LaTeX, CSV, JSON, SVG, PNG, PDF) into DIR/report",
    .options = "oaA12347W",
    .min_args = 1,
    .max_args = PL_MAX_ARGS,
    .run = run};
