#include "core/device/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#ifdef PL_HAVE_BF16
#include "core/device/cpu/bf16/bf16.h"
#endif

typedef struct isa {
  const char *name;
  const pl_ops *ops;
  const pl_cpu_parts *parts;
  bool (*runs)(void); /* on this machine */
} isa;

#ifdef PL_HAVE_ISA_AVX512
static bool runs_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif
#ifdef PL_HAVE_ISA_AVX2
static bool runs_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}
#endif
static bool runs_base(void) { return true; }

/* Best first. */
static const isa isas[] = {
#ifdef PL_HAVE_ISA_AVX512
    {"avx512", &pl_cpu_ops_avx512, &pl_cpu_parts_avx512, runs_avx512},
#endif
#ifdef PL_HAVE_ISA_AVX2
    {"avx2", &pl_cpu_ops_avx2, &pl_cpu_parts_avx2, runs_avx2},
#endif
    {"base", &pl_cpu_ops_base, &pl_cpu_parts_base, runs_base},
};
enum { ISAS = sizeof isas / sizeof *isas };

static pl_status refuse(const char *wanted, pl_err *e) {
  char names[64] = "";
  size_t used = 0;
  for (size_t i = 0; i < ISAS; i++)
    if (isas[i].runs()) used += (size_t)snprintf(names + used, sizeof names - used, used ? ", %s" : "%s", isas[i].name);
  return pl_fail(e, PL_BAD, "PIPELAG_ISA is \"%s\"; this build on this machine has %s", wanted, names);
}

static pl_status choose(const isa **out, pl_err *e) {
  const char *wanted = getenv("PIPELAG_ISA");
  if (wanted && !*wanted) wanted = NULL;
  for (size_t i = 0; i < ISAS; i++) {
    *out = &isas[i];
    if (isas[i].runs() && (!wanted || strcmp(wanted, isas[i].name) == 0)) return PL_OK;
  }
  return refuse(wanted, e);
}

/* Products in bf16 have kernels of their own, which go with those for avx512. With PIPELAG_ISA they are those without
 * tiles. */
static pl_status open_bf16(pl_cpu_state *s, const isa *best, const char **name, pl_err *e) {
#ifdef PL_HAVE_BF16
  const char *wanted = getenv("PIPELAG_ISA");
  if (strcmp(best->name, "avx512") == 0 && __builtin_cpu_supports("avx512bf16")) {
    pl_status st = pl_bf16_room_new(!wanted || !*wanted, &s->bf16, e);
    if (st == PL_OK) *name = s->bf16->name;
    return st;
  }
#endif
  (void)s;
  (void)name;
  return pl_fail(e, PL_BAD,
                 "precision is \"bf16\", but this build on this machine has no bf16 instructions (it has %s kernels); "
                 "allowed here: \"fp32\"",
                 best->name);
}

static void close_state(pl_cpu_state *s) {
  if (!s) return;
#ifdef PL_HAVE_BF16
  pl_bf16_room_free(s->bf16);
#endif
  pl_free(s->packed);
  pl_free(s);
}

/* d->kernel is what computes, without the products in full precision. */
static pl_status open_one(pl_device *d, bool packed, pl_err *e) {
  pl_status st = PL_OK;
  const isa *best = NULL;
  const char *bf16 = NULL;
  pl_cpu_state *s = NULL;
  PL_TRY(choose(&best, e));
  PL_TRY(pl_alloc(1, sizeof *s, "the device", &s, e));
  s->parts = best->parts;
  if (d->precision == PL_PRECISION_BF16) PL_TRY(open_bf16(s, best, &bf16, e));
  if (packed) PL_TRY(pl_alloc(best->parts->packed_size(), sizeof *s->packed, "the blocks of products", &s->packed, e));
  snprintf(d->kernel, sizeof d->kernel, "%s kernels%s%s", best->name, bf16 ? ", bf16 by " : "", bf16 ? bf16 : "");
  d->ops = best->ops;
  d->state = s;
  s = NULL;
out:
  close_state(s);
  return st;
}

pl_status pl_cpu_open_part(pl_device *d, pl_err *e) { return open_one(d, true, e); }

void pl_cpu_close_part(pl_device *d) { close_state(d->state); }

pl_status pl_cpu_open(pl_device *d, pl_err *e) {
  char blas[64];
  if (d->threads > 1) return pl_threaded_open(d, e);
  pl_status st = open_one(d, false, e);
  if (st != PL_OK) return st;
  pl_blas_start(blas, sizeof blas);
  const size_t used = strlen(d->kernel);
  snprintf(d->kernel + used, sizeof d->kernel - used, ", %s", blas);
  return PL_OK;
}

void pl_cpu_close(pl_device *d) {
  if (d->threads > 1)
    pl_threaded_close(d);
  else
    close_state(d->state);
}

pl_status pl_cpu_alloc(pl_device *d, size_t bytes, const char *what, void **out, pl_err *e) {
  (void)d;
  return pl_alloc(bytes, 1, what, out, e);
}

void pl_cpu_free(pl_device *d, void *p) {
  (void)d;
  pl_free(p);
}

/* memcpy and memset with no bytes may come with NULL, which C forbids. */
void pl_cpu_copy(pl_device *d, void *to, const void *from, size_t bytes) {
  (void)d;
  if (bytes) memcpy(to, from, bytes);
}

void pl_cpu_upload(pl_device *d, void *to_device, const void *from_host, size_t bytes) {
  pl_cpu_copy(d, to_device, from_host, bytes);
}

void pl_cpu_download(pl_device *d, void *to_host, const void *from_device, size_t bytes) {
  pl_cpu_copy(d, to_host, from_device, bytes);
}

void pl_cpu_zero(pl_device *d, void *p, size_t bytes) {
  (void)d;
  if (bytes) memset(p, 0, bytes);
}

pl_status pl_cpu_check(pl_device *d, pl_err *e) {
  (void)d;
  (void)e;
  return PL_OK;
}
