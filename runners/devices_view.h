/* What `pipelag list devices` says: where this build can train on this machine. */
#ifndef PL_RUNNERS_DEVICES_VIEW_H
#define PL_RUNNERS_DEVICES_VIEW_H

#include "core/base/json.h"

/* Opens every device once in each precision. A line for each, for every GPU, and one about several GPUs. */
void pl_devices_write(pl_str *out);

/* The same as an object (new reference; NULL when memory is out). */
pl_json *pl_devices_json(void);

#endif
