#include "runners/gap_options.h"

#include <string.h>

#include "core/base/memory.h"

pl_status pl_gap_options_read(const pl_options *o, pl_gap_options *out, char **key, pl_err *e) {
  *out = (pl_gap_options){.all = o->all};
  *key = NULL;
  if (o->at == NULL) return PL_OK;
  const char *equals = strchr(o->at, '=');
  if (equals == NULL || equals == o->at || !pl_parse_real(equals + 1, &out->at_value))
    return pl_fail(e, PL_BAD, "--at: saw \"%s\"; allowed: KEY=NUMBER, for example optimizer.lr=8e-3", o->at);
  pl_status st = pl_strdup(o->at, key, e);
  if (st != PL_OK) return st;
  (*key)[equals - o->at] = '\0';
  out->at_key = *key;
  return PL_OK;
}
