// The launches whose blocks wait for room, placing them, and blocks leaving. It knows no time: an
// engine says when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/refusal.h"
#include "model/sequence.h"
#include "policy/launch_order.h"
#include "policy/model.h"
#include "policy/policy.h"
#include "sm/footprint.h"
#include "sm/gpu_state.h"
#include "sm/rooms.h"

namespace tbsched {

class BlockScheduler {
 public:
  // How blocks of a launch leave that were placed at once: all together, or one by one.
  enum class Leaving : uint8_t { together, one_by_one };

  // Blocks of a launch that were placed at once. Valid until the next are.
  struct Placed {
    int32_t launch;
    int32_t first_block;
    std::span<const int32_t> sms;  // in the order of the blocks
    // Of those that leave one by one: each block's, in order. Whoever wants to keep them may swap
    // them for other memory.
    std::vector<Footprint>& footprints;
  };

  // What an engine is asked and told while launches are considered.
  struct Hooks {
    // Why the launch may not be considered yet; none: it may.
    std::function<Refusal(int32_t launch)> gate;
    std::function<void(const Placed& placed)> placed;
    // Blocks of the launch are left; `behind` is the launch that holds it up, or -1.
    std::function<void(int32_t launch, Refusal refusal, int32_t behind)> refused;
    // Where the SMs of the launch's blocks from this one on are to be written; without it, or where
    // it names nothing, into a buffer of the scheduler.
    std::function<std::span<int32_t>(int32_t launch, int32_t first_block)> memory = {};
  };

  // On an idle GPU. The model outlives it.
  BlockScheduler(const Model& model, InitialState state);

  const GpuState& gpu() const { return gpu_; }
  const Demand& demand(const int32_t launch) const { return launches_[launch].demand; }
  bool placed_whole(const int32_t launch) const { return launches_[launch].waiting() == 0; }

  // Launches are numbered as they are added. Throws std::invalid_argument for one that can never
  // fit; nothing has changed then.
  int32_t add(const Launch& launch, Leaving leaving);
  // Its blocks wait for room from now on.
  void enqueue(int32_t launch);
  // Considers every launch that waits once, in the order of the device.
  void place(const Hooks& hooks);
  // The blocks of a footprint exit.
  void leave(int32_t launch, const Footprint& footprint);

 private:
  struct Kernel {
    Demand demand;
    int32_t blocks;
    int32_t priority;
    Leaving leaving;
    bool in_gpcs_only;  // clusters that no singleton TPC takes
    int32_t placed = 0;

    int32_t waiting() const { return blocks - placed; }
  };

  void check_cluster(const Launch& launch, const std::string& who) const;
  Refusal try_to_place(int32_t launch, const Hooks& hooks);
  std::span<int32_t> memory(int32_t launch, const Hooks& hooks);
  void sort_by_block(std::span<const int32_t> sms);

  const Model& model_;
  GpuState gpu_;
  LaunchOrder order_;
  std::unique_ptr<Policy> policy_;
  std::vector<Kernel> launches_;
  std::vector<int32_t> waiting_;  // launches with blocks to place, the first to consider first

  // Of the blocks that are placed at once.
  Rooms rooms_;
  std::vector<int32_t> sms_;
  std::vector<Footprint> footprints_;
  std::vector<Footprint> by_sm_;
  std::vector<int32_t> end_of_sm_;
};

}  // namespace tbsched
