/* Fibers: functions that give way to the one who runs them and go on later. Known to AddressSanitizer. */
#ifndef PL_TESTS_CUDA_FIBER_H
#define PL_TESTS_CUDA_FIBER_H

#include <cstddef>

struct pl_fiber;

/* `body` runs at the next resume, with a stack of its own, and must not return but by pl_fiber_yield(f, true). */
pl_fiber *pl_fiber_new();
void pl_fiber_start(pl_fiber *f, void (*body)(void *argument), void *argument);

/* Runs it until it yields. */
void pl_fiber_resume(pl_fiber *f);

/* Inside of a fiber: back to who resumed it; `last`: for good. */
void pl_fiber_yield(pl_fiber *f, bool last);

#endif
