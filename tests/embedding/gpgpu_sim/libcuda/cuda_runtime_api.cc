#include "../src/gpgpu-sim/gpu-sim.h"

enum cudaError_t { cudaSuccess };
struct CUstream_st {
  unsigned get_uid() const;
};
typedef CUstream_st *cudaStream_t;

cudaError_t cudaStreamCreate(cudaStream_t *stream);

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int priority) {
  (void)priority;
  return cudaStreamCreate(stream);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
  *leastPriority = *greatestPriority = 0;
  return cudaSuccess;
}
