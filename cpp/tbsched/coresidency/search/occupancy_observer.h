// The resident and waiting blocks of a play.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tbsched/sim/observer.h"

namespace tbsched {

// Observes whether the launches so far are resident whole, and why not.
class OccupancyObserver final : public Observer {
 public:
  struct Launch {
    int32_t waiting;                // number of blocks
    std::vector<int32_t> sms = {};  // of its blocks, in the order of placement
    Refusal cause = Refusal::none;  // of the last refusal
    int32_t behind = -1;            // the launch that held it up then, or -1
  };

  void on_launch(int32_t, const int32_t blocks, const Demand&, const GpuState& gpu) override {
    launches_.push_back({blocks});
    gpu_ = &gpu;
  }
  void on_place(const PlacedBlocks& placed) override {
    Launch& launch = launches_[placed.launch];
    launch.waiting -= static_cast<int32_t>(placed.sms.size());
    launch.sms.insert(launch.sms.end(), placed.sms.begin(), placed.sms.end());
  }
  void on_refuse(const int32_t launch, const Refusal cause, const int32_t behind) override {
    launches_[launch].cause = cause;
    launches_[launch].behind = behind;
  }

  const std::vector<Launch>& launches() const { return launches_; }
  // Returns the current state of the GPU; nullptr before the first launch.
  const GpuState* gpu() const { return gpu_; }
  // Returns whether no block waits.
  bool all_resident() const {
    return std::ranges::all_of(launches_, [](const Launch& launch) { return launch.waiting == 0; });
  }

 private:
  std::vector<Launch> launches_;
  const GpuState* gpu_ = nullptr;
};

}  // namespace tbsched
