/* Readers of the files that other programs write about their training. */
#ifndef PL_RESULTS_IMPORT_READ_H
#define PL_RESULTS_IMPORT_READ_H

#include "results/import_table.h"

typedef enum pl_curve_format {
  PL_FORMAT_AUTO, /* by what is in the file */
  PL_FORMAT_CSV,
  PL_FORMAT_JSONL,
  PL_FORMAT_TENSORBOARD,
  PL_FORMAT_LLMC,    /* main.log of llm.c */
  PL_FORMAT_NANOGPT, /* logs of modded-nanogpt */
  PL_FORMATS
} pl_curve_format;

/* "csv", "jsonl", "tensorboard", "llmc", "nanogpt"; "auto". */
const char *pl_curve_format_name(pl_curve_format f);
bool pl_curve_format_find(const char *name, pl_curve_format *out);

/* A file in memory, with a NUL behind it. */
typedef struct pl_import_text {
  const char *path; /* for messages */
  char *bytes;      /* may be written to */
  size_t length;
  const pl_import_map *map;
} pl_import_text;

/* What a file is, by its first bytes. */
pl_curve_format pl_import_guess(const pl_import_text *in);

/* Add the rows of a file to the table. PL_BAD names file and line (or byte) of what cannot be read; columns that no
 * series is mapped to are passed over.
 *
 * CSV has a header line; cells may be quoted as in RFC 4180. A line of JSON lines is an object; a dot in a mapped name
 * leads into nested ones. */
PL_MUST_CHECK pl_status pl_import_csv(const pl_import_text *in, pl_import_table *t, pl_err *e);
PL_MUST_CHECK pl_status pl_import_jsonl(const pl_import_text *in, pl_import_table *t, pl_err *e);

/* llm.c: every line is "s:STEP" and figures: tel is val/loss, trl is train/loss, norm is train/grad_norm. */
PL_MUST_CHECK pl_status pl_import_llmc(const pl_import_text *in, pl_import_table *t, pl_err *e);

/* modded-nanogpt: lines "step:STEP/ALL" and figures: val_loss, train_loss, and train_time (ms or s) as seconds; other
 * lines (the program's source, what the GPUs say) are passed over. */
PL_MUST_CHECK pl_status pl_import_nanogpt(const pl_import_text *in, pl_import_table *t, pl_err *e);

/* TensorBoard event files: records with masked CRC-32C, of them the scalars, as simple_value or as a tensor with one
 * number. A session that starts again at a step replaces what was logged from there on. */
PL_MUST_CHECK pl_status pl_import_tensorboard(const pl_import_text *in, pl_import_table *t, pl_err *e);

/* Lines of a text one after the other: cut at the line break (which is overwritten, a carriage return too). */
typedef struct pl_import_lines {
  char *next, *end;
  size_t number; /* of the line given last, from 1 */
} pl_import_lines;

char *pl_import_next_line(pl_import_lines *l); /* NULL at the end */

/* Notes the name of a column for messages, each once. */
void pl_import_saw(pl_import_table *t, const char *name);

#endif
