/* What the programs of this folder share: timing in turn, what the machine can do, JSON lines. */
#ifndef PL_TESTS_BENCH_H
#define PL_TESTS_BENCH_H

#include "core/base/json.h"
#include "core/device/device.h"

/* Ends the program with the sentence. */
void bench_must(pl_status st, const pl_err *e);

/* Something that can be done again and again. */
typedef struct bench_work {
  void (*run)(void *self);
  void *self;
} bench_work;

typedef struct bench_time {
  double best, median; /* seconds of one call, over the rounds */
} bench_time;

enum { BENCH_ARMS = 8, BENCH_ROUNDS = 64 };

/* Times `count` works in turn, `rounds` times, each as often as fills `least` seconds. */
void bench_in_turn(const bench_work *works, size_t count, size_t rounds, double least, bench_time *out);

/* Floating-point operations a second of one core that only multiplies and adds in registers; 0 where the machine has
 * not the instructions. */
typedef struct bench_peaks {
  double fp32, avx512_bf16, amx_bf16;
} bench_peaks;
bench_peaks bench_measure_peaks(void);

/* Bytes a second of a = b + s c with arrays of 32 MB, and with 3 that the second-level cache holds; what a write reads
 * first does not count. */
typedef struct bench_bandwidth {
  double large, cache;
} bench_bandwidth;
bench_bandwidth bench_measure_bandwidth(void);

/* Numbers between -1 and 1, different ones; released by free. */
pl_real *bench_numbers(size_t count);

/* A weight matrix of a model, as it is stored: outputs x inputs. */
typedef struct bench_matrix {
  const char *name;
  size_t rows, cols;
} bench_matrix;

/* The LLaMA-style models a, b, c, d of shapes.sh; tokens: of a batch. */
typedef struct bench_shape {
  const char *name;
  size_t layers, width, kv_width, ff, vocab, tokens;
} bench_shape;

enum { BENCH_SHAPES = 4, BENCH_MATRICES = 7 };
extern const bench_shape bench_shapes[BENCH_SHAPES];

/* The hidden matrices of one layer. */
void bench_matrices(const bench_shape *s, bench_matrix out[BENCH_MATRICES]);

/* Number of rounds from the command line: the argument after --rounds, or `otherwise`. */
size_t bench_rounds(int argc, char **argv, size_t otherwise);
bool bench_asked(int argc, char **argv, const char *flag);

/* Adds a number; ends the program when memory is out. */
void bench_set(pl_json *object, const char *key, double value);
void bench_text(pl_json *object, const char *key, const char *value);
/* Takes the row. */
void bench_add(pl_json *rows, pl_json *row);
/* A program's last line: {NAME: [rows], "kernel": ..., "peak": {...}}; takes the rows. */
void bench_print_result(const char *name, pl_json *rows, const char *kernel, const bench_peaks *peaks);
void bench_print_peaks(const bench_peaks *p); /* {"fp32": ...} in GFLOP/s, one line */

#endif
