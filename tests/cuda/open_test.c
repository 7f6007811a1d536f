/* Opening the CUDA device, and what it says when the GPU does not do as asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "core/device/device.h"

static void refused(size_t threads, const char *sentence) {
  pl_device *d = NULL;
  pl_err e = {0};
  assert_int_equal(pl_device_open("cuda", PL_PRECISION_FP32, threads, &d, &e), PL_BAD);
  assert_string_equal(e.text, sentence);
  assert_null(d);
}

static pl_device *opened(void) {
  pl_device *d = NULL;
  pl_err e = {0};
  if (pl_device_open("cuda", PL_PRECISION_FP32, 1, &d, &e) != PL_OK) fail_msg("%s", e.text);
  return d;
}

static void without_a_gpu(void **state) {
  (void)state;
  pl_fake_cuda_fail("cudaGetDeviceCount", cudaErrorInsufficientDriver);
  refused(1, "cuda: no device (driver not found)");
  pl_fake_cuda_fail("cudaGetDeviceCount", cudaErrorIllegalAddress);
  refused(1, "cuda: no device (an illegal memory access was encountered)");
  pl_fake_cuda_fail(NULL, cudaSuccess);
  pl_fake_cuda_devices(0, 0);
  refused(1, "cuda: no device (no CUDA-capable device is detected)");
  pl_fake_cuda_devices(1, (size_t)1 << 34);
  refused(2, "threads is 2; with device cuda allowed: 1");
}

static void nothing_is_held_when_opening_fails(void **state) {
  (void)state;
  static const char *const calls[] = {"cudaSetDevice", "cudaStreamCreateWithFlags", "cudaMalloc", "cudaMallocHost"};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    pl_device *d = NULL;
    pl_err e = {0};
    pl_fake_cuda_fail(calls[i], cudaErrorMemoryAllocation);
    assert_int_equal(pl_device_open("cuda", PL_PRECISION_FP32, 1, &d, &e), PL_FAIL);
    assert_non_null(strstr(e.text, "out of memory"));
    pl_fake_cuda_fail(NULL, cudaSuccess);
  }
}

static void memory_that_is_not_there(void **state) {
  (void)state;
  pl_err e = {0};
  void *p = NULL;
  pl_fake_cuda_devices(1, (size_t)1 << 30);
  pl_device *d = opened();
  assert_int_equal(d->ops->alloc(d, (size_t)1 << 31, "the weights", &p, &e), PL_FAIL);
  assert_non_null(strstr(e.text, "cuda: out of memory: the weights needs 2048 MiB"));
  assert_non_null(strstr(e.text, "of the GPU's 1024 MiB are free; lower"));
  assert_null(p);
  e = (pl_err){0};
  assert_int_equal(d->ops->alloc(d, 1024, "a little", &p, &e), PL_OK); /* what failed is not found again */
  assert_int_equal(d->ops->check(d, &e), PL_OK);
  d->ops->free(d, p);
  pl_device_close(d);
  pl_fake_cuda_devices(1, (size_t)1 << 34);
}

static void what_went_wrong_is_told_once_and_stays(void **state) {
  (void)state;
  pl_err e = {0};
  void *p = NULL;
  float x[4] = {1, 2, 3, 4};
  pl_device *d = opened();
  assert_int_equal(d->ops->alloc(d, sizeof x, "numbers", &p, &e), PL_OK);
  d->ops->upload(d, p, x, sizeof x);
  assert_true(d->ops->sum_squares(d, 4, p) == 30);
  pl_fake_cuda_fail("cudaStreamSynchronize", cudaErrorIllegalAddress);
  const double sum = d->ops->sum_squares(d, 4, p);
  assert_true(sum != sum);
  pl_fake_cuda_fail(NULL, cudaSuccess);
  for (int i = 0; i < 2; i++) {
    e = (pl_err){0};
    assert_int_equal(d->ops->check(d, &e), PL_FAIL);
    assert_string_equal(e.text, "cuda: waiting for the GPU: an illegal memory access was encountered");
  }
  d->ops->free(d, p);
  pl_device_close(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_gpu),
      cmocka_unit_test(nothing_is_held_when_opening_fails),
      cmocka_unit_test(memory_that_is_not_there),
      cmocka_unit_test(what_went_wrong_is_told_once_and_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
