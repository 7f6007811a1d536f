#include "core/device/device.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/device/cpu/cpu.h"
#include "core/device/cuda_module.h"

typedef struct device_type {
  const char *name;
  pl_status (*open)(pl_device *d, pl_err *e);
  void (*close)(pl_device *d);
} device_type;

static const device_type types[] = {
    {"cpu", pl_cpu_open, pl_cpu_close},
    {"paranoid", pl_paranoid_open, pl_paranoid_close},
#ifndef PL_F64
    {"cuda", pl_cuda_load, pl_cuda_unload},
#endif
};

#ifdef PL_F64
#define ALLOWED "cpu, paranoid"
#else
#define ALLOWED "cpu, paranoid, cuda"
#endif

static const device_type *find(const char *name) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) return &types[i];
  return NULL;
}

pl_status pl_device_open(const char *name, pl_precision precision, size_t threads, pl_device **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_device *d = NULL;
  *out = NULL;
  const device_type *type = find(name);
  if (!type) return pl_fail(e, PL_BAD, "device is \"%s\"; allowed: " ALLOWED, name);
  PL_TRY(pl_alloc(1, sizeof *d, "the device", &d, e));
  d->precision = precision;
  d->threads = threads;
  PL_TRY(type->open(d, e));
  *out = d;
  d = NULL;
out:
  pl_free(d);
  return st;
}

void pl_device_close(pl_device *d) {
  if (!d) return;
  find(d->ops->name)->close(d);
  pl_free(d);
}
