// Kernels of one resource each, and mixtures. All warps do chunks of the same work over and over,
// for so many clocks or until they are told to stop. What a block gets done per clock, alone and
// beside others, is its rate.
#include "frame.cuh"

namespace {

constexpr long long kLongest = 4000000;  // clocks, of a kernel that nobody stops

struct Memory {
  char* at;
  u32 mask;  // of bytes, a power of two less 1
  u32 salt;  // a different one in each run
};

__device__ inline u32 bits(const u32 value) { return value; }
__device__ inline u32 bits(const float value) { return __float_as_uint(value); }
__device__ inline u32 bits(const double value) { return __double2hiint(value); }

template <int kChains, int kSteps>
struct Fma {
  float a[kChains];
  __device__ explicit Fma(Memory) {
    for (int k = 0; k < kChains; ++k) a[k] = threadIdx.x + k;
  }
  __device__ void chunk() {
#pragma unroll 4
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int k = 0; k < kChains; ++k) {
        asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(a[k]) : "f"(0.999f), "f"(0.5f));
      }
    }
  }
  __device__ u32 value() const {
    u32 all = 0;
    for (int k = 0; k < kChains; ++k) all ^= bits(a[k]);
    return all;
  }
};

template <int kChains, int kSteps>
struct Fma64 {
  double a[kChains];
  __device__ explicit Fma64(Memory) {
    for (int k = 0; k < kChains; ++k) a[k] = threadIdx.x + k;
  }
  __device__ void chunk() {
#pragma unroll 4
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int k = 0; k < kChains; ++k) {
        asm volatile("fma.rn.f64 %0, %0, %1, %2;" : "+d"(a[k]) : "d"(0.999), "d"(0.5));
      }
    }
  }
  __device__ u32 value() const {
    u32 all = 0;
    for (int k = 0; k < kChains; ++k) all ^= bits(a[k]);
    return all;
  }
};

template <int kChains, int kSteps>
struct Logic {
  u32 a[kChains];
  __device__ explicit Logic(Memory) {
    for (int k = 0; k < kChains; ++k) a[k] = threadIdx.x + k;
  }
  __device__ void chunk() {
#pragma unroll 4
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int k = 0; k < kChains; ++k) {
        asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(a[k]) : "r"(threadIdx.x), "r"(a[0]));
      }
    }
  }
  __device__ u32 value() const {
    u32 all = 0;
    for (int k = 0; k < kChains; ++k) all ^= bits(a[k]);
    return all;
  }
};

template <int kChains, int kSteps>
struct Multiply {
  u32 a[kChains];
  __device__ explicit Multiply(Memory) {
    for (int k = 0; k < kChains; ++k) a[k] = threadIdx.x + k;
  }
  __device__ void chunk() {
#pragma unroll 4
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int k = 0; k < kChains; ++k) {
        asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(a[k]) : "r"(threadIdx.x), "r"(a[k]));
      }
    }
  }
  __device__ u32 value() const {
    u32 all = 0;
    for (int k = 0; k < kChains; ++k) all ^= bits(a[k]);
    return all;
  }
};

template <int kChains, int kSteps>
struct Special {
  float a[kChains];
  __device__ explicit Special(Memory) {
    for (int k = 0; k < kChains; ++k) a[k] = 1.0f / (threadIdx.x + k + 1);
  }
  __device__ void chunk() {
#pragma unroll 4
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int k = 0; k < kChains; ++k) asm volatile("cos.approx.ftz.f32 %0, %0;" : "+f"(a[k]));
    }
  }
  __device__ u32 value() const {
    u32 all = 0;
    for (int k = 0; k < kChains; ++k) all ^= bits(a[k]);
    return all;
  }
};

template <int kChains, int kSteps>
struct Tensor {
  float d[kChains][4];
  __device__ explicit Tensor(Memory) {
    for (int k = 0; k < kChains; ++k) {
      for (int j = 0; j < 4; ++j) d[k][j] = 0;
    }
  }
  __device__ void chunk() {
    const u32 a = threadIdx.x & 1;
#pragma unroll 2
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int k = 0; k < kChains; ++k) {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, "
            "{%4,%4}, {%0,%1,%2,%3};"
            : "+f"(d[k][0]), "+f"(d[k][1]), "+f"(d[k][2]), "+f"(d[k][3])
            : "r"(a));
      }
    }
  }
  __device__ u32 value() const {
    float sum = 0;
    for (int k = 0; k < kChains; ++k) sum += d[k][0] + d[k][1] + d[k][2] + d[k][3];
    return bits(sum);
  }
};

// kStride words from lane to lane: 1 has no bank conflicts, 4 has four lanes to a bank.
template <int kStride, int kSteps>
struct Shared {
  u32 at;
  u32 sum = 0;
  __device__ explicit Shared(Memory) {
    __shared__ u32 words[2048];
    for (int k = threadIdx.x; k < 2048; k += blockDim.x) words[k] = 0;
    const u32 base = static_cast<u32>(__cvta_generic_to_shared(words));
    at = base + 4 * (threadIdx.x % 32 * kStride);
  }
  __device__ void chunk() {
#pragma unroll 2
    for (int step = 0; step < kSteps; ++step) {
      u32 v[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v[k]) : "r"(at + 512 * k + (sum & 4)));
      }
#pragma unroll
      for (int k = 0; k < 8; ++k) sum += v[k];
    }
  }
  __device__ u32 value() const { return sum; }
};

template <int kSteps>
struct SharedAtomics {
  u32 at;
  u32 x = threadIdx.x;
  __device__ explicit SharedAtomics(Memory) {
    __shared__ u32 bins[256];
    at = static_cast<u32>(__cvta_generic_to_shared(bins));
  }
  __device__ void chunk() {
    for (int step = 0; step < kSteps; ++step) {
      x = x * 1664525u + 1013904223u;
      asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(at + (x >> 24) * 4), "r"(1));
    }
  }
  __device__ u32 value() const { return x; }
};

__device__ inline uint4 load_far(const char* at) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}

// What all SMs hold in their L1.
template <int kSteps>
struct NearLoads {
  const char* at;
  u32 sum = 0;
  __device__ explicit NearLoads(Memory memory) : at(memory.at + threadIdx.x % 32 * 4) {}
  __device__ void chunk() {
#pragma unroll 2
    for (int step = 0; step < kSteps; ++step) {
      u32 v[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v[k]) : "l"(at + 1024 * k + (sum & 4)));
      }
#pragma unroll
      for (int k = 0; k < 8; ++k) sum += v[k];
    }
  }
  __device__ u32 value() const { return sum; }
};

// Every warp goes through its own part of memory, 2 KiB at a time; kReads and kWrites.
template <bool kReads, bool kWrites, int kSteps>
struct Stream {
  Memory memory;
  u32 at;
  uint4 sum = {0, 0, 0, 0};
  __device__ explicit Stream(Memory given) : memory(given) {
    const u32 warps = gridDim.x * (blockDim.x / 32);
    const u32 warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const u64 part = (static_cast<u64>(memory.mask) + 1) / warps * warp;
    at = static_cast<u32>(part) / 2048 * 2048 + hashed(memory.salt) / 2048 * 2048;
  }
  __device__ void chunk() {
    const u32 lane = threadIdx.x % 32 * 16;
    for (int step = 0; step < kSteps; ++step) {
      char* const from = memory.at + (at & memory.mask) + lane;
      uint4 v[4] = {sum, sum, sum, sum};
      if (kReads) {
#pragma unroll
        for (int k = 0; k < 4; ++k) v[k] = load_far(from + 512 * k);
      }
      if (kWrites) {
        // A copy writes elsewhere: half of the memory further on.
        char* const to =
            kReads ? memory.at + ((at + memory.mask / 2 + 1) & memory.mask) + lane : from;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to + 512 * k), "r"(v[k].x),
                       "r"(v[k].y), "r"(v[k].z), "r"(v[k].w));
        }
      } else {
#pragma unroll
        for (int k = 0; k < 4; ++k) sum.x += v[k].x + v[k].y + v[k].z + v[k].w;
      }
      at += 2048;
    }
    at += sum.x;  // memory is zero
  }
  __device__ u32 value() const { return at; }
};

// Each address comes from the last load; all lanes go to one sector, or each to its own.
template <bool kOwnSectors, int kSteps>
struct Chase {
  Memory memory;
  u32 x;
  __device__ explicit Chase(Memory given) : memory(given) {
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    x = hashed(memory.salt + (kOwnSectors ? thread : thread / 32));
  }
  __device__ void chunk() {
    for (int step = 0; step < kSteps; ++step) {
      u32 v;
      asm volatile("ld.global.cg.u32 %0, [%1];"
                   : "=r"(v)
                   : "l"(memory.at + ((x >> 3) & memory.mask & ~31u)));
      x = x * 1664525u + 1013904223u + v;
    }
  }
  __device__ u32 value() const { return x; }
};

template <class First, class Second>
struct Mix {
  First first;
  Second second;
  __device__ explicit Mix(Memory memory) : first(memory), second(memory) {}
  __device__ void chunk() {
    first.chunk();
    second.chunk();
  }
  __device__ u32 value() const { return first.value() ^ second.value(); }
};

// Whoever computes it must have done the work. The value is hardly ever this one.
__device__ inline void use(const u32 value, Record* records) {
  if (value == 0x9bad5eedu) records->rate = value;
}

// roles: by SM, whether blocks do anything there; null: everywhere. clocks: 0 is until told to
// stop.
template <class Body>
__device__ void run(Record* records, Control* control, const unsigned char* roles, Memory memory,
                    const long long clocks, const u32 expected) {
  __shared__ float rate;
  if (threadIdx.x == 0) rate = 0;
  Body body(memory);
  meet(control, expected);
  const u64 start_ns = now_ns();
  const long long begin = clock64();
  if (!roles || roles[this_sm()]) {
    u32 chunks = 0;
    const long long most = clocks ? clocks : kLongest;
    long long spent = 0;
    bool go_on = true;
    while (go_on) {
      u32 stop = 0;
      if (!clocks)
        asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(stop) : "l"(&control->stop));
      body.chunk();
      ++chunks;
      spent = clock64() - begin;
      go_on = spent < most && !stop;
    }
    if (threadIdx.x % 32 == 0) atomicAdd(&rate, 1e6f * chunks / spent);
    use(body.value(), records);
  }
  __syncthreads();
  if (threadIdx.x == 0) records[blockIdx.x] = {start_ns, now_ns(), rate, this_sm()};
}

}  // namespace

#define KERNEL(name, ...)                                                                         \
  extern "C" __global__ void name(Record* records, Control* control, const unsigned char* roles,  \
                                  char* at, u32 mask, u32 salt, long long clocks, u32 expected) { \
    run<__VA_ARGS__>(records, control, roles, Memory{at, mask, salt}, clocks, expected);          \
  }

KERNEL(fma1, Fma<1, 256>)
KERNEL(fma4, Fma<4, 128>)
KERNEL(fp64_1, Fma64<1, 128>)
KERNEL(fp64_4, Fma64<4, 64>)
KERNEL(logic1, Logic<1, 256>)
KERNEL(logic4, Logic<4, 128>)
KERNEL(multiply4, Multiply<4, 128>)
KERNEL(special4, Special<4, 64>)
KERNEL(tensor4, Tensor<4, 32>)
KERNEL(shared, Shared<1, 32>)
KERNEL(shared_banks, Shared<4, 16>)
KERNEL(shared_atomics, SharedAtomics<64>)
KERNEL(near_loads, NearLoads<32>)
KERNEL(reads, Stream<true, false, 4>)
KERNEL(writes, Stream<false, true, 4>)
KERNEL(copies, Stream<true, true, 4>)
KERNEL(chase, Chase<false, 8>)
KERNEL(gather, Chase<true, 8>)
KERNEL(fma_shared, Mix<Fma<4, 16>, Shared<1, 4>>)
KERNEL(fma_reads, Mix<Fma<4, 64>, Stream<true, false, 1>>)
KERNEL(fma_special, Mix<Fma<4, 32>, Special<4, 4>>)
KERNEL(fp64_logic, Mix<Fma64<4, 16>, Logic<4, 32>>)
KERNEL(logic_shared, Mix<Logic<4, 16>, Shared<1, 4>>)
KERNEL(special_copies, Mix<Special<4, 8>, Stream<true, true, 1>>)
KERNEL(shared_reads, Mix<Shared<1, 4>, Stream<true, false, 1>>)
KERNEL(fp64_gather, Mix<Fma64<4, 8>, Chase<true, 1>>)

// Half of the warps of a block do one thing, half another; so many chunks each.
template <class First, class Second>
__device__ void halves(Record* records, const u32 chunks) {
  First first(Memory{});
  Second second(Memory{});
  __syncthreads();
  const u64 start_ns = now_ns();
  if (threadIdx.x / 32 % 8 < 4) {
    for (u32 k = 0; k < chunks; ++k) first.chunk();
  } else {
    for (u32 k = 0; k < chunks; ++k) second.chunk();
  }
  use(first.value() ^ second.value(), records);
  __syncthreads();
  if (threadIdx.x == 0) records[blockIdx.x] = {start_ns, now_ns(), 0, this_sm()};
}

using Float32 = Fma<4, 64>;
using Float64 = Fma64<4, 64>;
using Integer = Logic<4, 64>;
using Product = Multiply<4, 64>;
extern "C" __global__ void halves_fp64_fp64(Record* records, u32 chunks) {
  halves<Float64, Float64>(records, chunks);
}
extern "C" __global__ void halves_fp64_logic(Record* records, u32 chunks) {
  halves<Float64, Integer>(records, chunks);
}
extern "C" __global__ void halves_fp64_multiply(Record* records, u32 chunks) {
  halves<Float64, Product>(records, chunks);
}
extern "C" __global__ void halves_fp32_fp32(Record* records, u32 chunks) {
  halves<Float32, Float32>(records, chunks);
}
extern "C" __global__ void halves_fp32_logic(Record* records, u32 chunks) {
  halves<Float32, Integer>(records, chunks);
}
extern "C" __global__ void halves_fp32_fp64(Record* records, u32 chunks) {
  halves<Float32, Float64>(records, chunks);
}
extern "C" __global__ void halves_logic_logic(Record* records, u32 chunks) {
  halves<Integer, Integer>(records, chunks);
}

// Before and after what is timed in a stream; the first waits until everything beside it is there.
extern "C" __global__ void mark_begin(Record* record, Control* control, u32 expected) {
  meet(control, expected);
  record->start_ns = now_ns();
}

extern "C" __global__ void mark_end(Record* record, Control* control) {
  record->end_ns = now_ns();
  *static_cast<volatile u32*>(&control->stop) = 1;
}

// Holds up what comes after it.
extern "C" __global__ void gate(long long clocks) {
  const long long begin = clock64();
  while (clock64() - begin < clocks) __nanosleep(100);
}
