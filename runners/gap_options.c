#include "runners/gap_options.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"

static pl_status read_at(const pl_options *o, char *text, pl_gap_options *out, pl_err *e) {
  char *equals = strchr(text, '=');
  if (equals == NULL || equals == text || !pl_parse_real(equals + 1, &out->at_value))
    return pl_fail(e, PL_BAD, "--at: saw \"%s\"; allowed: KEY=NUMBER, for example optimizer.lr=8e-3", o->at);
  *equals = '\0';
  out->at_key = text;
  return PL_OK;
}

static pl_status read_against(const pl_options *o, char *text, pl_gap_choice *out, pl_err *e) {
  size_t count = 0;
  char *rest = text;
  for (char *key; (key = strsep(&rest, ",")) != NULL;) {
    if (count == PL_MAX_AGAINST || key[0] == '\0')
      return pl_fail(e, PL_BAD, "--against: saw \"%s\"; allowed: KEY or KEY,KEY,... with at most %d keys", o->against,
                     PL_MAX_AGAINST);
    out->against[count++] = key;
  }
  out->gap.against = out->against;
  return PL_OK;
}

static pl_status read_numbers(const pl_options *o, pl_gap_choice *out, pl_err *e) {
  if (o->select_on && !pl_parse_int(o->select_on, &out->seed))
    return pl_fail(e, PL_BAD, "--select-on: saw \"%s\"; allowed: a seed, for example 0", o->select_on);
  if (o->target && (!pl_parse_real(o->target, &out->target) || !isfinite(out->target)))
    return pl_fail(e, PL_BAD, "--target: saw \"%s\"; allowed: a loss in nats per token, for example 1.7", o->target);
  if (o->resolve &&
      (!pl_parse_real(o->resolve, &out->gap.resolve) || !isfinite(out->gap.resolve) || out->gap.resolve <= 0))
    return pl_fail(e, PL_BAD, "--resolve: saw \"%s\"; allowed: a difference in nats above 0, for example 0.005",
                   o->resolve);
  if (o->select_on) out->gap.select_on = &out->seed;
  if (o->target) out->gap.target = &out->target;
  return PL_OK;
}

pl_status pl_gap_choice_read(const pl_options *o, pl_gap_choice *out, pl_err *e) {
  pl_status st = PL_OK;
  size_t at_length = o->at ? strlen(o->at) + 1 : 0, against_length = o->against ? strlen(o->against) + 1 : 0;
  *out = (pl_gap_choice){.gap = {.all = o->all}};
  if (o->json && o->csv) return pl_fail(e, PL_BAD, "--json and --csv: are given together; allowed: one of them");
  PL_TRY(pl_alloc(at_length + against_length, 1, "the options", &out->texts, e));
  if (o->at) PL_TRY(read_at(o, memcpy(out->texts, o->at, at_length), &out->gap, e));
  if (o->against) PL_TRY(read_against(o, memcpy(out->texts + at_length, o->against, against_length), out, e));
  PL_TRY(read_numbers(o, out, e));
out:
  return st;
}

void pl_gap_choice_free(pl_gap_choice *c) {
  pl_free(c->texts);
  *c = (pl_gap_choice){0};
}
