// The one kernel that the launcher runs: each block says where and when it is and stays until told
// to leave. What it needs of registers and local memory is patched into the compiled image, so it
// must itself need as little as possible.
#include "cuda/probe_abi.h"

namespace {

using tbsched::cuda::BlockRecord;
using tbsched::cuda::BlockState;
using tbsched::cuda::kHoldTickBits;
using tbsched::cuda::kLingerNs;
using tbsched::cuda::ProbeArguments;

constexpr unsigned kWarpThreads = 32;
constexpr unsigned kSleepNs = 2000;  // thousands of blocks poll over one bus

__device__ unsigned smid() {
  unsigned value;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
  return value;
}

__device__ unsigned warpid() {
  unsigned value;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(value));
  return value;
}

__device__ uint64_t global_ns() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

// The state is what the host polls: all that was written before it must be there first.
__device__ void publish(BlockRecord& record, const BlockState state) {
  __threadfence_system();
  *reinterpret_cast<volatile BlockState*>(&record.state) = state;
}

__device__ bool told_to_leave(const uint32_t* const release) {
  return *reinterpret_cast<const volatile uint32_t*>(release) != 0;
}

// Coarse time in 32 bits: one register less than nanoseconds.
__device__ uint32_t hold_ticks() { return static_cast<uint32_t>(global_ns() >> kHoldTickBits); }

__device__ void hold(BlockRecord& record, const ProbeArguments& arguments) {
  record.start_ns = global_ns();
  record.smid = smid();
  publish(record, BlockState::started);

  const uint32_t start = hold_ticks();
  while (!told_to_leave(arguments.release)) {
    if (hold_ticks() - start >= arguments.hold_ticks) {
      record.expired = 1;
      break;
    }
    __nanosleep(kSleepNs);
  }

  const uint64_t end = global_ns();
  record.end_ns = end;
  record.end_smid = smid();
  publish(record, BlockState::ended);
  while (static_cast<uint32_t>(global_ns()) - static_cast<uint32_t>(end) < kLingerNs) {
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    tbsched_probe(const __grid_constant__ ProbeArguments arguments) {
  if (arguments.warp_slots != nullptr && threadIdx.x % kWarpThreads == 0) {
    const unsigned warps = (blockDim.x + kWarpThreads - 1) / kWarpThreads;
    const uint64_t index = uint64_t{blockIdx.x} * warps + threadIdx.x / kWarpThreads;
    arguments.warp_slots[index] = static_cast<int32_t>(warpid());
  }
  if (threadIdx.x == 0) hold(arguments.records[blockIdx.x], arguments);
  __syncthreads();
}
