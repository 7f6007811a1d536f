/* --at and --all for the commands that compare runs. */
#ifndef PL_RUNNERS_GAP_OPTIONS_H
#define PL_RUNNERS_GAP_OPTIONS_H

#include "analysis/gap.h"
#include "runners/options.h"

/* Reads --at KEY=VALUE. out->at_key is released by pl_free. */
PL_MUST_CHECK pl_status pl_gap_options_read(const pl_options *o, pl_gap_options *out, char **key, pl_err *e);

#endif
