#include "runners/launchers/slurm/holder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runners/launchers/slurm/call.h"
#include "runners/launchers/slurm/queue.h"

enum { SECONDS = 20, WORD = 128 };

typedef struct job_name {
  char cluster[WORD], job[WORD];
  long restarts;
} job_name;

static bool parse_name(const char *text, job_name *out) {
  return sscanf(text, "%127[^:]:%127[0-9_]/%ld", out->cluster, out->job, &out->restarts) == 3;
}

/* The word after `key` in scontrol's output; false when it is not there. */
static bool find_word(const char *text, const char *key, char out[WORD]) {
  const char *at = strstr(text, key);
  return at && sscanf(at + strlen(key), " %*[=]%127s", out) == 1;
}

static bool is_this_cluster(const char *name) {
  static const char *const argv[] = {"scontrol", "show", "config", NULL};
  pl_call c;
  char found[WORD];
  if (pl_call_run(argv, NULL, SECONDS, &c, NULL) != PL_OK) return false;
  const char *text = pl_str_text(&c.out), *line = strstr(text, "ClusterName");
  bool same = c.exit_code == 0 && line && sscanf(line, "ClusterName = %127s", found) == 1 && strcmp(found, name) == 0;
  pl_call_free(&c);
  return same;
}

/* One line of `scontrol -o show job`. */
static bool says_gone(const char *line, const job_name *n) {
  char state[WORD], restarts[WORD];
  if (!find_word(line, " JobState", state) || !find_word(line, " Restarts", restarts)) return false;
  pl_queue_kind kind = pl_queue_kind_of(state);
  if (kind == PL_QUEUE_ENDED || kind == PL_QUEUE_WAITING) return true;
  bool ending = strcmp(state, "COMPLETING") == 0; /* maybe of the time before */
  return kind == PL_QUEUE_RUNNING && !ending && strtol(restarts, NULL, 10) > n->restarts;
}

bool pl_slurm_job_is_gone(const char *job) {
  job_name n;
  pl_call c;
  if (!parse_name(job, &n) || !is_this_cluster(n.cluster)) return false;
  const char *const argv[] = {"scontrol", "-o", "show", "job", n.job, NULL};
  if (pl_call_run(argv, NULL, SECONDS, &c, NULL) != PL_OK) return false;
  bool gone = c.exit_code == 0 ? says_gone(pl_str_text(&c.out), &n)
                               : c.exit_code > 0 && strstr(pl_str_text(&c.err), "Invalid job id") != NULL;
  pl_call_free(&c);
  return gone;
}
