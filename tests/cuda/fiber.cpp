#include "tests/cuda/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if defined __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else
static void __sanitizer_start_switch_fiber(void **, const void *, size_t) {}
static void __sanitizer_finish_switch_fiber(void *, const void **, size_t *) {}
#endif

#if defined __x86_64__

/* What the calling convention keeps stays on the stack that is left. */
struct place {
  void *stack;
};
extern "C" void pl_fiber_switch(void **from, void *to);
__asm__(
    ".text\n"
    ".type pl_fiber_switch,@function\n"
    "pl_fiber_switch:\n"
    "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, (%rdi)\n"
    "  mov %rsi, %rsp\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
    "  ret\n"
    ".size pl_fiber_switch,.-pl_fiber_switch\n");

static void go(place *from, place *to) { pl_fiber_switch(&from->stack, to->stack); }

static void prepare(place *p, char *stack, size_t size, void (*entry)()) {
  void **top = reinterpret_cast<void **>(stack + size);
  *--top = nullptr; /* where entry would return to; aligned as after a call */
  *--top = reinterpret_cast<void *>(entry);
  for (int i = 0; i < 6; i++) *--top = nullptr;
  p->stack = top;
}

#else

#include <ucontext.h>

struct place {
  ucontext_t context;
};
static void go(place *from, place *to) { swapcontext(&from->context, &to->context); }
static void prepare(place *p, char *stack, size_t size, void (*entry)()) {
  getcontext(&p->context);
  p->context.uc_stack.ss_sp = stack;
  p->context.uc_stack.ss_size = size;
  p->context.uc_link = nullptr;
  makecontext(&p->context, entry, 0);
}

#endif

enum { STACK = 128 * 1024 };

struct pl_fiber {
  place inside, outside;
  char *stack;
  void (*body)(void *);
  void *argument;
  void *fake_inside, *fake_outside; /* AddressSanitizer's */
  const void *outer_stack;
  size_t outer_size;
};

static thread_local pl_fiber *starting;

static void entry() {
  pl_fiber *f = starting;
  __sanitizer_finish_switch_fiber(nullptr, &f->outer_stack, &f->outer_size);
  f->body(f->argument);
  std::fputs("a fiber has returned\n", stderr);
  std::abort();
}

pl_fiber *pl_fiber_new() {
  const size_t page = static_cast<size_t>(getpagesize());
  pl_fiber *f = static_cast<pl_fiber *>(std::calloc(1, sizeof *f));
  void *room = mmap(nullptr, STACK + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!f || room == MAP_FAILED || mprotect(room, page, PROT_NONE) != 0) {
    std::perror("a fiber's stack");
    std::abort();
  }
  f->stack = static_cast<char *>(room) + page;
  return f;
}

void pl_fiber_start(pl_fiber *f, void (*body)(void *), void *argument) {
  f->body = body;
  f->argument = argument;
  f->fake_inside = nullptr;
  prepare(&f->inside, f->stack, STACK, entry);
}

void pl_fiber_resume(pl_fiber *f) {
  starting = f;
  __sanitizer_start_switch_fiber(&f->fake_outside, f->stack, STACK);
  go(&f->outside, &f->inside);
  __sanitizer_finish_switch_fiber(f->fake_outside, nullptr, nullptr);
}

void pl_fiber_yield(pl_fiber *f, bool last) {
  __sanitizer_start_switch_fiber(last ? nullptr : &f->fake_inside, f->outer_stack, f->outer_size);
  go(&f->inside, &f->outside);
  __sanitizer_finish_switch_fiber(f->fake_inside, &f->outer_stack, &f->outer_size);
}
