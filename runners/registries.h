/* The one place where the interfaces of core meet their implementations. */
#ifndef PL_RUNNERS_REGISTRIES_H
#define PL_RUNNERS_REGISTRIES_H

#include "core/config/run_config.h"

/* All registries of this build, for everything that takes a `const pl_registries *`. */
pl_registries pl_registries_all(void);

/* What pl_device_open takes for the run. */
const char *pl_device_name(const pl_run_config *c);

#endif
