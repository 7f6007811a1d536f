/* Pretended GPUs, linked with -Wl,--wrap around the double of NVIDIA's runtime: as many as PL_PRETEND_GPUS says (1), or
 * "no driver". CUDA_VISIBLE_DEVICES hides and orders them as NVIDIA documents it, by number or as GPU-pretended-NUMBER,
 * and the name of each says which it is. Like NVIDIA's driver they do not survive a fork. What a process takes is added
 * to the file PL_PRETEND_LOG, a line each. */
#include <cuda_runtime_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64, UNFORKED = 3 /* cudaErrorInitializationError */ };

cudaError_t __real_cudaGetDeviceCount(int *count);
cudaError_t __real_cudaSetDevice(int device);
cudaError_t __real_cudaGetDeviceProperties(struct cudaDeviceProp *out, int device);
cudaError_t __wrap_cudaGetDeviceCount(int *count);
cudaError_t __wrap_cudaSetDevice(int device);
cudaError_t __wrap_cudaGetDeviceProperties(struct cudaDeviceProp *out, int device);

static pid_t first_user; /* the process that asked first */
static int visible[MOST], visible_count;

/* The GPU that a word names; -1: none. */
static int number_of(const char *word, int total) {
  char *end;
  if (strncmp(word, "GPU-pretended-", 14) == 0) word += 14;
  const long number = strtol(word, &end, 10);
  if (end == word || (*end != ',' && *end != '\0') || number < 0 || number >= total) return -1;
  return (int)number;
}

static void look(int total) {
  const char *word = getenv("CUDA_VISIBLE_DEVICES");
  visible_count = 0;
  if (!word) {
    for (; visible_count < total && visible_count < MOST; visible_count++) visible[visible_count] = visible_count;
    return;
  }
  while (word && visible_count < MOST) {
    const int number = number_of(word, total);
    if (number < 0) return; /* the first that does not exist ends the list */
    visible[visible_count++] = number;
    word = strchr(word, ',');
    if (word) word++;
  }
}

cudaError_t __wrap_cudaGetDeviceCount(int *count) {
  const char *text = getenv("PL_PRETEND_GPUS");
  if (text && strcmp(text, "no driver") == 0) return cudaErrorInsufficientDriver;
  if (first_user == 0) first_user = getpid();
  if (first_user != getpid()) return (cudaError_t)UNFORKED;
  look(text ? atoi(text) : 1);
  pl_fake_cuda_devices(visible_count, (size_t)16 << 30);
  return __real_cudaGetDeviceCount(count);
}

static const char *word_of(const char *name) {
  const char *text = getenv(name);
  return text ? text : "-";
}

static void note(int number) {
  const char *path = getenv("PL_PRETEND_LOG");
  FILE *log = path ? fopen(path, "a") : NULL;
  if (!log) return;
  fprintf(log, "GPU %d of %s, Slurm's local rank %s, Open MPI's %s\n", number, word_of("CUDA_VISIBLE_DEVICES"),
          word_of("SLURM_LOCALID"), word_of("OMPI_COMM_WORLD_LOCAL_RANK"));
  fclose(log);
}

cudaError_t __wrap_cudaSetDevice(int device) {
  const cudaError_t code = __real_cudaSetDevice(device);
  if (code == cudaSuccess) note(visible[device]);
  return code;
}

cudaError_t __wrap_cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
  const cudaError_t code = __real_cudaGetDeviceProperties(out, device);
  if (code == cudaSuccess) snprintf(out->name, sizeof out->name, "host double %d", visible[device]);
  return code;
}
