/* A Slurm made of shell scripts, first and alone on PATH: it logs its calls, keeps a queue in a file and takes orders
 * from files. FOLDER/bin/<command>; call n of sbatch leaves FOLDER/calls/sbatch.n/{argv,env,stdin} and runs
 * FOLDER/answers/sbatch.n (or, without it, sbatch.all) as shell text when it is there, which may call `accept`. */
#ifndef FAKE_SLURM_H
#define FAKE_SLURM_H

#include "results_help.h"

#include <sys/stat.h>

static const char fake_slurm_text[] =
    "#!/bin/sh\n"
    "PATH=/usr/bin:/bin; here=FOLDER; name=${0##*/}\n"
    "n=1; until mkdir $here/calls/$name.$n 2>/dev/null; do n=$((n+1)); done; call=$here/calls/$name.$n\n"
    "for a in \"$@\"; do printf '%s\\n' \"$a\"; done >$call/argv; env >$call/env\n"
    "accept() {\n"
    "  id=$((100+n)); token=$(sed -n 's/^--job-name=//p' $call/argv)\n"
    "  last=$(sed -n 's/^--array=0-\\([0-9]*\\).*/\\1/p' $call/argv)\n"
    "  for i in $(seq 0 $last); do echo \"$token|$id|$i|$id|PENDING|Priority|0|0||\"; done >>$here/queue; }\n"
    "[ $name = sbatch ] && [ \"$1\" = --version ] && rmdir $call 2>/dev/null\n"
    "[ \"$1\" = --version ] && { rm -rf $call; echo slurm 22.05.8; exit; }\n"
    "[ $name != sbatch ] || cat >$call/stdin\n"
    "for order in $here/answers/$name.$n $here/answers/$name.all; do [ ! -e $order ] || { . $order; exit; }; done\n"
    "case $name in\n"
    "sbatch) accept; echo $id;;\n"
    "squeue) case \"$*\" in *-O*) cat $here/queue;; *)\n"
    "  sed 's/^[^|]*|[^|]*|[^|]*|[^|]*|\\([A-Z]*\\)|.*/'$(id -u)'|(null)|debug|normal|\\1/' $here/queue;; esac;;\n"
    "scontrol) case \"$*\" in *config*) cat $here/config;; *partition*) cat $here/partitions;; esac;;\n"
    "*) exit 1;;\n"
    "esac\n";

static inline void fake_write(void **state, const char *name, const char *text) {
  char path[256];
  write_bytes(in_temp(state, name, path), text, strlen(text));
}

static inline char *fake_read(void **state, const char *name) {
  char path[256], *text;
  read_bytes(in_temp(state, name, path), &text);
  return text;
}

/* Makes the commands and puts them on PATH. */
static inline void fake_slurm(void **state) {
  static const char *const names[] = {"sbatch", "squeue", "scontrol", "sacct", "sacctmgr"};
  static const char *const folders[] = {"bin", "calls", "answers"};
  char path[256], name[64];
  pl_str text = {0};
  const char *at = fake_slurm_text, *mark = strstr(fake_slurm_text, "FOLDER");
  pl_str_append_bytes(&text, at, (size_t)(mark - at));
  pl_str_printf(&text, "%s%s", (const char *)*state, mark + strlen("FOLDER"));
  for (size_t i = 0; i < 3; i++) assert_int_equal(pl_make_folders(in_temp(state, folders[i], path), NULL), PL_OK);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(name, sizeof name, "bin/%s", names[i]);
    fake_write(state, name, text.text);
    assert_int_equal(chmod(in_temp(state, name, path), 0755), 0);
  }
  pl_str_free(&text);
  fake_write(state, "queue", "");
  fake_write(
      state, "config",
      "Configuration data\nAccountingStorageEnforce = none\nClusterName             = fake\nMaxArraySize          "
      "  = 4\nMaxJobCount             = 10000\nSLURM_VERSION           = 22.05.8\n");
  fake_write(
      state, "partitions",
      "PartitionName=debug AllowGroups=ALL Default=YES QoS=N/A State=UP\nPartitionName=low Default=NO QoS=N/A\n");
  assert_int_equal(setenv("PATH", in_temp(state, "bin", path), 1), 0);
}

/* How often a command was called. */
static inline int fake_calls(void **state, const char *command) {
  char name[128], path[256];
  int count = 0;
  for (;; count++) {
    snprintf(name, sizeof name, "calls/%s.%d", command, count + 1);
    if (!pl_path_exists(in_temp(state, name, path))) return count;
  }
}

/* Part of a call: argv, env or stdin; released by pl_free. */
static inline char *fake_call(void **state, const char *command, int number, const char *part) {
  char name[128];
  snprintf(name, sizeof name, "calls/%s.%d/%s", command, number, part);
  return fake_read(state, name);
}

#endif
