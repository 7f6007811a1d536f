/* Every operation of every CPU device and instruction set against plain double-precision code. */
#include "tests/conform/device_bed.h"

/* The largest deviation from the expected numbers. */
typedef double check(pl_device *d);

static double at(const double *x, size_t stride, bool transpose, size_t row, size_t col) {
  return transpose ? x[col * stride + row] : x[row * stride + col];
}

static double gemm_case(pl_device *d, bool ta, bool tb, size_t m, size_t n, size_t k, double beta) {
  bed b = {.d = d};
  const size_t lda = (ta ? m : k) + 2, ldb = (tb ? k : n) + 1, ldc = n + 3;
  const size_t na = (ta ? k : m) * lda, nb = (tb ? n : k) * ldb, nc = m * ldc;
  double *a = numbers(na, 1), *x = numbers(nb, 2), *c = numbers(nc, 3), *want = zeros(nc);
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; beta == 0 && j < n; j++) c[i * ldc + j] = (double)NAN;
  for (size_t i = 0; i < nc; i++) want[i] = c[i];
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++) {
      double sum = 0;
      for (size_t l = 0; l < k; l++) sum += at(a, lda, ta, i, l) * at(x, ldb, tb, l, j);
      want[i * ldc + j] = 0.75 * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);
    }
  pl_real *dc = put(&b, nc, c);
  d->ops->gemm(d, ta, tb, m, n, k, (pl_real)0.75, put(&b, na, a), lda, put(&b, nb, x), ldb, (pl_real)beta, dc, ldc);
  expect(&b, nc, dc, want);
  free(a), free(x), free(c), free(want);
  return finish(&b);
}

static double check_gemm(pl_device *d) {
  static const size_t shapes[][3] = {{1, 1, 1},    {7, 13, 5}, {33, 1, 65}, {1, 64, 3},
                                     {65, 66, 67}, {3, 4, 0},  {0, 3, 2}};
  double worst = 0;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int form = 0; form < 12; form++)
      worst = fmax(worst, gemm_case(d, form & 1, form & 2, shapes[s][0], shapes[s][1], shapes[s][2], form / 4 * 0.5));
  return worst;
}

static const size_t row_shapes[][2] = {{1, 1}, {1, 7}, {7, 13}, {65, 32}, {3, 16}, {5, 301}, {0, 3}};
enum { ROW_SHAPES = sizeof row_shapes / sizeof *row_shapes };

static double embedding_case(pl_device *d, size_t rows, size_t width) {
  bed b = {.d = d};
  enum { TABLE = 5 };
  double *table = numbers(TABLE * width, 1), *dout = numbers(rows * width, 2), *out = zeros(rows * width);
  double *dtable = numbers(TABLE * width, 3), *x = numbers(rows * width, 4), *dadd = numbers(TABLE * width, 5);
  int32_t ids[128] = {0};
  for (size_t r = 0; r < rows; r++) ids[r] = (int32_t)(r * r % TABLE);
  int32_t *dids = put_ids(&b, rows, ids);
  pl_real *ptable = put(&b, TABLE * width, table), *pout = room(&b, rows * width), *pdout = put(&b, rows * width, dout);
  pl_real *pdtable = put(&b, TABLE * width, dtable), *px = put(&b, rows * width, x);
  pl_real *pdadd = put(&b, TABLE * width, dadd);
  for (size_t r = 0; r < rows; r++)
    for (size_t j = 0; j < width; j++) {
      out[r * width + j] = table[(size_t)ids[r] * width + j];
      dtable[(size_t)ids[r] * width + j] += dout[r * width + j];
      x[r * width + j] += table[r % 3 * width + j];
      dadd[r % 3 * width + j] += dout[r * width + j];
    }
  d->ops->embedding_forward(d, rows, width, dids, ptable, pout);
  d->ops->embedding_backward(d, rows, width, dids, pdout, pdtable);
  d->ops->add_rows_forward(d, rows, width, 3, ptable, px);
  d->ops->add_rows_backward(d, rows, width, 3, pdout, pdadd);
  expect(&b, rows * width, pout, out);
  expect(&b, TABLE * width, pdtable, dtable);
  expect(&b, rows * width, px, x);
  expect(&b, TABLE * width, pdadd, dadd);
  free(table), free(dout), free(out), free(dtable), free(x), free(dadd);
  return finish(&b);
}

static double check_embedding(pl_device *d) {
  double worst = 0;
  for (size_t s = 0; s < ROW_SHAPES; s++) worst = fmax(worst, embedding_case(d, row_shapes[s][0], row_shapes[s][1]));
  return worst;
}

typedef struct norm {
  size_t rows, width;
  bool centre;
  double eps;
  double *x, *weight, *bias, *dout, *out, *mean, *rstd, *dx, *dweight, *dbias;
} norm;

static norm norm_data(size_t rows, size_t width, bool centre) {
  const size_t n = rows * width;
  return (norm){rows,          width,    centre,      1e-5,        numbers(n, 1), numbers(width, 2), numbers(width, 3),
                numbers(n, 4), zeros(n), zeros(rows), zeros(rows), numbers(n, 5), numbers(width, 6), numbers(width, 7)};
}

static void norm_free(norm *k) {
  free(k->x), free(k->weight), free(k->bias), free(k->dout), free(k->out), free(k->mean), free(k->rstd), free(k->dx);
  free(k->dweight), free(k->dbias);
}

/* RMSNorm is LayerNorm with mean 0, level 0 and no bias. */
static void norm_reference(norm *k) {
  const double width = (double)k->width;
  for (size_t r = 0; r < k->rows; r++) {
    const double *x = k->x + r * k->width, *dout = k->dout + r * k->width;
    double mean = 0, variance = 0, level = 0, along = 0;
    for (size_t j = 0; k->centre && j < k->width; j++) mean += x[j] / width;
    for (size_t j = 0; j < k->width; j++) variance += (x[j] - mean) * (x[j] - mean) / width;
    const double rstd = 1 / sqrt(variance + k->eps);
    for (size_t j = 0; j < k->width; j++) {
      const double h = (x[j] - mean) * rstd, g = dout[j] * k->weight[j];
      k->out[r * k->width + j] = h * k->weight[j] + (k->centre ? k->bias[j] : 0);
      if (k->centre) level += g / width;
      along += g * h / width;
      k->dweight[j] += dout[j] * h;
      k->dbias[j] += dout[j];
    }
    for (size_t j = 0; j < k->width; j++)
      k->dx[r * k->width + j] += rstd * (dout[j] * k->weight[j] - level - (x[j] - mean) * rstd * along);
    k->mean[r] = mean, k->rstd[r] = rstd;
  }
}

static double norm_run(pl_device *d, norm *k, bool reference) {
  bed b = {.d = d};
  const size_t n = k->rows * k->width;
  pl_real *x = put(&b, n, k->x), *weight = put(&b, k->width, k->weight), *bias = put(&b, k->width, k->bias);
  pl_real *dout = put(&b, n, k->dout), *out = room(&b, n), *mean = room(&b, k->rows), *rstd = room(&b, k->rows);
  pl_real *dx = put(&b, n, k->dx), *dweight = put(&b, k->width, k->dweight), *dbias = put(&b, k->width, k->dbias);
  if (reference) norm_reference(k);
  if (k->centre) {
    d->ops->layernorm_forward(d, k->rows, k->width, x, weight, bias, k->eps, out, mean, rstd);
    d->ops->layernorm_backward(d, k->rows, k->width, x, weight, mean, rstd, dout, dx, dweight, dbias);
    expect(&b, k->rows, mean, k->mean);
    expect(&b, k->width, dbias, k->dbias);
  } else {
    d->ops->rmsnorm_forward(d, k->rows, k->width, x, weight, k->eps, out, rstd);
    d->ops->rmsnorm_backward(d, k->rows, k->width, x, weight, rstd, dout, dx, dweight);
  }
  expect(&b, n, out, k->out);
  expect(&b, n, dx, k->dx);
  expect(&b, k->width, dweight, k->dweight);
  return finish(&b);
}

static double check_norms(pl_device *d) {
  double worst = 0;
  for (size_t s = 0; s < ROW_SHAPES; s++)
    for (int centre = 0; centre < 2; centre++) {
      if (centre && row_shapes[s][1] == 1) continue; /* x - mean is 0: nothing but rounding to compare */
      norm k = norm_data(row_shapes[s][0], row_shapes[s][1], centre);
      worst = fmax(worst, norm_run(d, &k, true));
      norm_free(&k);
    }
  return worst;
}

static double check_rope(pl_device *d) {
  static const size_t shapes[][3] = {
      {1, 1, 2}, {3, 2, 4}, {65, 3, 16}, {7, 1, 64}, {5, 2, 6}}; /* time, heads, head_dim */
  double worst = 0;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    bed b = {.d = d};
    const size_t time = shapes[s][0], heads = shapes[s][1], dim = shapes[s][2], rows = 2 * time, half = dim / 2;
    double *x = numbers(rows * heads * dim, 1), *angles = numbers(time * dim, 2), *want = zeros(rows * heads * dim);
    for (int inverse = 0; inverse < 2; inverse++) {
      for (size_t i = 0; i < rows * heads * half; i++) {
        const size_t low = i / half * dim + i % half, table = i / half / heads % time * dim + i % half;
        const double c = angles[table], sine = inverse ? -angles[table + half] : angles[table + half];
        want[low] = x[low] * c - x[low + half] * sine;
        want[low + half] = x[low + half] * c + x[low] * sine;
      }
      pl_real *px = put(&b, rows * heads * dim, x);
      d->ops->rope(d, rows, time, heads, dim, put(&b, time * dim, angles), inverse, px);
      expect(&b, rows * heads * dim, px, want);
    }
    free(x), free(angles), free(want);
    worst = fmax(worst, finish(&b));
  }
  return worst;
}

typedef struct reference {
  double *q, *k, *v, *dout, *out, *dq, *dk, *dv;
} reference;

/* One query row: probabilities, output, gradients, straight from the definition. */
static void attend(const pl_attention *s, const reference *a, size_t batch, size_t i, size_t h) {
  const size_t dim = s->head_dim, qi = ((batch * s->time + i) * s->heads + h) * dim;
  const size_t step = s->kv_heads * dim, kv = batch * s->time * step + h * s->kv_heads / s->heads * dim;
  double *p = zeros(s->time), *dp = zeros(s->time), sum = 0, mean = 0;
  for (size_t j = 0; j <= i; j++) {
    for (size_t c = 0; c < dim; c++) p[j] += a->q[qi + c] * a->k[kv + j * step + c] / sqrt((double)dim);
    sum += exp(p[j]);
  }
  for (size_t j = 0; j <= i; j++) {
    p[j] = exp(p[j]) / sum;
    for (size_t c = 0; c < dim; c++) {
      a->out[qi + c] += p[j] * a->v[kv + j * step + c];
      a->dv[kv + j * step + c] += p[j] * a->dout[qi + c];
      dp[j] += a->dout[qi + c] * a->v[kv + j * step + c];
    }
    mean += p[j] * dp[j];
  }
  for (size_t j = 0; j <= i; j++)
    for (size_t c = 0; c < dim; c++) {
      const double ds = p[j] * (dp[j] - mean) / sqrt((double)dim);
      a->dq[qi + c] += ds * a->k[kv + j * step + c];
      a->dk[kv + j * step + c] += ds * a->q[qi + c];
    }
  free(p), free(dp);
}

static double attention_case(pl_device *d, pl_attention s) {
  bed b = {.d = d};
  const size_t nq = s.batch * s.time * s.heads * s.head_dim, nkv = s.batch * s.time * s.kv_heads * s.head_dim;
  reference a = {numbers(nq, 1), numbers(nkv, 2), numbers(nkv, 3), numbers(nq, 4),
                 zeros(nq),      zeros(nq),       zeros(nkv),      zeros(nkv)};
  for (size_t batch = 0; batch < s.batch; batch++)
    for (size_t i = 0; i < s.time; i++)
      for (size_t h = 0; h < s.heads; h++) attend(&s, &a, batch, i, h);
  pl_real *q = put(&b, nq, a.q), *k = put(&b, nkv, a.k), *v = put(&b, nkv, a.v), *out = room(&b, nq);
  pl_real *saved = room(&b, d->ops->attention_saved_size(&s)), *dout = put(&b, nq, a.dout), *dq = room(&b, nq);
  pl_real *scratch = room(&b, d->ops->attention_scratch_size(d, &s)), *dk = room(&b, nkv), *dv = room(&b, nkv);
  d->ops->attention_forward(d, &s, q, k, v, out, saved, scratch);
  d->ops->attention_backward(d, &s, q, k, v, out, saved, dout, dq, dk, dv, scratch);
  expect(&b, nq, out, a.out);
  expect(&b, nq, dq, a.dq);
  expect(&b, nkv, dk, a.dk);
  expect(&b, nkv, dv, a.dv);
  free(a.q), free(a.k), free(a.v), free(a.dout), free(a.out), free(a.dq), free(a.dk), free(a.dv);
  return finish(&b);
}

/* The last one is long enough for the log-sum-exp form. */
static double check_attention(pl_device *d) {
  static const pl_attention shapes[] = {{1, 1, 1, 1, 2},   {2, 7, 4, 2, 6},    {3, 16, 2, 2, 16}, {2, 65, 4, 2, 16},
                                        {1, 130, 2, 1, 5}, {1, 256, 1, 1, 32}, {1, 33, 6, 2, 3},  {1, 521, 2, 1, 2}};
  double worst = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) worst = fmax(worst, attention_case(d, shapes[i]));
  return worst;
}

static const size_t lengths[] = {0, 1, 7, 16, 33, 250};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Inputs in [-12, 12]: both tails of the sigmoid. */
static double check_activations(pl_device *d) {
  double worst = 0;
  for (size_t l = 0; l < LENGTHS; l++) {
    bed b = {.d = d};
    const size_t n = lengths[l];
    double *g = numbers(n, 1), *u = numbers(n, 2), *dout = numbers(n, 3), *glu = zeros(n), *dg = zeros(n);
    double *du = zeros(n), *gelu = zeros(n), *dgelu = zeros(n);
    for (size_t i = 0; i < n; i++) {
      g[i] = (double)(pl_real)(12 * g[i]);
      const double s = 1 / (1 + exp(-g[i])), root = sqrt(2 / 3.14159265358979323846);
      const double t = tanh(root * (g[i] + 0.044715 * g[i] * g[i] * g[i]));
      glu[i] = g[i] * s * u[i];
      dg[i] = dout[i] * u[i] * s * (1 + g[i] * (1 - s));
      du[i] = dout[i] * g[i] * s;
      gelu[i] = 0.5 * g[i] * (1 + t);
      dgelu[i] = dout[i] * (0.5 * (1 + t) + 0.5 * g[i] * (1 - t * t) * root * (1 + 3 * 0.044715 * g[i] * g[i]));
    }
    pl_real *pg = put(&b, n, g), *pu = put(&b, n, u), *pdout = put(&b, n, dout), *out = room(&b, n), *x = put(&b, n, g);
    pl_real *one = room(&b, n), *two = room(&b, n);
    d->ops->swiglu_forward(d, n, pg, pu, out);
    expect(&b, n, out, glu);
    d->ops->gelu_forward(d, n, x, out);
    expect(&b, n, out, gelu);
    d->ops->swiglu_backward(d, n, pg, pu, pdout, one, two);
    expect(&b, n, one, dg);
    expect(&b, n, two, du);
    d->ops->swiglu_backward(d, n, pg, pu, pdout, pg, pu);
    expect(&b, n, pg, dg);
    expect(&b, n, pu, du);
    d->ops->gelu_backward(d, n, x, pdout, one);
    expect(&b, n, one, dgelu);
    d->ops->gelu_backward(d, n, x, pdout, pdout);
    expect(&b, n, pdout, dgelu);
    free(g), free(u), free(dout), free(glu), free(dg), free(du), free(gelu), free(dgelu);
    worst = fmax(worst, finish(&b));
  }
  return worst;
}

static void expect_double(bed *b, size_t n, const double *p, const double *want) {
  double *got = zeros(n);
  b->d->ops->download(b->d, got, p, n * sizeof *got);
  for (size_t i = 0; i < n; i++) b->worst = fmax(b->worst, deviation(got[i], want[i]));
  free(got);
}

static double cross_entropy_case(pl_device *d, size_t rows, size_t classes, bool gradient) {
  bed b = {.d = d};
  const size_t n = rows * classes;
  double *x = numbers(n, 1), *want = zeros(n), *loss = zeros(rows);
  int32_t targets[128] = {0};
  for (size_t i = 0; i < n; i++)
    x[i] = (double)(pl_real)(9 * x[i] + (double)(i % 3 * 40)); /* far below the largest too */
  for (size_t r = 0; r < rows; r++) {
    double top = x[r * classes], sum = 0;
    for (size_t j = 0; j < classes; j++) top = fmax(top, x[r * classes + j]);
    for (size_t j = 0; j < classes; j++) sum += exp(x[r * classes + j] - top);
    const size_t target = (3 * r + 1) % classes;
    targets[r] = (int32_t)target;
    loss[r] = log(sum) + top - x[r * classes + target];
    for (size_t j = 0; j < classes; j++)
      want[r * classes + j] =
          gradient ? 0.5 * (exp(x[r * classes + j] - top) / sum - (j == target)) : x[r * classes + j];
  }
  pl_real *logits = put(&b, n, x);
  double *out = array(&b, rows * sizeof *out);
  d->ops->cross_entropy(d, rows, classes, put_ids(&b, rows, targets), gradient, 0.5, logits, out);
  expect(&b, n, logits, want);
  expect_double(&b, rows, out, loss);
  free(x), free(want), free(loss);
  return finish(&b);
}

static double check_cross_entropy(pl_device *d) {
  double worst = 0;
  for (size_t s = 0; s < ROW_SHAPES; s++)
    for (int gradient = 0; gradient < 2; gradient++)
      worst = fmax(worst, cross_entropy_case(d, row_shapes[s][0], row_shapes[s][1], gradient));
  return worst;
}

static double check_vectors(pl_device *d) {
  double worst = 0;
  for (size_t l = 0; l < LENGTHS; l++) {
    bed b = {.d = d};
    const size_t n = lengths[l];
    double *x = numbers(n, 1), *y = numbers(n, 2), *sum = zeros(n), *scaled = zeros(n), *shrunk = zeros(n);
    double squares = 0, product = 0, ascending = 0;
    for (size_t i = 0; i < n; i++) {
      sum[i] = 0.3 * x[i] - 1.7 * y[i];
      scaled[i] = 0.3 * x[i];
      shrunk[i] = 0.99 * x[i] - y[i];
      squares += x[i] * x[i];
      product += x[i] * y[i];
      ascending += x[i];
    }
    pl_real *px = put(&b, n, x), *py = put(&b, n, y), *out = put(&b, n, y), *blank = room(&b, n);
    double *pd = array(&b, n * sizeof *pd);
    d->ops->upload(d, pd, x, n * sizeof *pd);
    d->ops->axpby(d, n, 0.3, px, -1.7, out);
    expect(&b, n, out, sum);
    memset(sum, 0xff, n * sizeof *sum);
    d->ops->upload(d, blank, sum, n * sizeof *blank); /* NaN: must not be read */
    d->ops->axpby(d, n, 0.3, px, 0, blank);
    expect(&b, n, blank, scaled);
    d->ops->shrink_subtract(d, n, 0.99, px, py, out);
    expect(&b, n, out, shrunk);
    /* Sums of 53-bit products in double: no error of the working precision. */
    assert_true(deviation(d->ops->sum_squares(d, n, px), squares) < 1e-13);
    assert_true(deviation(d->ops->dot(d, n, px, py), product) < 1e-13);
    assert_true(deviation(d->ops->sum_double(d, n, pd), ascending) == 0);
    d->ops->shrink_subtract(d, n, 0.99, px, py, px);
    expect(&b, n, px, shrunk);
    d->ops->copy(d, out, py, n * sizeof *out);
    expect(&b, n, out, y);
    d->ops->zero(d, out, n * sizeof *out);
    memset(y, 0, n * sizeof *y);
    expect(&b, n, out, y);
    free(x), free(y), free(sum), free(scaled), free(shrunk);
    worst = fmax(worst, finish(&b));
  }
  return worst;
}

static double check_adamw(pl_device *d) {
  double worst = 0;
  for (size_t l = 0; l < LENGTHS; l++) {
    bed b = {.d = d};
    const size_t n = lengths[l];
    double *g = numbers(n, 1), *m = numbers(n, 2), *v = numbers(n, 3), *u = zeros(n);
    for (size_t i = 0; i < n; i++) v[i] = fabs(v[i]);
    pl_real *pg = put(&b, n, g), *pm = put(&b, n, m), *pv = put(&b, n, v), *pu = room(&b, n);
    for (size_t i = 0; i < n; i++) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.95 * v[i] + 0.05 * g[i] * g[i];
      u[i] = 0.1 / 0.271 * m[i] / (sqrt(v[i]) / sqrt(0.142625) + 1e-8);
    }
    d->ops->adamw(d, n, pg, 0.9, 0.95, 0.271, 0.142625, 1e-8, 0.1, pm, pv, pu);
    expect(&b, n, pm, m);
    expect(&b, n, pv, v);
    expect(&b, n, pu, u);
    free(g), free(m), free(v), free(u);
    worst = fmax(worst, finish(&b));
  }
  return worst;
}

static double check_momentum(pl_device *d) {
  double worst = 0;
  for (int form = 0; form < 2 * LENGTHS; form++) {
    bed b = {.d = d};
    const size_t n = lengths[form / 2];
    const bool nesterov = form % 2;
    double *g = numbers(n, 1), *buffer = numbers(n, 2), *u = zeros(n);
    pl_real *pg = put(&b, n, g), *pbuffer = put(&b, n, buffer), *pu = room(&b, n);
    for (size_t i = 0; i < n; i++) {
      buffer[i] = 0.9 * buffer[i] + 0.7 * g[i];
      u[i] = 0.05 * (nesterov ? 0.6 * g[i] + 0.9 * buffer[i] : buffer[i]);
    }
    d->ops->momentum(d, n, pg, 0.9, 0.7, nesterov, 0.6, 0.05, pbuffer, pu);
    expect(&b, n, pbuffer, buffer);
    expect(&b, n, pu, u);
    free(g), free(buffer), free(u);
    worst = fmax(worst, finish(&b));
  }
  return worst;
}

static const struct {
  const char *name;
  check *run;
} checks[] = {
    {"gemm", check_gemm},
    {"embedding", check_embedding},
    {"norms", check_norms},
    {"rope", check_rope},
    {"attention", check_attention},
    {"activations", check_activations},
    {"cross entropy", check_cross_entropy},
    {"vectors", check_vectors},
    {"adamw", check_adamw},
    {"momentum", check_momentum},
};

static void run_checks(pl_device *d) {
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
    const double worst = checks[i].run(d);
    if (worst >= TOLERANCE) fail_msg("%s, %s: %s is off by %.2e", d->ops->name, d->kernel, checks[i].name, worst);
  }
}

static void test_references(void **state) {
  (void)state;
  on_each_device(run_checks);
}

/* Broken operations, to see that the checks notice: a backward pass that overwrites, momentum without Nesterov, no
 * rotation, attention that sees nothing. */
static void overwriting_add_rows(pl_device *d, size_t rows, size_t width, size_t period, const pl_real *dx,
                                 pl_real *dtable) {
  d->ops->zero(d, dtable, period * width * sizeof *dtable);
  for (size_t i = 0; i < rows * width; i++) dtable[i / width % period * width + i % width] += dx[i];
}

static void plain_momentum(pl_device *d, size_t n, const pl_real *g, double mu, double take, bool nesterov,
                           double take_direct, double lr, pl_real *buf, pl_real *u) {
  (void)take_direct, (void)nesterov;
  d->ops->axpby(d, n, take, g, mu, buf);
  d->ops->axpby(d, n, lr, buf, 0, u);
}

static void still_rope(pl_device *d, size_t rows, size_t time, size_t heads, size_t head_dim, const pl_real *table,
                       bool inverse, pl_real *x) {
  (void)d, (void)rows, (void)time, (void)heads, (void)head_dim, (void)table, (void)inverse, (void)x;
}

static void blind_attention(pl_device *d, const pl_attention *s, const pl_real *q, const pl_real *k, const pl_real *v,
                            pl_real *out, pl_real *saved, pl_real *scratch) {
  (void)d, (void)q, (void)k, (void)v, (void)saved, (void)scratch;
  memset(out, 0, s->batch * s->time * s->heads * s->head_dim * sizeof *out);
}

static void test_broken_operations_are_seen(void **state) {
  (void)state;
  pl_device *d = open_device("cpu", "base");
  assert_non_null(d);
  pl_ops ops = *d->ops;
  pl_device broken = {.ops = &ops, .state = d->state};
  ops.add_rows_backward = overwriting_add_rows;
  assert_true(check_embedding(&broken) > TOLERANCE);
  ops.momentum = plain_momentum;
  assert_true(check_momentum(&broken) > TOLERANCE);
  ops.rope = still_rope;
  assert_true(check_rope(&broken) > TOLERANCE);
  ops.attention_forward = blind_attention;
  assert_true(check_attention(&broken) > TOLERANCE);
  pl_device_close(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_references),
      cmocka_unit_test(test_broken_operations_are_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
