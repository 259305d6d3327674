// The one kernel that the launcher runs: each block says where and when it is and stays until told
// to leave or until its time is over. What it needs of registers and local memory is patched into
// the compiled image, so it must itself need as little as possible.
#include "cuda/probe_abi.h"

namespace {

using tbsched::cuda::BlockRecord;
using tbsched::cuda::BlockState;
using tbsched::cuda::kTimed;
using tbsched::cuda::ProbeArguments;
using tbsched::cuda::Waiting;

constexpr unsigned kWarpThreads = 32;

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

// Where the host reads it while blocks run, all that was written before must be there first.
__device__ void publish(BlockRecord& record, const BlockState state, const Waiting& waiting) {
  if (waiting.linger_ns != 0) __threadfence_system();
  *reinterpret_cast<volatile BlockState*>(&record.state) = state;
}

// As the host, or another SM, wrote it a moment ago.
__device__ uint32_t fresh(const uint32_t& value) {
  return *reinterpret_cast<const volatile uint32_t*>(&value);
}

__device__ bool released(const ProbeArguments& arguments) {
  if (fresh(*arguments.relay) == arguments.run) return true;
  // As good as drawn at random, and an atomic counter would take four registers more.
  if (((clock() >> 4) & arguments.ask_mask) != 0) return false;
  if (fresh(*arguments.release) != arguments.run) return false;
  *reinterpret_cast<volatile uint32_t*>(arguments.relay) = arguments.run;
  return true;
}

__device__ uint32_t ticks(const Waiting& waiting) {
  return static_cast<uint32_t>(global_ns() >> waiting.tick_bits);
}

__device__ void wait(const uint32_t end, const ProbeArguments& arguments) {
  const Waiting& waiting = arguments.waiting;
  for (;;) {
    const uint32_t left = end - ticks(waiting);
    if (static_cast<int32_t>(left) <= 0) return;
    if (left > waiting.asks_until) {
      if (released(arguments)) return;
      __nanosleep(waiting.sleep_ns);
    } else {
      // Half of what is left, in nanoseconds: it may sleep twice as long as it is asked to.
      __nanosleep(left << (kTimed.tick_bits - 1));
    }
  }
}

__device__ void stay(BlockRecord& record, const ProbeArguments& arguments) {
  record.start_ns = global_ns();
  record.smid = smid();
  const uint32_t start = ticks(arguments.waiting);
  const uint32_t end =
      start + (arguments.ticks != nullptr ? arguments.ticks[blockIdx.x] : arguments.same_ticks);
  publish(record, BlockState::started, arguments.waiting);

  wait(end, arguments);

  record.end_ns = global_ns();
  record.end_smid = smid();
  publish(record, BlockState::ended, arguments.waiting);
  const auto published = static_cast<uint32_t>(global_ns());
  while (static_cast<uint32_t>(global_ns()) - published < arguments.waiting.linger_ns) {
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
  if (threadIdx.x == 0) stay(arguments.records[blockIdx.x], arguments);
  __syncthreads();
}
