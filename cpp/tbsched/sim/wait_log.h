// The log of what launches have waited for.
//
// A wait is logged when it ends, by the GPU's clock. So the waits of a launch follow each other
// from when it reaches the GPU until its last block is placed.
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

  // Adds a launch. Call it before anything waits.
  void add_launch() { blocks_.push_back({}); }
  // Logs the waits of a launch that the block scheduler gets now: all since it reached the GPU. The
  // last of them goes on until note(), which may come after the turns of other processes.
  void log_waits_before_placement(int32_t launch, int32_t operation, const OpGraph& operations,
                                  const HardwareQueues& queues);
  // Notes that the blocks of a launch wait for another cause from now on, or for none.
  // `limiters`: where the cause is of an SM, all that refuses a block there.
  void note(int32_t launch, Refusal cause, int32_t behind, Refusals limiters = 0);
  // Returns the cause for which a launch waits.
  Refusal cause(const int32_t launch) const { return blocks_[launch].cause; }
  // Returns what a launch waits behind for that cause, as Wait::behind; -1: nothing.
  int32_t behind(const int32_t launch) const { return blocks_[launch].behind; }

  size_t size() const { return waits_.size(); }
  // Returns the waits by launch and time.
  std::vector<Wait> take() &&;

 private:
  // Why the blocks of a launch wait.
  struct Blocks {
    Refusal cause = Refusal::none;
    int32_t behind = -1;
    int64_t since_ns = 0;
    Refusals limiters = 0;
  };

  const Clock& clock_;
  std::vector<Blocks> blocks_;  // by launch
  std::vector<Wait> waits_;
};

}  // namespace tbsched
