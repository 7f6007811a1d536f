/* NCCL's functions, found when they are first needed: the library is large, and runs on one GPU do without it. */
#ifndef PL_PIPELINE_NCCL_LIBRARY_H
#define PL_PIPELINE_NCCL_LIBRARY_H

#include <nccl.h>

#include "core/base/status.h"

/* Name without its nccl. */
#define PL_NCCL_FUNCTIONS(X)                                                                                           \
  X(GetVersion)                                                                                                        \
  X(GetUniqueId)                                                                                                       \
  X(CommInitRankConfig)                                                                                                \
  X(CommAbort)                                                                                                         \
  X(CommGetAsyncError)                                                                                                 \
  X(GroupStart)                                                                                                        \
  X(GroupEnd)                                                                                                          \
  X(Send)                                                                                                              \
  X(Recv)                                                                                                              \
  X(GetErrorString)                                                                                                    \
  X(GetLastError)

typedef struct pl_nccl {
#define PL_NCCL_MEMBER(name) __typeof__(nccl##name) *name;
  PL_NCCL_FUNCTIONS(PL_NCCL_MEMBER)
#undef PL_NCCL_MEMBER
} pl_nccl;

/* Those that are linked, else those of libnccl.so.2. PL_BAD when it is not found, or older than the one that this was
 * built with. The same ones from then on. */
PL_MUST_CHECK pl_status pl_nccl_load(const pl_nccl **out, pl_err *e);

#endif
