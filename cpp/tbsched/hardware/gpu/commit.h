// Commits blocks of a launch to the SMs that a policy chooses, and keeps their footprints.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/gpu/gpu_state.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/hardware/sm/footprint.h"

namespace tbsched {

class Commit {
 public:
  // `one_by_one`: each block has its own footprint; else blocks that go to an SM together share
  // one. All arguments outlive it.
  Commit(GpuState& gpu, const Demand& demand, const bool one_by_one,
         std::vector<Footprint>& footprints)
      : gpu_(gpu), demand_(demand), one_by_one_(one_by_one), footprints_(footprints) {}

  // Places this many blocks on the SM, and appends their footprints.
  void operator()(const int32_t sm, const int32_t blocks) const {
    if (!one_by_one_) {
      footprints_.push_back(gpu_.commit(sm, demand_, blocks));
      return;
    }
    for (int32_t block = 0; block < blocks; ++block) {
      footprints_.push_back(gpu_.commit(sm, demand_, 1));
    }
  }

 private:
  GpuState& gpu_;
  const Demand& demand_;
  bool one_by_one_;
  std::vector<Footprint>& footprints_;
};

}  // namespace tbsched
