// Algorithm 1 of the ICCD 2023 paper as printed. Line 26 takes the least of blocks (limit_b,
// limit_s) and warps (limit_w), and the w of line 4 is never used. So it also names SMs without
// room for a block. Such a block goes to the best of the SMs that have room, or waits.
// Line 25 has TB.config_s of an idle TPC without a divisor; it is read as divided by s.
// The order of ties (line 9) is that of the device as this policy's row sees it.
#include "tbsched/policy/policy.h"

namespace tbsched {
namespace {

class Algorithm1Printed final : public Policy {
 public:
  size_t place(const Demand& demand, const GpuState& gpu, Rooms&, const Commit& commit,
               const std::span<int32_t> sms) override {
    // The room for blocks of one warp is the least of slots, warps and shared memory.
    Demand of_one_warp = demand;
    of_one_warp.warps = 1;
    return place_one_by_one(sms, commit, [&] {
      int32_t max_thread_blocks = 0;
      int32_t smid = -1;
      for (const int32_t sm : gpu.spec().sm_preference) {
        if (gpu.room(sm, demand).blocks == 0) continue;
        const int32_t thread_blocks = gpu.room(sm, of_one_warp).blocks;
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

StartPolicy make_algorithm1_printed(const Device&) {
  return [](InitialState) { return std::make_unique<Algorithm1Printed>(); };
}

}  // namespace tbsched
