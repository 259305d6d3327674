// What the RTAS 2020 paper says of arithmetic units (Figure 6), of memory next to copies (Figure 8)
// and of GPCs (Figure 9), measured. hierarchy.py says how to run it. Writes $OUT/parts.json: cycles
// of a block with two kinds of work, and of one kind while the other goes on; of each place and KB
// of a vector the nanoseconds of the block that is watched; of each copy and KB that a kernel
// touches the nanoseconds of the kernel.
#include <cuda_runtime.h>
#include <mma.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

void check(cudaError_t error, int line) {
  if (error != cudaSuccess) {
    std::printf("FAILED line %d: %s\n", line, cudaGetErrorString(error));
    std::exit(1);
  }
}
template <class Call>
void must(int line, Call call) {
  check(call(), line);
}

__device__ unsigned sm_number() {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}
__device__ unsigned long long now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

// Not moved by the compiler: clock64() was, past a barrier.
__device__ long long cycle() {
  long long cycles;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
  return cycles;
}

enum Kind : int { kNothing, kFp32, kFp64, kInt32, kTensor };
constexpr int kRounds = 20000;

__device__ float work(int kind, float seed, int rounds) {
  if (kind == kFp32) {
    float a = seed, b = seed + 1, c = seed + 2, d = seed + 3;
#pragma unroll 4
    for (int k = 0; k < rounds; ++k) {
      a = fmaf(a, 0.999f, 0.1f), b = fmaf(b, 0.999f, 0.1f);
      c = fmaf(c, 0.999f, 0.1f), d = fmaf(d, 0.999f, 0.1f);
    }
    return a + b + c + d;
  }
  if (kind == kFp64) {
    double a = seed, b = seed + 1, c = seed + 2, d = seed + 3;
#pragma unroll 4
    for (int k = 0; k < rounds; ++k) {
      a = fma(a, 0.999, 0.1), b = fma(b, 0.999, 0.1);
      c = fma(c, 0.999, 0.1), d = fma(d, 0.999, 0.1);
    }
    return static_cast<float>(a + b + c + d);
  }
  if (kind == kInt32) {  // min and xor, which no FMA unit does
    int a = static_cast<int>(seed), b = a + 1, c = a + 2, d = a + 3;
#pragma unroll 4
    for (int k = 0; k < rounds; ++k) {
      asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(a) : "r"(k), "r"(b));
      asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(b) : "r"(k), "r"(c));
      asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(c) : "r"(k), "r"(d));
      asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(d) : "r"(k), "r"(a));
    }
    return static_cast<float>(a + b + c + d);
  }
  if (kind == kTensor) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> a;
    fragment<matrix_b, 16, 16, 16, __half, col_major> b;
    fragment<accumulator, 16, 16, 16, float> c, d;
    fill_fragment(a, __float2half(0.01f)), fill_fragment(b, __float2half(0.01f));
    fill_fragment(c, seed), fill_fragment(d, seed);
    for (int k = 0; k < rounds / 4; ++k) {
      mma_sync(c, a, b, c);
      mma_sync(d, a, b, d);
    }
    return c.x[0] + d.x[0];
  }
  return seed;
}

// A block of 16 warps: the lower half of each four does one kind of work, the upper half another.
// Each processing block has two warps of either. `cycles`: when the last warp of each half ended.
// If the upper half goes on, it stops when the lower has ended: the cycles of the lower half are
// then those beside work that never pauses.
__global__ void mixed(int lower, int upper, bool upper_goes_on, long long* cycles, float* sink) {
  __shared__ int still_working[2];
  if (threadIdx.x < 2) still_working[threadIdx.x] = 8;
  int warp = threadIdx.x / 32;
  int half = (warp / 4) % 2;
  auto seed = static_cast<float>(threadIdx.x);
  float result = 0;
  __syncthreads();
  long long begin = cycle();
  if (half == 1 && upper_goes_on) {
    while (*static_cast<volatile int*>(still_working) > 0) result += work(upper, seed, 64);
  } else {
    result = work(half == 1 ? upper : lower, seed, kRounds);
  }
  sink[threadIdx.x] = result;
  __syncwarp();
  if (threadIdx.x % 32 == 0 && atomicSub(still_working + half, 1) == 1)
    cycles[half] = cycle() - begin;
}

// The least of three runs: cycles until all warps, or until the lower half has ended.
long long cycles_of(int lower, int upper, bool upper_goes_on, long long* cycles, float* sink) {
  long long least = 1LL << 62;
  for (int run = 0; run < 3; ++run) {
    mixed<<<1, 512>>>(lower, upper, upper_goes_on, cycles, sink);
    must(__LINE__, [] { return cudaDeviceSynchronize(); });
    least = std::min(least, upper_goes_on ? cycles[0] : std::max(cycles[0], cycles[1]));
  }
  return least;
}

void alus(std::string& out) {
  long long* cycles;
  float* sink;
  must(__LINE__, [&] { return cudaMallocManaged(&cycles, 16); });
  must(__LINE__, [&] { return cudaMalloc(&sink, 4096); });
  const char* names[] = {"nothing", "fp32", "fp64", "int32", "tensor"};
  for (bool goes_on : {false, true}) {
    std::ostringstream text;
    for (int lower = kFp32; lower <= kTensor; ++lower) {
      for (int upper = kNothing; upper <= kTensor; ++upper) {
        long long least = cycles_of(lower, upper, goes_on && upper != kNothing, cycles, sink);
        text << "\"" << names[lower] << "+" << names[upper] << "\":" << least << ",";
        std::printf("alu %s + %s%s: %.2f cycles per round\n", names[lower], names[upper],
                    goes_on ? ", which goes on" : "", static_cast<double>(least) / kRounds);
      }
    }
    out += std::string(goes_on ? "\"alus_beside\"" : "\"alus\"") + ":{" + text.str() +
           "\"rounds\":" + std::to_string(kRounds) + "},";
  }
}

// Blocks on the chosen SMs add vectors; the others leave. role[sm]: 0 none, 1 victim, 2 interferer.
__global__ void add_on(const int* role, float* data, size_t floats, int passes, int* arrived,
                       int parties, unsigned long long* took) {
  unsigned long long first = now();
  int mine = role[sm_number()];
  if (mine == 0) {  // stays until every other block has an SM of its own
    while (now() - first < 50000) {
    }
    return;
  }
  __shared__ int slot;
  if (threadIdx.x == 0) {
    slot = atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < parties && now() - first < 20000000) {
    }
  }
  __syncthreads();
  size_t own = mine == 1 ? 0 : static_cast<size_t>(slot + 1);
  float* a = data + own * floats * 3;
  unsigned long long begin = now();
  for (int pass = 0; mine == 1 ? pass < passes : true; ++pass) {
    for (size_t k = threadIdx.x; k < floats; k += blockDim.x)
      a[2 * floats + k] = a[k] + a[floats + k];
    if (mine == 2 && (*static_cast<volatile int*>(arrived + 1) || now() - first > 100000000)) break;
  }
  __syncthreads();
  if (mine == 1 && threadIdx.x == 0) {
    *took = now() - begin;
    __threadfence();
    atomicExch(arrived + 1, 1);
  }
}

void gpcs(std::string& out) {
  int sms;
  must(__LINE__, [&] { return cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0); });
  int *role, *arrived;
  unsigned long long* took;
  float* data;
  size_t most = 4u << 20;  // bytes of each of three vectors
  must(__LINE__, [&] { return cudaMalloc(&role, sms * 4); });
  must(__LINE__, [&] { return cudaMalloc(&arrived, 8); });
  must(__LINE__, [&] { return cudaMalloc(&took, 8); });
  std::vector<int> roles(sms);
  must(__LINE__, [&] { return cudaMalloc(&data, most * 3 * 40); });
  must(__LINE__, [&] { return cudaMemset(data, 0, most * 3 * 40); });
  must(__LINE__, [&] {
    return cudaFuncSetAttribute(add_on, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10);
  });
  std::ostringstream text;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string name;
    int victim, other, parties = 1;
    words >> name >> victim;
    std::fill(roles.begin(), roles.end(), 0);
    roles[victim] = 1;
    while (words >> other) roles[other] = 2, ++parties;
    must(__LINE__, [&] { return cudaMemcpy(role, roles.data(), sms * 4, cudaMemcpyHostToDevice); });
    if (parties > 38) continue;
    for (size_t bytes : {size_t{32} << 10, size_t{256} << 10, most}) {
      int passes = static_cast<int>(std::max<size_t>(1, (size_t{4} << 20) / bytes));
      unsigned long long least = ~0ull;
      for (int run = 0; run < 3; ++run) {
        unsigned long long nanoseconds = 0;
        must(__LINE__, [&] { return cudaMemset(arrived, 0, 8); });
        must(__LINE__, [&] { return cudaMemset(took, 0, 8); });
        add_on<<<sms, 1024, 200 << 10>>>(role, data, bytes / 4, passes, arrived, parties, took);
        must(__LINE__, [] { return cudaDeviceSynchronize(); });
        must(__LINE__, [&] { return cudaMemcpy(&nanoseconds, took, 8, cudaMemcpyDeviceToHost); });
        least = std::min(least, nanoseconds);
      }
      text << "\"" << name << "@" << bytes / 1024 << "\":" << least << ",";
    }
  }
  std::string found = text.str();
  if (!found.empty()) found.pop_back();
  out += "\"gpcs\":{" + found + "},";
}

__global__ void add(float* a, size_t floats, unsigned long long* begin, unsigned long long* end) {
  if (threadIdx.x == 0) atomicMin(begin, now());
  for (size_t k = blockIdx.x * size_t{blockDim.x} + threadIdx.x; k < floats;
       k += size_t{gridDim.x} * blockDim.x)
    a[2 * floats + k] = a[k] + a[floats + k];
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(end, now());
}

void copies(std::string& out) {
  size_t bytes = 50u << 20;
  float *data, *other, *host, *third;
  unsigned long long* times;
  must(__LINE__, [&] { return cudaMalloc(&data, 3 * (512u << 20)); });
  must(__LINE__, [&] { return cudaMalloc(&other, bytes); });
  must(__LINE__, [&] { return cudaMalloc(&third, bytes); });
  must(__LINE__, [&] { return cudaMallocHost(&host, bytes); });
  must(__LINE__, [&] { return cudaMalloc(&times, 16); });
  cudaStream_t compute, copying;
  must(__LINE__, [&] { return cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking); });
  must(__LINE__, [&] { return cudaStreamCreateWithFlags(&copying, cudaStreamNonBlocking); });
  const char* kinds[] = {"alone", "h2d", "d2h", "d2d", "memset"};
  std::ostringstream text;
  for (size_t footprint :
       {size_t{512} << 10, size_t{8} << 20, size_t{50} << 20, size_t{500} << 20}) {
    double alone = 0;
    for (int kind = 0; kind < 5; ++kind) {
      double least = 1e18;
      for (int run = 0; run < 3; ++run) {
        unsigned long long seen[2] = {~0ull, 0};
        must(__LINE__, [&] { return cudaMemcpy(times, seen, 16, cudaMemcpyHostToDevice); });
        must(__LINE__, [] { return cudaDeviceSynchronize(); });
        for (int k = 0; k < 4; ++k) {
          if (kind == 1) cudaMemcpyAsync(other, host, bytes, cudaMemcpyHostToDevice, copying);
          if (kind == 2) cudaMemcpyAsync(host, other, bytes, cudaMemcpyDeviceToHost, copying);
          if (kind == 3)
            for (int m = 0; m < 8; ++m)
              cudaMemcpyAsync(other, third, bytes, cudaMemcpyDeviceToDevice, copying);
          if (kind == 4)
            for (int m = 0; m < 8; ++m) cudaMemsetAsync(other, 1, bytes, copying);
        }
        add<<<264, 1024, 0, compute>>>(data, footprint / 12, times, times + 1);
        must(__LINE__, [] { return cudaDeviceSynchronize(); });
        must(__LINE__, [&] { return cudaMemcpy(seen, times, 16, cudaMemcpyDeviceToHost); });
        least = std::min(least, static_cast<double>(seen[1] - seen[0]));
      }
      if (kind == 0) alone = least;
      text << "\"" << kinds[kind] << "@" << footprint / 1024 << "\":" << least << ",";
      std::printf("vector add of %zu KB next to %s: %.1f us, %.2f times alone\n", footprint / 1024,
                  kinds[kind], least / 1e3, least / alone);
    }
  }
  std::string found = text.str();
  found.pop_back();
  out += "\"copies\":{" + found + "},";
}

int main() {
  int least, greatest;
  must(__LINE__, [&] { return cudaDeviceGetStreamPriorityRange(&least, &greatest); });
  cudaDeviceProp prop;
  must(__LINE__, [&] { return cudaGetDeviceProperties(&prop, 0); });
  std::string out = "{\"gpu\":\"" + std::string(prop.name) + "\",";
  std::printf("priorities %d to %d, %d copy engines\n", least, greatest, prop.asyncEngineCount);
  out += "\"priorities\":[" + std::to_string(least) + "," + std::to_string(greatest) + "],";
  out += "\"engines\":" + std::to_string(prop.asyncEngineCount) + ",";
  alus(out);
  gpcs(out);
  copies(out);
  out.back() = '}';
  const char* folder = std::getenv("OUT");
  std::FILE* file = std::fopen((std::string(folder ? folder : ".") + "/parts.json").c_str(), "w");
  std::fprintf(file, "%s\n", out.c_str());
  std::fclose(file);
}
