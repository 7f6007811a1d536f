/* Words about parameters and components, shared by the sources of core/config. */
#ifndef PL_CONFIG_PARAMS_TEXT_H
#define PL_CONFIG_PARAMS_TEXT_H

#include "core/config/registry.h"

enum { PL_WHERE = 512 };

/* Joins where and key with a dot into `out`, cut to its size; either may be empty. Returns `out`. */
const char *pl_where(const char *where, const char *key, char out[PL_WHERE]);

/* Which ends of the row's range are limits, and whether the value lies within them. */
bool pl_param_has_lower(const pl_param *row);
bool pl_param_has_upper(const pl_param *row);
bool pl_param_in_range(const pl_param *row, double value);

/* Index of the choice that the word names, or -1. */
int pl_param_choice(const pl_param *row, const char *word);

/* Whether null may be given, and the default as JSON (new reference). */
bool pl_param_takes_null(const pl_param *row);
pl_json *pl_param_default(const pl_param *row);

/* " > 0 and <= 1", " from 1 to 64", or nothing. */
void pl_param_append_range(const pl_param *row, pl_str *out);

/* "a whole number from 1 to 64", "one of global, stage": what a row takes, for messages. */
void pl_param_append_allowed(const pl_param *row, pl_str *out);

/* "WHERE: SEEN; did you mean "X"?; allowed: a, b, c". Returns PL_BAD. */
pl_status pl_fail_name(const char *const *names, size_t count, const char *name, const char *where, const char *seen,
                       pl_err *e);

/* The same with the registry's components as names. */
pl_status pl_registry_fail(const pl_registry *r, const char *name, const char *where, const char *seen, pl_err *e);

/* Whether the key names a nested object: some row starts with it and a dot. */
bool pl_params_is_group(const pl_param *table, const char *key);

#endif
