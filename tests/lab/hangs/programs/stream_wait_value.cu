// A stream waits for a value in host memory with cuStreamWaitValue32. The host writes it when it
// has seen the end of what it put on the stream, which comes behind that wait.
#include "begin.cuh"

__global__ void decode_frame(int frame, float* pixels) {
  pixels[blockIdx.x * blockDim.x + threadIdx.x] = frame;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  constexpr int kFrames = 5;
  volatile unsigned* received = shared_with_host<unsigned>(1);
  auto* pixels = zeros<float>(32 * 128);
  load(decode_frame);
  const cudaStream_t frames = stream_of_its_own();
  void* address;
  CHECK(cudaHostGetDevicePointer(&address, const_cast<unsigned*>(received), 0));
  for (unsigned frame = 1; frame <= kFrames; ++frame) {
    if (fixed) *received = frame;
    CHECK(cuStreamWaitValue32(frames, reinterpret_cast<CUdeviceptr>(address), frame,
                              CU_STREAM_WAIT_VALUE_GEQ));
    decode_frame<<<32, 128, 0, frames>>>(frame, pixels);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(frames));
    *received = frame;
  }
  return finish();
}
