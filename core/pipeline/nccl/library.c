#include "core/pipeline/nccl/library.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libnccl.so.2"

#define WEAK(name) extern __typeof__(nccl##name) nccl##name __attribute__((weak));
PL_NCCL_FUNCTIONS(WEAK)

static bool find(void *library, const char *name, void *function) {
  void *address = dlsym(library, name);
  memcpy(function, &address, sizeof address); /* ISO C has no cast from an object's to a function's address */
  return address != NULL;
}

static pl_status find_all(pl_nccl *out, pl_err *e) {
  void *library = NULL;
#define FIND(name)                                                                                                     \
  out->name = nccl##name;                                                                                              \
  if (!out->name) {                                                                                                    \
    if (!library) library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);                                                    \
    if (!library || !find(library, "nccl" #name, &out->name)) return pl_fail(e, PL_BAD, "NCCL: %s", dlerror());        \
  }
  PL_NCCL_FUNCTIONS(FIND)
#undef FIND
  return PL_OK;
}

static pl_status check_version(const pl_nccl *l, pl_err *e) {
  int version = 0;
  if (l->GetVersion(&version) != ncclSuccess) return pl_fail(e, PL_BAD, "NCCL does not say its version");
  if (version >= NCCL_VERSION_CODE) return PL_OK;
  return pl_fail(e, PL_BAD, "NCCL %d is older than %d, which this was built with", version, NCCL_VERSION_CODE);
}

pl_status pl_nccl_load(const pl_nccl **out, pl_err *e) {
  static pl_nccl found;
  static bool loaded;
  pl_status st = PL_OK;
  *out = &found;
  if (loaded) return PL_OK;
  PL_TRY(find_all(&found, e));
  PL_TRY(check_version(&found, e));
  loaded = true;
out:
  return st;
}
