// A camera kernel holds its frame until the display has shown the frame before. Six encoders, each
// in a stream of its own, come after the camera by an event.
#include "begin.cuh"

__global__ void camera(const volatile int* shown, unsigned char* frame) {
  if (threadIdx.x == 0)
    while (*shown == 0) __nanosleep(1000);
  __syncthreads();
  for (int i = threadIdx.x; i < 4096; i += blockDim.x) frame[i] = i;
}

__global__ void encode(const unsigned char* frame, int quality, unsigned* code) {
  atomicXor(code + quality, unsigned(frame[threadIdx.x]) * quality);
}

__global__ void display(const unsigned char* last, unsigned* screen, int* shown) {
  for (int i = threadIdx.x; i < 4096; i += blockDim.x) screen[i] = last[i];
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(shown, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *frame = zeros<unsigned char>(4096), *last = zeros<unsigned char>(4096);
  auto *code = zeros<unsigned>(8), *screen = zeros<unsigned>(4096);
  auto* shown = zeros<int>(1);
  load(camera);
  load(encode);
  load(display);
  const auto capturing = stream_of_its_own();
  cudaStream_t encoding[6];
  for (auto& each : encoding) each = stream_of_its_own();
  const auto showing = stream_of_its_own();
  cudaEvent_t taken;
  CHECK(cudaEventCreateWithFlags(&taken, cudaEventDisableTiming));
  if (fixed) display<<<1, 256, 0, showing>>>(last, screen, shown);
  camera<<<1, 256, 0, capturing>>>(shown, frame);
  CHECK(cudaEventRecord(taken, capturing));
  for (int i = 0; i < 6; ++i) {
    CHECK(cudaStreamWaitEvent(encoding[i], taken, 0));
    encode<<<1, 256, 0, encoding[i]>>>(frame, i, code);
  }
  if (!fixed) display<<<1, 256, 0, showing>>>(last, screen, shown);
  CHECK(cudaGetLastError());
  return finish();
}
