#include "core/train/log_sink.h"

const char *const pl_series_names[PL_SERIES_COUNT] = {
#define PL_SERIES_NAME(id, name) [PL_SERIES_##id] = (name),
    PL_SERIES(PL_SERIES_NAME)
#undef PL_SERIES_NAME
};
