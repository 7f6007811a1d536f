/* The working precision: float, or double in the -f64 build of core, optim and models that tests use. */
#ifndef PL_BASE_REAL_H
#define PL_BASE_REAL_H

#ifdef PL_F64
typedef double pl_real;
#define PL_REAL_NAME "fp64"
#else
typedef float pl_real;
#define PL_REAL_NAME "fp32"
#endif

#endif
