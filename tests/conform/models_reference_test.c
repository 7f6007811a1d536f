/* The losses of the transformer and the mlp against plain ones: loops in double, written from the formulas, that find
 * their weights by name. */
#include "tests/conform/models_rig.h"

enum { MOST = 64 }; /* of every width */

typedef struct plain {
  const rig *r;
  bool layernorm, gelu, rope;
  size_t width, heads, kv_heads, dim, ff, time, layers, window; /* window: of the mlp */
  double eps, theta;
} plain;

static const pl_real *find(const plain *p, const char *format, size_t layer) {
  char name[64];
  size_t stage;
  const char *mark = strchr(format, '#');
  if (mark == NULL) {
    snprintf(name, sizeof name, "%s", format);
  } else {
    snprintf(name, sizeof name, "%.*s%zu%s", (int)(mark - format), format, layer, mark + 1);
  }
  const pl_segment *s = rig_find(p->r, name, &stage);
  return s == NULL ? NULL : p->r->x[stage] + s->offset;
}

/* y[out] = W x + b */
static void linear(const plain *p, const char *name, size_t layer, size_t out, size_t in, const double *x, double *y) {
  char bias_name[64];
  snprintf(bias_name, sizeof bias_name, "%s.bias", name);
  const pl_real *w = find(p, name, layer), *bias = find(p, bias_name, layer);
  assert_non_null(w);
  for (size_t i = 0; i < out; i++) {
    y[i] = bias == NULL ? 0 : (double)bias[i];
    for (size_t j = 0; j < in; j++) y[i] += (double)w[i * in + j] * x[j];
  }
}

static void norm(const plain *p, const char *name, size_t layer, const double *x, double *y) {
  char bias_name[64];
  snprintf(bias_name, sizeof bias_name, "%s.bias", name);
  const pl_real *w = find(p, name, layer), *bias = find(p, bias_name, layer);
  double mean = 0, square = 0;
  for (size_t i = 0; i < p->width && p->layernorm; i++) mean += x[i] / (double)p->width;
  for (size_t i = 0; i < p->width; i++) square += (x[i] - mean) * (x[i] - mean) / (double)p->width;
  assert_true((bias != NULL) == p->layernorm);
  for (size_t i = 0; i < p->width; i++) {
    y[i] = (x[i] - mean) / sqrt(square + p->eps) * (double)w[i] + (bias == NULL ? 0 : (double)bias[i]);
  }
}

static void rotate(const plain *p, size_t position, size_t heads, double *x) {
  for (size_t h = 0; h < heads && p->rope; h++) {
    double *head = x + h * p->dim;
    for (size_t i = 0; i < p->dim / 2; i++) {
      double angle = (double)position / pow(p->theta, 2 * (double)i / (double)p->dim);
      double a = head[i], b = head[i + p->dim / 2];
      head[i] = a * cos(angle) - b * sin(angle);
      head[i + p->dim / 2] = b * cos(angle) + a * sin(angle);
    }
  }
}

/* Output of position t: softmax over the positions up to t, head by head. */
static void attend(const plain *p, size_t t, double q[][MOST], double k[][MOST], double v[][MOST], double *out) {
  for (size_t h = 0; h < p->heads; h++) {
    size_t at = h * p->dim, kv = h * p->kv_heads / p->heads * p->dim;
    double weight[MOST], sum = 0;
    for (size_t s = 0; s <= t; s++) {
      double score = 0;
      for (size_t i = 0; i < p->dim; i++) score += q[t][at + i] * k[s][kv + i];
      weight[s] = exp(score / sqrt((double)p->dim));
      sum += weight[s];
    }
    for (size_t i = 0; i < p->dim; i++) {
      out[at + i] = 0;
      for (size_t s = 0; s <= t; s++) out[at + i] += weight[s] / sum * v[s][kv + i];
    }
  }
}

static void attention_layer(const plain *p, size_t layer, double x[][MOST]) {
  double q[MOST][MOST], k[MOST][MOST], v[MOST][MOST], n[MOST], a[MOST], o[MOST];
  for (size_t t = 0; t < p->time; t++) {
    norm(p, "layers.#.attention_norm", layer, x[t], n);
    linear(p, "layers.#.attention.q", layer, p->width, p->width, n, q[t]);
    linear(p, "layers.#.attention.k", layer, p->kv_heads * p->dim, p->width, n, k[t]);
    linear(p, "layers.#.attention.v", layer, p->kv_heads * p->dim, p->width, n, v[t]);
    rotate(p, t, p->heads, q[t]);
    rotate(p, t, p->kv_heads, k[t]);
  }
  for (size_t t = 0; t < p->time; t++) {
    attend(p, t, q, k, v, a);
    linear(p, "layers.#.attention.o", layer, p->width, p->width, a, o);
    for (size_t i = 0; i < p->width; i++) x[t][i] += o[i];
  }
}

/* The tanh form of GELU. */
static double gelu(double x) { return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

static void mlp_layer(const plain *p, size_t layer, double *x) {
  double n[MOST], gate[MOST], up[MOST], down[MOST];
  norm(p, "layers.#.mlp_norm", layer, x, n);
  linear(p, p->gelu ? "layers.#.mlp.in" : "layers.#.mlp.up", layer, p->ff, p->width, n, up);
  if (p->gelu) {
    for (size_t i = 0; i < p->ff; i++) {
      up[i] = gelu(up[i]);
    }
  } else {
    linear(p, "layers.#.mlp.gate", layer, p->ff, p->width, n, gate);
    for (size_t i = 0; i < p->ff; i++) up[i] *= gate[i] / (1 + exp(-gate[i]));
  }
  linear(p, p->gelu ? "layers.#.mlp.out" : "layers.#.mlp.down", layer, p->width, p->ff, up, down);
  for (size_t i = 0; i < p->width; i++) x[i] += down[i];
}

static double token_loss(const plain *p, const char *head, size_t width, const double *x, int32_t target) {
  double logits[MOST], sum = 0;
  linear(p, head, 0, RIG_VOCAB, width, x, logits);
  for (size_t i = 0; i < RIG_VOCAB; i++) sum += exp(logits[i]);
  return log(sum) - logits[target];
}

static double transformer_loss(const plain *p, const int32_t *tokens, const int32_t *targets) {
  double x[MOST][MOST], n[MOST], loss = 0;
  const pl_real *embedding = find(p, "embedding", 0), *positions = find(p, "positions", 0);
  for (size_t t = 0; t < p->time; t++) {
    for (size_t i = 0; i < p->width; i++) {
      x[t][i] = (double)embedding[(size_t)tokens[t] * p->width + i];
      if (!p->rope) x[t][i] += (double)positions[t * p->width + i];
    }
  }
  for (size_t l = 0; l < p->layers; l++) {
    attention_layer(p, l, x);
    for (size_t t = 0; t < p->time; t++) mlp_layer(p, l, x[t]);
  }
  for (size_t t = 0; t < p->time; t++) {
    norm(p, "final_norm", 0, x[t], n);
    loss += token_loss(p, find(p, "head", 0) != NULL ? "head" : "embedding", p->width, n, targets[t]);
  }
  return loss;
}

/* width: of an embedding; ff: of a hidden layer. */
static double mlp_loss(const plain *p, const int32_t *tokens, const int32_t *targets) {
  double loss = 0;
  const pl_real *embedding = find(p, "embedding", 0);
  for (size_t t = 0; t < p->time; t++) {
    double x[MOST] = {0}, z[MOST];
    size_t in = p->window * p->width;
    for (size_t j = 0; j < p->window && j <= t; j++) {
      for (size_t i = 0; i < p->width; i++) {
        x[j * p->width + i] = (double)embedding[(size_t)tokens[t - j] * p->width + i];
      }
    }
    for (size_t l = 0; l < p->layers; l++, in = p->ff) {
      linear(p, "layers.#", l, p->ff, in, x, z);
      for (size_t i = 0; i < p->ff; i++) x[i] = gelu(z[i]);
    }
    loss += token_loss(p, "head", in, x, targets[t]);
  }
  return loss;
}

static double batch_loss(const plain *p) {
  double loss = 0;
  for (size_t s = 0; s < RIG_SEQUENCES; s++) {
    const int32_t *tokens = p->r->host_tokens + s * p->time, *targets = p->r->host_targets + s * p->time;
    loss += p->window > 0 ? mlp_loss(p, tokens, targets) : transformer_loss(p, tokens, targets);
  }
  return loss;
}

static void check(const pl_model_type *type, const char *config, plain p) {
  static rig r;
  rig_open(&r, "cpu", type, config, 2);
  p.r = &r;
  p.time = r.shape.context;
  p.layers = r.shape.layers;
  pl_batch b = rig_batch(&r, 0, RIG_SEQUENCES, 0);
  double loss = rig_forward(&r, &b), expected = batch_loss(&p);
#ifdef PL_F64
  assert_true(fabs(loss - expected) <= 1e-12 * expected);
#else
  assert_true(fabs(loss - expected) <= 1e-5 * expected);
#endif
  r.x[1][0] += (pl_real)0.1; /* the comparison can fail */
  assert_true(fabs(loss - batch_loss(&p)) > 1e-4 * expected);
  rig_close(&r);
}

static void test_llama(void **state) {
  (void)state;
  check(&pl_model_transformer, "{\"layers\": 3, \"d_model\": 24, \"heads\": 2, \"ff\": 40, \"context\": 12}",
        (plain){.width = 24, .heads = 2, .kv_heads = 2, .dim = 12, .ff = 40, .rope = true, .eps = 1e-5, .theta = 1e4});
}

static void test_grouped_queries(void **state) {
  (void)state;
  check(&pl_model_transformer,
        "{\"layers\": 2, \"d_model\": 36, \"heads\": 6, \"kv_heads\": 2, \"ff\": 24, \"context\": 15, \"bias\": true,"
        " \"tied\": true, \"rope_theta\": 100, \"norm_eps\": 0.001}",
        (plain){.width = 36, .heads = 6, .kv_heads = 2, .dim = 6, .ff = 24, .rope = true, .eps = 1e-3, .theta = 100});
}

static void test_gpt2(void **state) {
  (void)state;
  check(&pl_model_transformer,
        "{\"layers\": 2, \"d_model\": 15, \"heads\": 3, \"context\": 11, \"norm\": \"layernorm\", \"bias\": true,"
        " \"activation\": \"gelu\", \"positions\": \"learned\", \"tied\": true}",
        (plain){
            .width = 15, .heads = 3, .kv_heads = 3, .dim = 5, .ff = 60, .layernorm = true, .gelu = true, .eps = 1e-5});
}

static void test_mlp(void **state) {
  (void)state;
  check(&pl_model_mlp, "{\"layers\": 3, \"hidden\": 17, \"embedding\": 6, \"window\": 4, \"context\": 9}",
        (plain){.width = 6, .ff = 17, .window = 4});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_llama),
      cmocka_unit_test(test_grouped_queries),
      cmocka_unit_test(test_gpt2),
      cmocka_unit_test(test_mlp),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
