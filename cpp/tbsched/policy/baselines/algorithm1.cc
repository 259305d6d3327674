// Algorithm 1 of the ICCD 2023 paper, repaired: for each block, counts on every SM how many such
// blocks fit; the first SM with the most gets it. Slow on purpose: faster policies are checked
// against it.
//
// The repair: line 26 divides limit_w, which is in warps, by w, the warps of a block.
// Cases 1.2, 1.3 and 2.2 of the paper need it. algorithm1_printed does without. Ties go in the
// device's own order, which on the paper's GPU is that of line 9.
//
// On a device with a threshold of shared memory (RTAS 2020, equation 1), less than that does not
// count: SMs are compared as if neither the block nor what they hold had any.
#include "tbsched/policy/policy.h"

namespace tbsched {
namespace {

// Returns how many blocks count as fitting the SM; 0: it has no room.
int32_t blocks_that_count(const GpuState& gpu, const int32_t sm, const Demand& demand) {
  const int32_t blocks = gpu.room(sm, demand).blocks;
  const int32_t shared_memory = gpu.shared_memory_taken(sm) + demand.shared_memory;
  if (blocks == 0 || shared_memory >= gpu.spec().shared_memory_threshold) return blocks;
  Demand without = demand;
  without.shared_memory = 0;
  return gpu.room(sm, without).blocks;
}

class Algorithm1 final : public Policy {
 public:
  size_t place(const Demand& demand, const GpuState& gpu, Rooms&, const Commit& commit,
               const std::span<int32_t> sms) override {
    return place_one_by_one(sms, commit, [&] {
      int32_t max_thread_blocks = 0;
      int32_t smid = -1;
      for (const int32_t sm : gpu.spec().sm_preference) {
        const int32_t thread_blocks = blocks_that_count(gpu, sm, demand);
        if (thread_blocks > max_thread_blocks) {
          max_thread_blocks = thread_blocks;
          smid = sm;
        }
      }
      return smid;
    });
  }
};

}  // namespace

StartPolicy make_algorithm1(const Device&) {
  return [](InitialState) { return std::make_unique<Algorithm1>(); };
}

}  // namespace tbsched
