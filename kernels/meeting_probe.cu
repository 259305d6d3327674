// The probe of launches whose blocks wait for each other, as at a barrier of the whole grid, or of
// several. Its blocks stay after they have met, so that all were resident at the same time, and
// none took the room of another.
#include "block.cuh"

namespace {

// Runs the first thread of a block: it arrives, waits for the other blocks, stays, and leaves.
__device__ void run(const ProbeArguments& arguments) {
  constexpr Sm sm;
  publish(arguments.records[block()].start_ns);
  uint32_t last = Sm::ticks(arguments.waiting);
  uint32_t end = (last + arguments.meeting.wait_ticks) & ~tbsched::cuda::kHasPassed;
  Sm::add_one(arguments.meeting.point->arrived);
  for (;;) {
    tbsched::cuda::meet(sm, arguments, last, end);
    const uint32_t sleep_ns = tbsched::cuda::poll(sm, arguments, last, end);
    if (sleep_ns == tbsched::cuda::kLeave) break;
    __nanosleep(sleep_ns);
  }
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
