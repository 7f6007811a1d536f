/* What is sent to Slurm: sbatch's arguments and the job script of one array. */
#ifndef PL_RUNNERS_SLURM_SCRIPT_H
#define PL_RUNNERS_SLURM_SCRIPT_H

#include "runners/launchers/slurm/section.h"

typedef struct pl_script_args {
  const pl_slurm_config *config;
  const char *sweep;   /* its name, for a comment line */
  const char *program; /* absolute path of pipelag */
  const char *dir;     /* absolute path of the result directory */
  int64_t number;      /* of the submission */
  const char *token;
  int64_t tasks;     /* array indexes 0 .. tasks-1 */
  int64_t throttle;  /* 0: none */
  const char *after; /* "12:15": ids of jobs that must have ended before; "": none */
} pl_script_args;

typedef struct pl_script {
  char **argv; /* closed by NULL; argv[0] is sbatch */
  size_t argc, capacity;
  pl_str text; /* the script, for sbatch's standard input */
} pl_script;

/* Nothing in the arguments is read by a shell, except the section's own setup lines. Released by pl_script_free. */
PL_MUST_CHECK pl_status pl_script_make(const pl_script_args *args, pl_script *out, pl_err *e);
void pl_script_free(pl_script *s);

/* One word for a POSIX shell: 'it'\''s'; appended. pl_shell_show leaves harmless words bare. */
void pl_shell_quote(const char *text, pl_str *out);
void pl_shell_show(const char *text, pl_str *out);

#endif
