// Between a simulator that distributes thread blocks itself and the scheduler:
// docs/how-to/simulators.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tbsched/engine/block_scheduler.h"

// Kernels are named by the simulator's own number, blocks that run by their SM and the slot there.
class Adapter {
 public:
  // Starts a kernel's next block on an SM; returns the slot that the SM gave it.
  using Start = std::function<int32_t(int32_t sm, int32_t kernel, int32_t block)>;

  // The model outlives it.
  explicit Adapter(const tbsched::Model& model) : scheduler_(model, {}) {}

  // The kernel's blocks may start from now on. Throws std::invalid_argument for one that never can.
  void launch(int32_t kernel, const tbsched::Launch& launch);
  // Starts every block that has room. Blocks of a kernel start in order. Returns how many did.
  int32_t distribute(const Start& start);
  // A block has ended. Throws std::invalid_argument if none runs there.
  void leave(int32_t sm, int32_t slot);

 private:
  struct Running {
    int32_t launch;
    tbsched::Footprint footprint;
  };

  tbsched::BlockScheduler scheduler_;
  std::vector<int32_t> kernels_;                            // of each launch of the scheduler
  std::map<std::pair<int32_t, int32_t>, Running> running_;  // by SM and slot
};
