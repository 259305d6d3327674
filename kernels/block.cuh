// The parts of a probe's block: writes where and when it is, and stays until released or until its
// time is over.
#pragma once

#include "launcher/probe/probe_abi.h"
#include "launcher/probe/waiting.h"

namespace {

using tbsched::cuda::BlockRecord;
using tbsched::cuda::ProbeArguments;
using tbsched::cuda::Waiting;

constexpr unsigned kWarpThreads = 32;

// Returns the SM of the block.
__device__ unsigned smid() {
  unsigned value;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
  return value;
}

// Returns the slot of the warp on its SM.
__device__ unsigned warpid() {
  unsigned value;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(value));
  return value;
}

// Returns the time of the clock that all SMs share, ns.
__device__ uint64_t global_ns() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

// Writes half a record at once: the time `now`, this SM, and 1. The bus takes it in one piece, so
// no fence is needed.
__device__ void publish(uint64_t& half, const uint64_t now) {
  asm volatile("st.volatile.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(&half),
               "r"(static_cast<uint32_t>(now)), "r"(static_cast<uint32_t>(now >> 32)), "r"(smid()),
               "r"(1)
               : "memory");
}

// Writes half a record with the time of now.
__device__ void publish(uint64_t& half) { publish(half, global_ns()); }

// Returns the number of the block. Reads it each time, since keeping it takes a register.
__device__ unsigned block() {
  unsigned value;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(value));
  return value;
}

// The Machine of waiting.h for a block on an SM.
struct Sm {
  __device__ static unsigned block() { return ::block(); }
  // Returns the time in ticks.
  __device__ static uint32_t ticks(const Waiting& waiting) {
    return static_cast<uint32_t>(global_ns() >> waiting.tick_bits);
  }
  // Returns the record of this block.
  __device__ static BlockRecord& record(const ProbeArguments& arguments) {
    return arguments.records[::block()];
  }
  // Returns the value that the host or another SM wrote last, not a cached one.
  __device__ static uint32_t fresh(const uint32_t& value) {
    return *static_cast<const volatile uint32_t*>(&value);
  }
  __device__ static void store(uint32_t& target, const uint32_t value) {
    *static_cast<volatile uint32_t*>(&target) = value;
  }
  __device__ static uint32_t exchange(uint32_t& target, const uint32_t value) {
    return atomicExch(&target, value);
  }
  // Returns how many ticks the block stays by itself. Reads it each time, since keeping it takes a
  // register.
  __device__ static uint32_t duration(const ProbeArguments& arguments) {
    return arguments.ticks == nullptr ? arguments.same_ticks : fresh(arguments.ticks[block()]);
  }
  // Adds one, and returns the value before. Blocks of several GPUs may count in the same word.
  // atomicAdd_system takes two registers more.
  __device__ static uint32_t add_one(uint32_t& target) {
    uint32_t before;
    asm volatile("atom.add.relaxed.sys.u32 %0, [%1], 1;" : "=r"(before) : "l"(&target) : "memory");
    return before;
  }
};

// Notes the slot of this warp. `slots`: of the run, per block and warp.
__device__ void note_warp_slot(int32_t* const slots) {
  const unsigned warps = (blockDim.x + kWarpThreads - 1) / kWarpThreads;
  const uint64_t index = uint64_t{blockIdx.x} * warps + threadIdx.x / kWarpThreads;
  slots[index] = static_cast<int32_t>(warpid());
}

__device__ void note_warp_slot(const ProbeArguments& arguments) {
  note_warp_slot(arguments.warp_slots);
}

// Returns how many ticks the block stays by itself.
__device__ uint32_t duration_ticks(const ProbeArguments& arguments) {
  return arguments.ticks != nullptr ? arguments.ticks[blockIdx.x] : arguments.same_ticks;
}

// Stays until `end`, or until released. `last`: the tick of the last poll.
template <typename Machine = Sm>
__device__ void stay(const ProbeArguments& arguments, uint32_t& last, const uint32_t end) {
  constexpr Machine sm;
  for (;;) {
    const uint32_t sleep_ns = tbsched::cuda::poll(sm, arguments, last, end);
    if (sleep_ns == tbsched::cuda::kLeave) break;
    __nanosleep(sleep_ns);
  }
}

// Stays for linger_ns after the block has announced that it leaves.
__device__ void linger(const ProbeArguments& arguments) {
  const auto published = static_cast<uint32_t>(global_ns());
  while (static_cast<uint32_t>(global_ns()) - published < arguments.waiting.linger_ns) {
  }
}

}  // namespace
