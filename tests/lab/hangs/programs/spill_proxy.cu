// A table in global memory asks the host for a larger spill area when it is full. A proxy thread
// serves such requests: it gives the old area back, allocates one of twice the size, and replies.
#include <thread>

#include "begin.cuh"

struct Mailbox {
  volatile unsigned long long wanted, area;
};

__global__ void insert(Mailbox* mailbox, int* area, int capacity, int keys) {
  for (int key = 0; key < keys; ++key) {
    if (key == capacity) {
      if (threadIdx.x == 0) {
        mailbox->wanted = 2ull * capacity;
        while (mailbox->area == 0) __nanosleep(1000);
      }
      __syncthreads();
      area = reinterpret_cast<int*>(mailbox->area);
      capacity *= 2;
    }
    if (threadIdx.x == 0) area[key] = key;
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int capacity = 1 << 12;
  auto* area = zeros<int>(capacity);
  auto* mailbox = shared_with_host<Mailbox>(1);
  load(insert);
  std::thread proxy([=] {
    while (mailbox->wanted == 0) usleep(100);
    int* larger;
    if (!fixed) CHECK(cudaFree(area));
    CHECK(cudaMalloc(&larger, mailbox->wanted * sizeof(int)));
    mailbox->area = reinterpret_cast<unsigned long long>(larger);
  });
  insert<<<1, 64, 0, stream_of_its_own()>>>(mailbox, area, capacity, 2 * capacity);
  CHECK(cudaGetLastError());
  proxy.join();
  return finish();
}
