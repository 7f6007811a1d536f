#include "core/config/registry.h"

#include <stdio.h>
#include <string.h>

#include "core/config/params_text.h"

pl_status pl_registry_fail(const pl_registry *r, const char *name, const char *where, const char *seen, pl_err *e) {
  enum { MOST = 64 };
  const char *names[MOST];
  size_t count = 0;
  for (; count < r->count && count < MOST; count++) names[count] = r->items[count]->name;
  return pl_fail_name(names, count, name, where, seen, e);
}

const pl_component *pl_registry_find(const pl_registry *r, const char *name, const char *where, pl_err *e) {
  for (size_t i = 0; i < r->count; i++)
    if (strcmp(r->items[i]->name, name) == 0) return r->items[i];
  char seen[PL_WHERE];
  snprintf(seen, sizeof seen, "unknown %s \"%.200s\"", r->kind, name);
  pl_registry_fail(r, name, where, seen, e);
  return NULL;
}
