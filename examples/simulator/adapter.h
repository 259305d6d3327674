// Between the scheduler and a simulator that distributes thread blocks itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tbsched/sim/block_scheduler.h"

// Kernels have the simulator's own numbers. A block that runs is named by its SM and its slot
// there.
class Adapter final : private tbsched::Observer {
 public:
  // Starts a kernel's next block on an SM; returns the slot that the SM gave it.
  using Start = std::function<int32_t(int32_t sm, int32_t kernel, int32_t block)>;

  // The model outlives it.
  Adapter(const tbsched::Model& model, Start start)
      : scheduler_(model, {}), start_(std::move(start)) {}

  // The kernel's blocks may start from now on. Throws std::invalid_argument for one that never can.
  void launch(int32_t kernel, const tbsched::Launch& launch);
  // Starts every block that has room now, those of a kernel in order.
  void distribute() { scheduler_.place(*this); }
  // A block has ended. Throws std::invalid_argument if none runs there.
  void leave(int32_t sm, int32_t slot);

 private:
  struct Running {
    int32_t launch;
    tbsched::Footprint footprint;
  };

  void on_place(const tbsched::PlacedBlocks& placed) override;

  tbsched::BlockScheduler scheduler_;
  Start start_;
  std::vector<int32_t> kernels_;                            // of each launch of the scheduler
  std::map<std::pair<int32_t, int32_t>, Running> running_;  // by SM and slot
};
