// An engine's scheduler is a kernel that stays until the first step is decoded. The graph of a step
// is captured from its kernels and launched in another stream.
#include "begin.cuh"

__global__ void schedule(const volatile int* decoded, int* order) {
  if (threadIdx.x == 0)
    while (*decoded == 0) __nanosleep(1000);
  __syncthreads();
  order[threadIdx.x] = threadIdx.x;
}

__global__ void attend(const float* keys, float* scores) {
  scores[blockIdx.x * 128 + threadIdx.x] = expf(keys[threadIdx.x]);
}

__global__ void choose(const float* scores, int* decoded) {
  if (threadIdx.x == 0) atomicExch(decoded, 1 + (scores[0] < 0));
}

cudaGraphExec_t graph_of_step(cudaStream_t stream, float* keys, float* scores, int* decoded) {
  cudaGraph_t graph;
  cudaGraphExec_t step;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  attend<<<4, 128, 0, stream>>>(keys, scores);
  choose<<<1, 32, 0, stream>>>(scores, decoded);
  CHECK(cudaGetLastError());
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&step, graph, 0));
  CHECK(cudaGraphUpload(step, stream));
  return step;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *decoded = zeros<int>(1), *order = zeros<int>(128);
  auto *keys = zeros<float>(128), *scores = zeros<float>(4 * 128);
  load(schedule);
  const auto scheduling = stream_of_its_own(), decoding = stream_of_its_own();
  cudaGraphExec_t step = nullptr;
  if (fixed) {
    step = graph_of_step(decoding, keys, scores, decoded);
    CHECK(cudaStreamSynchronize(decoding));
  }
  schedule<<<1, 128, 0, scheduling>>>(decoded, order);
  CHECK(cudaGetLastError());
  if (!fixed) step = graph_of_step(decoding, keys, scores, decoded);
  CHECK(cudaGraphLaunch(step, decoding));
  return finish();
}
