#include "tests/cuda/grid.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "tests/cuda/fiber.h"

enum { WARP = 32, MOST_THREADS = 1024, EXCHANGE = 64, SHARED = 48 * 1024 };

enum class wait { nothing, barrier, exchange, ended };

namespace {

struct thread {
  pl_fiber *fiber;
  dim3 at;
  int lane;
  size_t warp;
  wait waits;
  unsigned mask; /* of the exchange that it waits for */
  size_t bytes;
  alignas(16) char mine[EXCHANGE], all[WARP * EXCHANGE];
};

struct site {
  void *memory;
  size_t bytes;
};

struct block {
  const char *kernel;
  const std::function<void()> *body;
  size_t count; /* of threads */
  std::map<const void *, site> shared;
  size_t shared_bytes;
};

} // namespace

thread_local pl_grid_place pl_grid_now;
static thread_local std::vector<thread> *threads;
static thread_local thread *running;
static thread_local block now;
static thread_local size_t launches;

[[noreturn]] static void refuse(const char *format, ...) {
  va_list arguments;
  std::fprintf(stderr, "kernel %s<<<(%u,%u,%u), (%u,%u,%u)>>>, block (%u,%u,%u): ", now.kernel, pl_grid_now.grid_size.x,
               pl_grid_now.grid_size.y, pl_grid_now.grid_size.z, pl_grid_now.block_size.x, pl_grid_now.block_size.y,
               pl_grid_now.block_size.z, pl_grid_now.block.x, pl_grid_now.block.y, pl_grid_now.block.z);
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::abort();
}

static void give_way(wait for_what) {
  thread *t = running;
  t->waits = for_what;
  pl_fiber_yield(t->fiber, for_what == wait::ended);
}

static void run_body(void *) {
  (*now.body)();
  give_way(wait::ended);
}

void pl_grid_barrier() {
  if (!running) refuse("a barrier outside of a kernel");
  give_way(wait::barrier);
}

int pl_grid_lane() { return running->lane; }

/* When all lanes of the mask have come: everyone gets everything. */
static void complete_exchange(const thread *last) {
  const size_t first = last->warp * WARP;
  for (int lane = 0; lane < WARP; lane++) {
    if (!(last->mask >> lane & 1)) continue;
    if (first + static_cast<size_t>(lane) >= now.count) refuse("the mask %#x names lane %d, which is no thread", last->mask, lane);
    const thread &t = (*threads)[first + static_cast<size_t>(lane)];
    if (t.waits != wait::exchange || t.mask != last->mask) return;
    if (t.bytes != last->bytes) refuse("lanes exchange %zu and %zu bytes", t.bytes, last->bytes);
  }
  alignas(16) char all[WARP * EXCHANGE];
  std::memset(all, 0xff, sizeof all);
  for (int lane = 0; lane < WARP; lane++)
    if (last->mask >> lane & 1)
      std::memcpy(all + static_cast<size_t>(lane) * last->bytes, (*threads)[first + static_cast<size_t>(lane)].mine, last->bytes);
  for (int lane = 0; lane < WARP; lane++) {
    if (!(last->mask >> lane & 1)) continue;
    thread &t = (*threads)[first + static_cast<size_t>(lane)];
    std::memcpy(t.all, all, WARP * last->bytes);
    t.waits = wait::nothing;
  }
}

const void *pl_grid_exchange(unsigned mask, const void *mine, size_t bytes) {
  thread *t = running;
  if (bytes > EXCHANGE) refuse("an exchange of %zu bytes", bytes);
  if (!(mask >> t->lane & 1)) refuse("lane %d is not in its own mask %#x", t->lane, mask);
  std::memcpy(t->mine, mine, bytes);
  t->mask = mask;
  t->bytes = bytes;
  t->waits = wait::exchange;
  complete_exchange(t);
  if (t->waits == wait::exchange) pl_fiber_yield(t->fiber, false);
  return t->all;
}

void *pl_grid_shared(const void *where, size_t bytes) {
  site &s = now.shared[where];
  if (!s.memory) {
    if (posix_memalign(&s.memory, 128, bytes) != 0) refuse("no memory for shared memory");
    std::memset(s.memory, 0xff, bytes);
    s.bytes = bytes;
    now.shared_bytes += bytes;
    if (now.shared_bytes > SHARED) refuse("%zu bytes of shared memory; allowed: %d", now.shared_bytes, SHARED);
  }
  if (s.bytes != bytes) refuse("one shared array has %zu and %zu bytes", s.bytes, bytes);
  return s.memory;
}

static size_t count_waiting(wait what) {
  size_t n = 0;
  for (size_t i = 0; i < now.count; i++) n += (*threads)[i].waits == what;
  return n;
}

/* One turn of each of the threads from `first` on, of one warp, that can go on; how many could. */
static size_t turn(size_t first, bool backward) {
  const size_t left = now.count - first, lanes = left < WARP ? left : size_t{WARP};
  size_t moved = 0;
  for (size_t i = 0; i < lanes; i++) {
    thread &t = (*threads)[first + (backward ? lanes - 1 - i : i)];
    if (t.waits != wait::nothing) continue;
    moved++;
    running = &t;
    pl_grid_now.thread = t.at;
    pl_fiber_resume(t.fiber);
    running = nullptr;
  }
  return moved;
}

/* Warp after warp, each as far as it gets; whether any thread could go on. */
static bool pass(bool backward) {
  const size_t warps = (now.count + WARP - 1) / WARP;
  bool moved = false;
  for (size_t w = 0; w < warps; w++)
    while (turn((backward ? warps - 1 - w : w) * WARP, backward) > 0) moved = true;
  return moved;
}

static void run_block(bool backward) {
  for (size_t i = 0; i < now.count; i++) {
    thread &t = (*threads)[i];
    t.waits = wait::nothing;
    pl_fiber_start(t.fiber, run_body, nullptr);
  }
  for (;;) {
    if (pass(backward)) continue;
    const size_t ended = count_waiting(wait::ended), barrier = count_waiting(wait::barrier);
    if (ended == now.count) break;
    if (barrier != now.count)
      refuse("of %zu threads %zu wait at a barrier, %zu in an exchange whose other lanes do not come, %zu have ended", now.count, barrier,
             count_waiting(wait::exchange), ended);
    for (size_t i = 0; i < now.count; i++) (*threads)[i].waits = wait::nothing;
  }
  for (auto &entry : now.shared) std::free(entry.second.memory);
  now.shared.clear();
  now.shared_bytes = 0;
}

static void place_threads(dim3 size) {
  if (!threads) threads = new std::vector<thread>;
  while (threads->size() < now.count) {
    thread t = {};
    t.fiber = pl_fiber_new();
    threads->push_back(t);
  }
  for (size_t i = 0; i < now.count; i++) {
    thread &t = (*threads)[i];
    const unsigned n = static_cast<unsigned>(i);
    t.at = dim3(n % size.x, n / size.x % size.y, n / size.x / size.y);
    t.lane = static_cast<int>(n % WARP);
    t.warp = n / WARP;
  }
}

void pl_grid_run(const char *kernel, dim3 grid, dim3 size, const std::function<void()> &body) {
  const char *order = std::getenv("PL_GRID_ORDER");
  const bool backward = order && std::strcmp(order, "backward") == 0;
  now.kernel = kernel;
  now.body = &body;
  now.count = static_cast<size_t>(size.x) * size.y * size.z;
  pl_grid_now = {dim3(0, 0, 0), dim3(0, 0, 0), size, grid};
  if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
    refuse("this grid cannot be launched");
  if (now.count < 1 || now.count > MOST_THREADS || size.z > 64) refuse("this block cannot be launched");
  place_threads(size);
  launches++;
  for (unsigned z = 0; z < grid.z; z++)
    for (unsigned y = 0; y < grid.y; y++)
      for (unsigned x = 0; x < grid.x; x++) {
        pl_grid_now.block = dim3(x, y, z);
        run_block(backward);
      }
}

size_t pl_grid_launches() { return launches; }
