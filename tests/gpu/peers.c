/* The way between GPUs with one rank: arrays that go to the rank itself, several at once and one after the other, and
 * an exchange that is cut off. The last line is JSON, or the reason of exit status 77: the library is not there. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/device/cuda_module.h"
#include "core/pipeline/nccl/peers.h"
#include "tests/bench/bench.h"

enum { PATIENCE = 10 /* seconds */, SLOTS = 2, NOT_HERE = 77 };

/* Of a program that has the device in it. */
extern const pl_peers_type pl_cuda_peers __attribute__((weak));

/* Of the module, which opening the device has loaded. */
static const pl_peers_type *find(void) {
  char path[PATH_MAX];
  if (&pl_cuda_peers) return &pl_cuda_peers;
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof PL_CUDA_MODULE);
  if (length < 0) return NULL;
  path[length] = '\0';
  strcpy(strrchr(path, '/') + 1, PL_CUDA_MODULE);
  void *module = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  return module ? dlsym(module, "pl_cuda_peers") : NULL;
}

static int not_here(const char *why) {
  printf("%s\n", why);
  return NOT_HERE;
}

static _Noreturn void give_up(const char *why) {
  printf("%s\n", why);
  exit(PL_FAIL);
}

/* Two arrays from and to this rank. */
typedef struct both {
  pl_device *d;
  size_t n;
  pl_real *from[2], *to[2];
} both;

static both arrays(pl_device *d, size_t n) {
  both b = {.d = d, .n = n};
  pl_err e = {0};
  for (int i = 0; i < 2; i++) {
    void *p = NULL;
    pl_real *x = bench_numbers(n);
    x[0] = (pl_real)i;
    bench_must(d->ops->alloc(d, n * sizeof *x, "an array", &p, &e), &e);
    b.from[i] = p;
    bench_must(d->ops->alloc(d, n * sizeof *x, "an array", &p, &e), &e);
    b.to[i] = p;
    d->ops->upload(d, b.from[i], x, n * sizeof *x);
    free(x);
  }
  return b;
}

static void begin(const pl_peers_type *t, pl_peers *p, size_t slot, const both *b) {
  const pl_peers_part parts[] = {{.sends = true, .data = b->from[0], .count = b->n},
                                 {.data = b->to[0], .count = b->n},
                                 {.sends = true, .data = b->from[1], .count = b->n},
                                 {.data = b->to[1], .count = b->n}};
  pl_err e = {0};
  bench_must(t->mark(p, slot, &e), &e);
  bench_must(t->exchange(p, slot, parts, 4, &e), &e);
}

static void finish(const pl_peers_type *t, pl_peers *p, size_t slot) {
  const double end = pl_clock_seconds() + PATIENCE;
  pl_err e = {0};
  for (bool over = false; !over;) {
    bench_must(t->over(p, slot, &over, &e), &e);
    if (pl_clock_seconds() > end) give_up("an exchange of this rank with itself does not end");
  }
}

static void compare(const both *b, bool equal) {
  pl_real *x = bench_numbers(b->n), *y = bench_numbers(b->n);
  bool same = true;
  for (int i = 0; i < 2; i++) {
    b->d->ops->download(b->d, x, b->from[i], b->n * sizeof *x);
    b->d->ops->download(b->d, y, b->to[i], b->n * sizeof *y);
    same = same && memcmp(x, y, b->n * sizeof *x) == 0;
  }
  free(x);
  free(y);
  if (same != equal) give_up(equal ? "what arrived is not what was sent" : "equal before anything was sent");
}

int main(int argc, char **argv) {
  pl_device *d = NULL;
  pl_err e = {0};
  pl_peers_id id;
  pl_peers *p = NULL;
  int version = 0;
  if (pl_device_open("cuda", PL_PRECISION_FP32, 1, &d, &e) != PL_OK) return not_here(e.text);
  const pl_peers_type *t = find();
  if (!t) return not_here("this build has no NCCL");
  if (t->load(&version, &e) != PL_OK) return not_here(e.text);
  bench_must(t->make_id(&id, &e), &e);
  bench_must(t->open(d, &id, 0, 1, SLOTS, &p, &e), &e);
  const both b = arrays(d, bench_asked(argc, argv, "--small") ? 1000 : (size_t)1 << 26);
  compare(&b, false);
  begin(t, p, 0, &b);
  finish(t, p, 0);
  compare(&b, true);
  const double before = pl_clock_seconds();
  for (int i = 0; i < 10; i++) begin(t, p, (size_t)i % SLOTS, &b);
  for (size_t i = 0; i < SLOTS; i++) finish(t, p, i);
  const double rate = 10 * 2 * (double)(b.n * sizeof(pl_real)) / (pl_clock_seconds() - before);
  begin(t, p, 0, &b);
  const double cut = pl_clock_seconds();
  t->close(p);
  const double closing = pl_clock_seconds() - cut;
  if (!(d->ops->sum_squares(d, b.n, b.from[1]) > 0) || d->ops->check(d, &e) != PL_OK)
    give_up("the GPU does not compute after an exchange was cut off");
  pl_device_close(d);
  printf("{\"version\": %d, \"to_itself_gb_per_second\": %.4g, \"cut_off_seconds\": %.3g}\n", version, 1e-9 * rate,
         closing);
  return 0;
}
