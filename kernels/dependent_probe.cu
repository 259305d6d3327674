// The probe of programmatic dependent launches, for compute capability 9.0 and later. A block
// triggers, or waits for the work before it in the stream, or both. It needs more registers than
// the plain probe, so only launches that do either run it. Compiled for at most 16: an SM gives no
// warp fewer.
#include "block.cuh"

namespace {

using tbsched::cuda::Step;

// Lets dependents of the launch start as far as this thread is concerned.
__device__ void trigger() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Waits for the end of the work before the launch in its stream.
__device__ void wait_for_primary() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

}  // namespace

// Goes through the steps of a block, and stays. The first thread keeps the time, and all others
// wait for it at the barriers: a block has triggered when each of its threads has.
extern "C" __global__ void __launch_bounds__(1024)
    tbsched_probe(const __grid_constant__ ProbeArguments arguments) {
  if (arguments.warp_slots != nullptr && threadIdx.x % kWarpThreads == 0) note_warp_slot(arguments);
  const bool keeps_time = threadIdx.x == 0;
  uint32_t last = 0;
  uint32_t start = 0;
  if (keeps_time) {
    publish(arguments.records[block()].start_ns);
    start = last = Sm::ticks(arguments.waiting);
  }
#pragma unroll
  for (const Step& step : arguments.steps) {
    if (step.kind == Step::kNone || step.ticks > Sm::duration(arguments)) break;
    if (keeps_time) stay(arguments, last, start + step.ticks);
    __syncthreads();
    if (step.kind == Step::kTrigger) {
      trigger();
    } else if (keeps_time) {
      wait_for_primary();
      const uint32_t now = Sm::ticks(arguments.waiting);
      start += now - last;
      last = now;
    }
  }
  if (keeps_time) {
    stay(arguments, last, start + Sm::duration(arguments));
    publish(arguments.records[block()].end_ns);
  }
  __syncthreads();
}
