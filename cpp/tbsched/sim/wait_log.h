// What launches have waited for.
//
// Each wait is noted when it ends, by the GPU's clock, so that the waits of a launch follow each
// other from when it reaches the GPU until its last block is placed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/program/refusal.h"
#include "tbsched/program/timeline.h"
#include "tbsched/sim/clock.h"
#include "tbsched/sim/hardware_queues.h"
#include "tbsched/sim/op_graph.h"

namespace tbsched {

class WaitLog {
 public:
  // The clock outlives it.
  explicit WaitLog(const Clock& clock) : clock_(clock) {}

  // Before anything waits: another launch.
  void add_launch() { blocks_.push_back({}); }
  // A launch has waited for this on its way to the block scheduler, which gets it now.
  void note_way(int32_t launch, int32_t operation, const OpGraph& operations,
                const HardwareQueues& queues);
  // The blocks of a launch wait for something else than before from now on, or for nothing.
  void note(int32_t launch, Refusal cause, int32_t behind);
  // What the blocks of a launch wait for.
  Refusal cause(const int32_t launch) const { return blocks_[launch].cause; }

  size_t size() const { return waits_.size(); }
  // By launch and time.
  std::vector<Wait> take() &&;

 private:
  struct Blocks {
    Refusal cause = Refusal::none;
    int32_t behind = -1;
    int64_t since_ns = 0;
  };

  const Clock& clock_;
  std::vector<Blocks> blocks_;  // of each launch
  std::vector<Wait> waits_;
};

}  // namespace tbsched
