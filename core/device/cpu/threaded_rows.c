#include "core/device/cpu/threaded.h"

/* Elements that are worth a thread, of sums and of what takes exponentials: about 25 microseconds of them. */
static const double ELEMENTS = 32768, EXPONENTIALS = 16384;
enum { LINE = 16 }; /* elements: parts of two threads meet at the end of a cache line */

/* Arguments of an operation on elements, in its order. */
typedef struct vectors {
  const pl_real *in[3];
  pl_real *out[3];
  double number[6];
  bool nesterov;
} vectors;

static void swiglu_forward_part(pl_device *p, size_t thread, const void *args, size_t i, size_t end) {
  const vectors *a = args;
  (void)thread;
  p->ops->swiglu_forward(p, end - i, a->in[0] + i, a->in[1] + i, a->out[0] + i);
}

static void swiglu_forward(pl_device *d, size_t n, const pl_real *gate, const pl_real *up, pl_real *out) {
  const vectors a = {.in = {gate, up}, .out = {out}};
  pl_threaded_split(d, (double)n / EXPONENTIALS, n, LINE, swiglu_forward_part, &a);
}

static void swiglu_backward_part(pl_device *p, size_t thread, const void *args, size_t i, size_t end) {
  const vectors *a = args;
  (void)thread;
  p->ops->swiglu_backward(p, end - i, a->in[0] + i, a->in[1] + i, a->in[2] + i, a->out[0] + i, a->out[1] + i);
}

static void swiglu_backward(pl_device *d, size_t n, const pl_real *gate, const pl_real *up, const pl_real *dout,
                            pl_real *dgate, pl_real *dup) {
  const vectors a = {.in = {gate, up, dout}, .out = {dgate, dup}};
  pl_threaded_split(d, (double)n / EXPONENTIALS, n, LINE, swiglu_backward_part, &a);
}

static void gelu_forward_part(pl_device *p, size_t thread, const void *args, size_t i, size_t end) {
  const vectors *a = args;
  (void)thread;
  p->ops->gelu_forward(p, end - i, a->in[0] + i, a->out[0] + i);
}

static void gelu_forward(pl_device *d, size_t n, const pl_real *x, pl_real *out) {
  const vectors a = {.in = {x}, .out = {out}};
  pl_threaded_split(d, (double)n / EXPONENTIALS, n, LINE, gelu_forward_part, &a);
}

static void gelu_backward_part(pl_device *p, size_t thread, const void *args, size_t i, size_t end) {
  const vectors *a = args;
  (void)thread;
  p->ops->gelu_backward(p, end - i, a->in[0] + i, a->in[1] + i, a->out[0] + i);
}

static void gelu_backward(pl_device *d, size_t n, const pl_real *x, const pl_real *dout, pl_real *dx) {
  const vectors a = {.in = {x, dout}, .out = {dx}};
  pl_threaded_split(d, (double)n / EXPONENTIALS, n, LINE, gelu_backward_part, &a);
}

static void axpby_part(pl_device *p, size_t thread, const void *args, size_t i, size_t end) {
  const vectors *a = args;
  (void)thread;
  p->ops->axpby(p, end - i, a->number[0], a->in[0] + i, a->number[1], a->out[0] + i);
}

static void axpby(pl_device *d, size_t n, double a, const pl_real *x, double b, pl_real *y) {
  const vectors v = {.in = {x}, .out = {y}, .number = {a, b}};
  pl_threaded_split(d, (double)n / ELEMENTS, n, LINE, axpby_part, &v);
}

static void shrink_subtract_part(pl_device *p, size_t thread, const void *args, size_t i, size_t end) {
  const vectors *a = args;
  (void)thread;
  p->ops->shrink_subtract(p, end - i, a->number[0], a->in[0] + i, a->in[1] + i, a->out[0] + i);
}

static void shrink_subtract(pl_device *d, size_t n, double s, const pl_real *x, const pl_real *v, pl_real *out) {
  const vectors a = {.in = {x, v}, .out = {out}, .number = {s}};
  pl_threaded_split(d, (double)n / ELEMENTS, n, LINE, shrink_subtract_part, &a);
}

static void adamw_part(pl_device *p, size_t thread, const void *args, size_t i, size_t end) {
  const vectors *a = args;
  const double *x = a->number;
  (void)thread;
  p->ops->adamw(p, end - i, a->in[0] + i, x[0], x[1], x[2], x[3], x[4], x[5], a->out[0] + i, a->out[1] + i,
                a->out[2] + i);
}

static void adamw(pl_device *d, size_t n, const pl_real *g, double beta1, double beta2, double bias1, double bias2,
                  double eps, double lr, pl_real *m, pl_real *v, pl_real *u) {
  const vectors a = {.in = {g}, .out = {m, v, u}, .number = {beta1, beta2, bias1, bias2, eps, lr}};
  pl_threaded_split(d, (double)n / ELEMENTS, n, LINE, adamw_part, &a);
}

static void momentum_part(pl_device *p, size_t thread, const void *args, size_t i, size_t end) {
  const vectors *a = args;
  const double *x = a->number;
  (void)thread;
  p->ops->momentum(p, end - i, a->in[0] + i, x[0], x[1], a->nesterov, x[2], x[3], a->out[0] + i, a->out[1] + i);
}

static void momentum(pl_device *d, size_t n, const pl_real *g, double mu, double take, bool nesterov,
                     double take_direct, double lr, pl_real *buf, pl_real *u) {
  const vectors a = {.in = {g}, .out = {buf, u}, .number = {mu, take, take_direct, lr}, .nesterov = nesterov};
  pl_threaded_split(d, (double)n / ELEMENTS, n, LINE, momentum_part, &a);
}

/* Of an operation on rows. */
typedef struct lines {
  size_t width, period, heads; /* width of a row; rope: of a head */
  const int32_t *ids;
  const pl_real *in[3];
  pl_real *out[3];
  double *loss, number; /* eps, scale */
  bool flag;            /* gradient, inverse */
} lines;

static void split_rows(pl_device *d, size_t rows, size_t width, size_t grain, pl_threaded_work *work, const lines *a) {
  pl_threaded_split(d, (double)rows * (double)width / ELEMENTS, rows, grain, work, a);
}

static void embedding_forward_part(pl_device *p, size_t thread, const void *args, size_t r, size_t end) {
  const lines *a = args;
  (void)thread;
  p->ops->embedding_forward(p, end - r, a->width, a->ids + r, a->in[0], a->out[0] + r * a->width);
}

static void embedding_forward(pl_device *d, size_t rows, size_t width, const int32_t *ids, const pl_real *table,
                              pl_real *out) {
  const lines a = {.width = width, .ids = ids, .in = {table}, .out = {out}};
  split_rows(d, rows, width, 1, embedding_forward_part, &a);
}

static void add_rows_part(pl_device *p, size_t thread, const void *args, size_t r, size_t end) {
  const lines *a = args;
  (void)thread;
  p->ops->add_rows_forward(p, end - r, a->width, a->period, a->in[0], a->out[0] + r * a->width);
}

/* Each part begins with the first row of the table. */
static void add_rows_forward(pl_device *d, size_t rows, size_t width, size_t period, const pl_real *table, pl_real *x) {
  const lines a = {.width = width, .period = period, .in = {table}, .out = {x}};
  split_rows(d, rows, width, period, add_rows_part, &a);
}

static void rmsnorm_forward_part(pl_device *p, size_t thread, const void *args, size_t r, size_t end) {
  const lines *a = args;
  const size_t at = r * a->width;
  (void)thread;
  p->ops->rmsnorm_forward(p, end - r, a->width, a->in[0] + at, a->in[1], a->number, a->out[0] + at, a->out[1] + r);
}

static void rmsnorm_forward(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                            double eps, pl_real *out, pl_real *rstd) {
  const lines a = {.width = width, .in = {x, weight}, .out = {out, rstd}, .number = eps};
  split_rows(d, rows, width, 1, rmsnorm_forward_part, &a);
}

static void layernorm_forward_part(pl_device *p, size_t thread, const void *args, size_t r, size_t end) {
  const lines *a = args;
  const size_t at = r * a->width;
  (void)thread;
  p->ops->layernorm_forward(p, end - r, a->width, a->in[0] + at, a->in[1], a->in[2], a->number, a->out[0] + at,
                            a->out[1] + r, a->out[2] + r);
}

static void layernorm_forward(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                              const pl_real *bias, double eps, pl_real *out, pl_real *mean, pl_real *rstd) {
  const lines a = {.width = width, .in = {x, weight, bias}, .out = {out, mean, rstd}, .number = eps};
  split_rows(d, rows, width, 1, layernorm_forward_part, &a);
}

static void rope_part(pl_device *p, size_t thread, const void *args, size_t r, size_t end) {
  const lines *a = args;
  (void)thread;
  p->ops->rope(p, end - r, a->period, a->heads, a->width, a->in[0], a->flag, a->out[0] + r * a->heads * a->width);
}

/* Each part begins at position 0. */
static void rope(pl_device *d, size_t rows, size_t time, size_t heads, size_t head_dim, const pl_real *table,
                 bool inverse, pl_real *x) {
  const lines a = {.width = head_dim, .period = time, .heads = heads, .in = {table}, .out = {x}, .flag = inverse};
  split_rows(d, rows, heads * head_dim, time, rope_part, &a);
}

static void cross_entropy_part(pl_device *p, size_t thread, const void *args, size_t r, size_t end) {
  const lines *a = args;
  (void)thread;
  p->ops->cross_entropy(p, end - r, a->width, a->ids + r, a->flag, a->number, a->out[0] + r * a->width, a->loss + r);
}

static void cross_entropy(pl_device *d, size_t rows, size_t classes, const int32_t *targets, bool gradient,
                          double scale, pl_real *logits, double *loss) {
  const lines a = {.width = classes, .ids = targets, .out = {logits}, .loss = loss, .number = scale, .flag = gradient};
  split_rows(d, rows, 2 * classes, 1, cross_entropy_part, &a);
}

void pl_threaded_rows(pl_ops *ops) {
  ops->swiglu_forward = swiglu_forward;
  ops->swiglu_backward = swiglu_backward;
  ops->gelu_forward = gelu_forward;
  ops->gelu_backward = gelu_backward;
  ops->axpby = axpby;
  ops->shrink_subtract = shrink_subtract;
  ops->adamw = adamw;
  ops->momentum = momentum;
  ops->embedding_forward = embedding_forward;
  ops->add_rows_forward = add_rows_forward;
  ops->rmsnorm_forward = rmsnorm_forward;
  ops->layernorm_forward = layernorm_forward;
  ops->rope = rope;
  ops->cross_entropy = cross_entropy;
}
