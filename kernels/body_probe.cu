// The probe of bodies of conditional nodes. Each run writes records of its own. The first block of
// one of a body's kernels decides whether the body runs again, or whether that of a conditional
// node beside it does. The driver provides the function that does so, and a call takes registers.
#include "block.cuh"

namespace {

using tbsched::cuda::Decision;

// The Machine of waiting.h for a block in one run of the body.
struct Running : Sm {
  // Returns the index of the record of this run.
  __device__ static uint32_t index(const ProbeArguments& arguments) {
    return fresh(arguments.runs.record[::block()]);
  }
  // Returns the record of this run.
  __device__ static BlockRecord& record(const ProbeArguments& arguments) {
    return arguments.records[index(arguments)];
  }
};

// Decides, in the first block, for each of the conditional nodes whether its body runs again.
__device__ void decide(const ProbeArguments& arguments) {
  if (block() != 0) return;
  // Unrolled, since a counter that is kept over the calls takes a register.
#pragma unroll
  for (uint32_t index = 0; index < sizeof(arguments.runs.decides) / sizeof(Decision); ++index) {
    if (index >= arguments.runs.decisions) return;
    const uint32_t runs = Running::index(arguments) / arguments.runs.apart + 1;
    const uint32_t every = arguments.runs.decides[index].every;
    cudaGraphSetConditional(arguments.runs.decides[index].handle, every == 0 || runs % every != 0);
  }
}

// Runs the first thread of a block: it writes when it starts, decides, stays, and writes when it
// ends.
__device__ void run(const ProbeArguments& arguments) {
  const uint64_t start_ns = global_ns();
  publish(Running::record(arguments).start_ns, start_ns);
  uint32_t last = Running::ticks(arguments.waiting);
  const uint32_t end = last + duration_ticks(arguments);
  decide(arguments);
  stay<Running>(arguments, last, end);
  publish(Running::record(arguments).end_ns);
  linger(arguments);
}

// Notes the slot of this warp in the memory of this run.
__device__ void note_warp_slot_of_run(const ProbeArguments& arguments) {
  constexpr uint32_t kSlots = sizeof(BlockRecord) / sizeof(int32_t);  // in the room of a record
  note_warp_slot(arguments.warp_slots + (Running::index(arguments) - block()) * kSlots);
}

}  // namespace

// Runs a block in one run of the body. All threads leave together; the block then moves on to the
// record of its next run.
extern "C" __global__ void __launch_bounds__(1024)
    tbsched_probe(const __grid_constant__ ProbeArguments arguments) {
  if (arguments.warp_slots != nullptr && threadIdx.x % kWarpThreads == 0) {
    note_warp_slot_of_run(arguments);
  }
  if (threadIdx.x == 0) run(arguments);
  __syncthreads();
  if (threadIdx.x == 0) arguments.runs.record[block()] += arguments.runs.apart;
}
