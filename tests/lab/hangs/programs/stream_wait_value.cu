// A stream waits for a word that the host writes when it has waited for the stream.
#include "begin.cuh"

__global__ void transform(float* values) { values[blockIdx.x * 256 + threadIdx.x] += 1; }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* ready = shared_with_host<unsigned>(1);
  auto* values = zeros<float>(64 * 256);
  load(transform);
  const auto stream = stream_of_its_own();
  if (fixed) *static_cast<volatile unsigned*>(ready) = 1;
  transform<<<64, 256, 0, stream>>>(values);
  CHECK(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(ready), 1,
                            CU_STREAM_WAIT_VALUE_GEQ));
  transform<<<64, 256, 0, stream>>>(values);
  CHECK(cudaGetLastError());
  CHECK(cudaStreamSynchronize(stream));
  *static_cast<volatile unsigned*>(ready) = 1;
  return finish();
}
