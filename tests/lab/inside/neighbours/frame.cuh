// What all kernels here share: a record per block, and a common start.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

// What a block did, in nanoseconds and in clocks of its SM.
struct Record {
  u64 start_ns;
  u64 end_ns;
  float rate;  // chunks of all its warps per million clocks
  u32 sm;
};

// Shared by the kernels of a run.
struct Control {
  u32 arrived;  // blocks that are there
  u32 stop;
};

__device__ inline u64 now_ns() {
  u64 value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

__device__ inline u32 this_sm() {
  u32 value;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
  return value;
}

__device__ inline u32 hashed(u32 value) {
  value ^= value >> 16;
  value *= 0x7feb352du;
  value ^= value >> 15;
  value *= 0x846ca68bu;
  return value ^ (value >> 16);
}

// A block comes, and goes on when all expected blocks have come, or after some milliseconds.
__device__ inline void meet(Control* control, const u32 expected) {
  constexpr long long kPatience = 6000000;
  if (threadIdx.x == 0) {
    atomicAdd(&control->arrived, 1);
    const long long begin = clock64();
    while (*static_cast<volatile u32*>(&control->arrived) < expected &&
           clock64() - begin < kPatience) {
      __nanosleep(100);
    }
  }
  __syncthreads();
}
