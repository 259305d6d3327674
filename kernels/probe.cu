// The kernel that the launcher runs: each block stays until released or until its time is over. Its
// numbers of registers and local memory are patched into the compiled image, so it must itself need
// as little as possible.
#include "block.cuh"

namespace {

// Runs the first thread of a block: it writes when it starts, stays, and writes when it ends.
__device__ void run(const ProbeArguments& arguments) {
  publish(arguments.records[block()].start_ns);
  uint32_t last = Sm::ticks(arguments.waiting);
  stay(arguments, last, last + duration_ticks(arguments));
  publish(arguments.records[block()].end_ns);
  linger(arguments);
}

}  // namespace

// Runs a block. All threads leave together, as the others wait for the first at the barrier.
extern "C" __global__ void __launch_bounds__(1024)
    tbsched_probe(const __grid_constant__ ProbeArguments arguments) {
  if (arguments.warp_slots != nullptr && threadIdx.x % kWarpThreads == 0) note_warp_slot(arguments);
  if (threadIdx.x == 0) run(arguments);
  __syncthreads();
}
