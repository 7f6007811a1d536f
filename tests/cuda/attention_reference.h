/* Causal attention straight from its definition in double, forward and backward; with `low` every number that the bf16
 * kernels round as it enters a product is rounded here too. Beside each sum stands that of its terms' magnitudes, which
 * is what rounding errors are measured by. */
#ifndef PL_TESTS_CUDA_ATTENTION_REFERENCE_H
#define PL_TESTS_CUDA_ATTENTION_REFERENCE_H

#include "tests/conform/device_bed.h"

enum { KEY_TILE = 64 }; /* the forward pass rounds probabilities as they are before the next tile's maximum is known */

typedef struct sums {
  double *x, *mass;
  size_t n;
} sums;

enum { OUT, DQ, DK, DV, RESULTS };

typedef struct reference {
  pl_attention s;
  bool low;
  size_t nq, nkv;
  double *q, *k, *v, *dout, *lse;
  sums results[RESULTS];
  double steepest; /* the largest sum of magnitudes of a scaled score */
} reference;

static inline double to_bf16(double x) {
  float narrow = (float)x;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  bits = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
  memcpy(&narrow, &bits, sizeof narrow);
  return (double)narrow;
}

static inline double entering(const reference *r, double x) { return r->low ? to_bf16(x) : x; }

/* Uniform in [-1, 1], exact in float. */
static inline double *random_numbers(size_t n, uint64_t seed) {
  double *x = zeros(n);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i < n; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x[i] = (double)(float)((double)(state >> 40) / 8388608.0 - 1.0);
  }
  return x;
}

static inline void add(sums *to, size_t i, double x, double mass) { to->x[i] += x, to->mass[i] += mass; }

/* Of one query row: scaled scores, dP, and the magnitudes of dP's terms. */
typedef struct row {
  size_t q, kv, step, dim, keys; /* key j's first element is kv + j * step */
  double scale;
  double *s, *dp, *dp_mass;
} row;

static inline void scores_of(reference *r, const row *w) {
  for (size_t j = 0; j < w->keys; j++) {
    double mass = 0;
    for (size_t c = 0; c < w->dim; c++) {
      const double q = entering(r, r->q[w->q + c]), k = entering(r, r->k[w->kv + j * w->step + c]);
      const double dout = entering(r, r->dout[w->q + c]), v = entering(r, r->v[w->kv + j * w->step + c]);
      w->s[j] += w->scale * q * k, mass += w->scale * fabs(q * k);
      w->dp[j] += dout * v, w->dp_mass[j] += fabs(dout * v);
    }
    r->steepest = fmax(r->steepest, mass);
  }
}

/* Tile after tile with the maximum so far; returns the log-sum-exp. */
static inline double forward_row(reference *r, const row *w) {
  double top = -INFINITY, sum = 0;
  sums *out = &r->results[OUT];
  for (size_t first = 0; first < w->keys; first += KEY_TILE) {
    const size_t end = first + KEY_TILE < w->keys ? first + KEY_TILE : w->keys;
    double most = top;
    for (size_t j = first; j < end; j++) most = fmax(most, w->s[j]);
    const double factor = exp(top - most);
    sum *= factor;
    for (size_t c = 0; c < w->dim; c++) out->x[w->q + c] *= factor, out->mass[w->q + c] *= factor;
    for (size_t j = first; j < end; j++) {
      const double p = exp(w->s[j] - most);
      sum += p;
      for (size_t c = 0; c < w->dim; c++) {
        const double v = entering(r, r->v[w->kv + j * w->step + c]);
        add(out, w->q + c, entering(r, p) * v, p * fabs(v));
      }
    }
    top = most;
  }
  for (size_t c = 0; c < w->dim; c++) out->x[w->q + c] /= sum, out->mass[w->q + c] /= sum;
  return top + log(sum);
}

static inline void backward_row(reference *r, const row *w, double lse) {
  double level = 0, level_mass = 0;
  for (size_t c = 0; c < w->dim; c++) level += entering(r, r->dout[w->q + c]) * r->results[OUT].x[w->q + c];
  for (size_t j = 0; j < w->keys; j++) level_mass += exp(w->s[j] - lse) * w->dp_mass[j];
  for (size_t j = 0; j < w->keys; j++) {
    const double p = exp(w->s[j] - lse), ds = w->scale * entering(r, p * (w->dp[j] - level));
    const double mass = w->scale * p * (w->dp_mass[j] + level_mass);
    for (size_t c = 0; c < w->dim; c++) {
      const size_t i = w->q + c, at = w->kv + j * w->step + c;
      const double q = entering(r, r->q[i]), k = entering(r, r->k[at]), dout = entering(r, r->dout[i]);
      add(&r->results[DV], at, entering(r, p) * dout, p * fabs(dout));
      add(&r->results[DQ], i, ds * k, mass * fabs(k));
      add(&r->results[DK], at, ds * q, mass * fabs(q));
    }
  }
}

static inline void refer_row(reference *r, size_t batch, size_t i, size_t h) {
  const pl_attention *s = &r->s;
  const size_t dim = s->head_dim, step = s->kv_heads * dim;
  const row w = {.q = ((batch * s->time + i) * s->heads + h) * dim,
                 .kv = batch * s->time * step + h * s->kv_heads / s->heads * dim,
                 .step = step,
                 .dim = dim,
                 .keys = i + 1,
                 .scale = 1 / sqrt((double)dim),
                 .s = zeros(s->time),
                 .dp = zeros(s->time),
                 .dp_mass = zeros(s->time)};
  scores_of(r, &w);
  const double lse = forward_row(r, &w);
  r->lse[(batch * s->heads + h) * s->time + i] = lse;
  backward_row(r, &w, lse);
  free(w.s), free(w.dp), free(w.dp_mass);
}

/* All numbers of one shape; the same inputs with and without `low`. */
static inline reference refer(const pl_attention *s, bool low) {
  const size_t nq = s->batch * s->time * s->heads * s->head_dim, nkv = s->batch * s->time * s->kv_heads * s->head_dim;
  reference r = {.s = *s, .low = low, .nq = nq, .nkv = nkv};
  r.q = random_numbers(nq, 1), r.k = random_numbers(nkv, 2), r.v = random_numbers(nkv, 3);
  r.dout = random_numbers(nq, 4), r.lse = zeros(s->batch * s->heads * s->time);
  for (int i = 0; i < RESULTS; i++) {
    r.results[i].n = i == OUT || i == DQ ? nq : nkv;
    r.results[i].x = zeros(r.results[i].n), r.results[i].mass = zeros(r.results[i].n);
  }
  for (size_t batch = 0; batch < s->batch; batch++)
    for (size_t i = 0; i < s->time; i++)
      for (size_t h = 0; h < s->heads; h++) refer_row(&r, batch, i, h);
  return r;
}

static inline void forget(reference *r) {
  free(r->q), free(r->k), free(r->v), free(r->dout), free(r->lse);
  for (int i = 0; i < RESULTS; i++) free(r->results[i].x), free(r->results[i].mass);
}

#endif
