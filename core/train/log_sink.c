#include "core/train/log_sink.h"

#define PL_SERIES_NAME(id, name, unit, text) [PL_SERIES_##id] = (name),
#define PL_SERIES_UNIT(id, name, unit, text) [PL_SERIES_##id] = (unit),
#define PL_SERIES_TEXT(id, name, unit, text) [PL_SERIES_##id] = (text),
const char *const pl_series_names[PL_SERIES_COUNT] = {PL_SERIES(PL_SERIES_NAME)};
const char *const pl_series_units[PL_SERIES_COUNT] = {PL_SERIES(PL_SERIES_UNIT)};
const char *const pl_series_texts[PL_SERIES_COUNT] = {PL_SERIES(PL_SERIES_TEXT)};
