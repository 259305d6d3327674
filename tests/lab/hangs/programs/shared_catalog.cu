// A catalog shared by an ingest thread and a query thread; both take the catalog lock.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "turn.cuh"
#define CK(x)                                                                    \
  do {                                                                           \
    cudaError_t e_ = (x);                                                        \
    if (e_ != cudaSuccess) {                                                     \
      fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

constexpr int kRows = 1 << 16;

__global__ void scanCatalog(const int *rows, volatile int *generation, int want,
                            unsigned long long *hits) {
  if (threadIdx.x == 0)
    while (*generation < want) __nanosleep(2000);  // newest rows first
  __syncthreads();
  unsigned long long h = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kRows; i += gridDim.x * blockDim.x)
    h += ((volatile const int *)rows)[i] % 3 == 0;
  atomicAdd(hits, h);
}
__global__ void appendRows(int *rows, int gen) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kRows; i += gridDim.x * blockDim.x)
    rows[i] = i * gen;
}

struct Catalog {
  std::mutex lock;
  int *rows;
  int *generation;
  unsigned long long *hits;
  cudaStream_t query, ingest;
  std::atomic<bool> queryRunning{false};
};

static void ingestGeneration(Catalog &c, int gen) {
  std::lock_guard<std::mutex> g(c.lock);
  appendRows<<<32, 256, 0, c.ingest>>>(c.rows, gen);
  CK(cudaStreamSynchronize(c.ingest));
  *(volatile int *)c.generation = gen;
}

static void runQuery(Catalog &c, int want, bool fixed) {
  {
    std::unique_lock<std::mutex> g(c.lock);
    scanCatalog<<<16, 256, 0, c.query>>>(c.rows, c.generation, want, c.hits);
    CK(cudaGetLastError());
    c.queryRunning = true;
    if (fixed) g.unlock();
    CK(cudaStreamSynchronize(c.query));  // rows must not change under the query
  }
  printf("query over generation %d finished\n", want);
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  Catalog c;
  CK(cudaMalloc(&c.rows, kRows * 4));
  CK(cudaMalloc(&c.hits, 8));
  CK(cudaMemset(c.hits, 0, 8));
  CK(cudaHostAlloc(&c.generation, 4, cudaHostAllocMapped));
  *c.generation = 0;
  CK(cudaStreamCreateWithFlags(&c.query, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&c.ingest, cudaStreamNonBlocking));
  ingestGeneration(c, 1);
  runQuery(c, 1, fixed);
  c.queryRunning = false;
  std::thread ingest([&] {
    CK(cudaSetDevice(0));
    while (!c.queryRunning) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ingestGeneration(c, 2);
    printf("generation 2 ingested\n");
  });
  std::thread query([&] {
    CK(cudaSetDevice(0));
    runQuery(c, 2, fixed);
  });
  query.join();
  ingest.join();
  unsigned long long h;
  CK(cudaMemcpy(&h, c.hits, 8, cudaMemcpyDeviceToHost));
  printf("%llu hits\n", h);
  return 0;
}
