// The launches whose blocks wait for room, placing them, and blocks leaving. It knows no time: an
// engine says when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/device_spec.h"
#include "model/refusal.h"
#include "model/sequence.h"
#include "policy/launch_order.h"
#include "policy/policy.h"
#include "sm/footprint.h"
#include "sm/gpu_state.h"

namespace tbsched {

class BlockScheduler {
 public:
  // Blocks of a launch that were placed together.
  struct Placed {
    int32_t launch;
    int32_t first_block;
    std::vector<int32_t> sms;           // in the order of the blocks
    std::vector<Footprint> footprints;  // in the order in which SMs were chosen

    // Which footprint is whose, by block. Blocks of a launch on one SM are alike, so that SM's come
    // in order.
    std::vector<size_t> footprint_of_blocks() const;
  };

  // What an engine is asked and told while launches are considered.
  struct Hooks {
    // Why the launch may not be considered yet; none: it may.
    std::function<Refusal(int32_t launch)> gate;
    std::function<void(const Placed& placed)> placed;
    // Blocks of the launch are left; `behind` is the launch that holds it up, or -1.
    std::function<void(int32_t launch, Refusal refusal, int32_t behind)> refused;
  };

  BlockScheduler(const DeviceSpec& spec, const PolicyRow& policy, InitialState state);

  const GpuState& gpu() const { return gpu_; }
  const Demand& demand(const int32_t launch) const { return launches_[launch].demand; }
  bool placed_whole(const int32_t launch) const { return launches_[launch].waiting() == 0; }

  // Launches are numbered as they are added. Throws std::invalid_argument for one that can never
  // fit; nothing has changed then.
  int32_t add(const Launch& launch);
  // Its blocks wait for room from now on.
  void enqueue(int32_t launch);
  // Considers every launch that waits once, in the order of the device.
  void place(const Hooks& hooks);
  // A block exits.
  void leave(int32_t launch, const Footprint& footprint);

 private:
  struct Kernel {
    Demand demand;
    int32_t blocks;
    int32_t priority;
    bool in_gpcs_only;  // clusters that no singleton TPC takes
    int32_t placed = 0;

    int32_t waiting() const { return blocks - placed; }
  };

  void check_cluster(const Launch& launch, const std::string& who) const;
  Refusal try_to_place(int32_t launch, const Hooks& hooks);
  Refusal what_refuses(const Demand& demand) const;

  std::string_view policy_name_;
  bool places_clusters_;
  GpuState gpu_;
  LaunchOrder order_;
  std::unique_ptr<Policy> policy_;
  std::vector<Kernel> launches_;
  std::vector<int32_t> waiting_;  // launches with blocks to place, the first to consider first
};

}  // namespace tbsched
