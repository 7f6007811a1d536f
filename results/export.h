/* Curves and configurations in forms that other programs read. */
#ifndef PL_RESULTS_EXPORT_H
#define PL_RESULTS_EXPORT_H

#include "results/catalog.h"
#include "results/import_read.h"

/* Writes the curve of every run into `folder`, which is made: ID.csv, ID.jsonl, or ID/events.out.tfevents.* for
 * PL_FORMAT_TENSORBOARD (values as float32, the configuration as a text summary); and import.json, a manifest with all
 * configurations and final figures, from which pl_import_add_manifest takes the runs again. Runs without an outcome
 * have a curve and are not in the manifest. What is wrong with one run is said and does not stop the others. */
PL_MUST_CHECK pl_status pl_export(const pl_catalog *c, pl_curve_format format, const char *folder,
                                  void (*say)(void *self, const char *line), void *say_self, pl_err *e);

/* A curve in one of the forms; appended. */
void pl_export_csv(const pl_curve *c, pl_str *out);
void pl_export_jsonl(const pl_curve *c, pl_str *out);
void pl_export_tensorboard(const pl_curve *c, const pl_json *config, pl_str *out);

#endif
