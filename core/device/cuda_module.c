#include "core/device/cuda_module.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/* Of the module; of a program that has the device in it, as tests have, its own. */
__attribute__((weak)) pl_status pl_cuda_open(pl_device *d, pl_err *e);
__attribute__((weak)) void pl_cuda_close(pl_device *d);
__attribute__((weak)) pl_status pl_cuda_list(pl_gpu *out, size_t room, size_t *count, pl_err *e);

typedef pl_status opener(pl_device *d, pl_err *e);
typedef void closer(pl_device *d);
typedef pl_status lister(pl_gpu *out, size_t room, size_t *count, pl_err *e);

/* The folder of the program, with room for the module's name. */
static bool module_path(char *path, size_t size) {
  const ssize_t length = readlink("/proc/self/exe", path, size);
  if (length < 0 || (size_t)length >= size) return false;
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  if (!slash || (size_t)(slash - path) + 1 + sizeof PL_CUDA_MODULE > size) return false;
  memcpy(slash + 1, PL_CUDA_MODULE, sizeof PL_CUDA_MODULE);
  return true;
}

static pl_status absent(const char *why, pl_err *e) {
  return pl_fail(e, PL_BAD, "device is \"cuda\", but this build has no CUDA (%s); allowed here: cpu, paranoid", why);
}

/* A symbol of the module: loading it again gives the one that is there. NULL, or why there is none. */
static const char *find(const char *name, void **out) {
  char path[4096];
  if (!module_path(path, sizeof path)) return "the program's own folder is not known";
  if (access(path, F_OK) != 0) return PL_CUDA_MODULE " is not beside the program";
  void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  *out = module ? dlsym(module, name) : NULL;
  return *out ? NULL : dlerror();
}

pl_status pl_cuda_load(pl_device *d, pl_err *e) {
  opener *open = pl_cuda_open;
  if (!open) {
    void *found = NULL;
    const char *why = find("pl_cuda_open", &found);
    if (why) return absent(why, e);
    memcpy(&open, &found, sizeof open); /* ISO C has no cast from an object's to a function's address */
  }
  return open(d, e);
}

void pl_cuda_unload(pl_device *d) {
  closer *close = pl_cuda_close;
  void *found = NULL;
  if (!close) {
    if (find("pl_cuda_close", &found)) return;
    memcpy(&close, &found, sizeof close);
  }
  close(d);
}

pl_status pl_cuda_gpus(pl_gpu *out, size_t room, size_t *count, pl_err *e) {
  lister *list = pl_cuda_list;
  *count = 0;
  if (!list) {
    void *found = NULL;
    const char *why = find("pl_cuda_list", &found);
    if (why) return pl_fail(e, PL_BAD, "cuda: no device (%s)", why);
    memcpy(&list, &found, sizeof list);
  }
  return list(out, room, count, e);
}
