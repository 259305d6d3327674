// Two streams take turns: a short kernel, and a host function that sums a large array on the CPU
// for more than two seconds.
#include <chrono>
#include <vector>

#include "begin.cuh"

struct Checksum {
  std::vector<unsigned> data = std::vector<unsigned>(1 << 22, 1u);
  unsigned sum = 0;
};

void add_up(void* of) {
  auto* checksum = static_cast<Checksum*>(of);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2600);
  while (std::chrono::steady_clock::now() < until)
    for (const unsigned each : checksum->data) checksum->sum = checksum->sum * 31 + each;
}

__global__ void prepare(float* x) { x[threadIdx.x] += 1; }

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* x = zeros<float>(512);
  load(prepare);
  const cudaStream_t streams[] = {stream_of_its_own(), stream_of_its_own()};
  cudaEvent_t summed;
  CHECK(cudaEventCreate(&summed));
  Checksum checksum;
  for (int i = 0; i < 3; ++i) {
    const auto stream = streams[i % 2];
    if (i > 0) CHECK(cudaStreamWaitEvent(stream, summed, 0));
    prepare<<<1, 256, 0, stream>>>(x);
    CHECK(cudaLaunchHostFunc(stream, add_up, &checksum));
    CHECK(cudaEventRecord(summed, stream));
  }
  CHECK(cudaGetLastError());
  return finish();
}
