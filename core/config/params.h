/* Parameter tables: one table per component drives parsing, defaults, range checks, canonical dump, identity, JSON
 * Schema, help and nearest-key hints. */
#ifndef PL_CONFIG_PARAMS_H
#define PL_CONFIG_PARAMS_H

#include "core/base/json.h"

enum { PL_MAX_STAGES = 64, PL_MAX_TEXTS = 64 };

typedef enum pl_param_type {
  PL_END = 0,  /* closes a table */
  PL_INT,      /* int64_t */
  PL_REAL,     /* double; NaN as default means that null is allowed and is the default ("not given") */
  PL_BOOL,     /* bool */
  PL_TEXT,     /* const char *, borrowed from the JSON document or the table; NULL default means null is allowed */
  PL_CHOICE,   /* int: index into choices */
  PL_INT_LIST, /* pl_int_list: an integer, a list of integers, or one of the words in choices */
  PL_TEXT_LIST /* pl_text_list: a string or a list of strings */
} pl_param_type;

typedef struct pl_int_list {
  size_t count; /* 1 for a plain integer; 0 when a word was given */
  int word;     /* index into choices, or -1 */
  int64_t values[PL_MAX_STAGES];
  bool is_list; /* written as a list, also of one */
} pl_int_list;

typedef struct pl_text_list {
  size_t count;
  const char *values[PL_MAX_TEXTS]; /* borrowed like PL_TEXT */
} pl_text_list;

typedef struct pl_param {
  const char *name; /* the key; "adamw.lr" is the key lr of the nested object adamw */
  pl_param_type type;
  size_t offset;              /* in the component's config struct */
  double def;                 /* default of INT, REAL, BOOL (0/1), CHOICE (index), INT_LIST (its one integer) */
  const char *def_text;       /* default of TEXT (NULL = null), TEXT_LIST (NULL = empty), INT_LIST when it is a word */
  double min, max;            /* inclusive range of INT, REAL, INT_LIST elements; min = max = 0 means no limit */
  bool above_min;             /* min itself is not allowed */
  bool required;              /* no default: leaving it out is an error */
  bool not_identity;          /* does not enter the run id (log cadence, checkpoint cadence, ...) */
  const char *const *choices; /* NULL-terminated; CHOICE, and the words of INT_LIST */
  const char *help;           /* one line with the unit, for `pipelag list` and the schema */
} pl_param;

/* Number of rows before PL_END. */
size_t pl_params_count(const pl_param *table);

/* Fills the config struct with the table's defaults. */
void pl_params_defaults(const pl_param *table, void *config);

/* Index of a key, or SIZE_MAX. */
size_t pl_params_find(const pl_param *table, const char *key);

/* Checks one value against its row and stores it. The message names `where` (the key path or the axis), the value seen
 * and what is allowed. */
PL_MUST_CHECK pl_status pl_param_set(const pl_param *row, void *config, const pl_json *value, const char *where,
                                     pl_err *e);

/* Message for an unknown key: "WHERE: unknown key "KEY" (of OWNER); did you mean "X"?; allowed: a, b, c". Returns
 * PL_BAD. */
pl_status pl_params_unknown(const pl_param *table, const char *owner, const char *key, const char *where, pl_err *e);

/* The stored value as JSON (new reference). */
pl_json *pl_param_get(const pl_param *row, const void *config);

/* Writes every row into `object`, nested keys as nested objects. False when memory is out. */
bool pl_params_dump(const pl_param *table, const void *config, pl_json *object);

/* Order-independent contribution of the table's identity rows to a run id: the wrapping sum over rows of hash(prefix,
 * name, type, value by value). */
uint64_t pl_params_identity(const pl_param *table, const void *config, const char *prefix);

/* JSON Schema "properties" object of the table (new reference). */
pl_json *pl_params_schema(const pl_param *table);

/* A row's type, range and default in words, for help: "real > 0, default 0.001". Appended to `out`. */
void pl_param_describe(const pl_param *row, pl_str *out);

#endif
