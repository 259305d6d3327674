// The launches whose blocks wait for room, and the state of the GPU. It places blocks and removes
// them, but knows no time: an engine decides when.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "tbsched/hardware/gpu/commit.h"
#include "tbsched/hardware/gpu/gpu_state.h"
#include "tbsched/hardware/gpu/rooms.h"
#include "tbsched/hardware/sm/footprint.h"
#include "tbsched/policy/launch_order.h"
#include "tbsched/policy/model.h"
#include "tbsched/policy/policy.h"
#include "tbsched/program/event.h"
#include "tbsched/program/refusal.h"
#include "tbsched/sim/observer.h"
#include "tbsched/sim/residents.h"
#include "tbsched/sim/sm_groups.h"

namespace tbsched {

// Returns the memory into which the SMs of a launch's blocks are written, from `first_block` on:
// one element for each block that waits, or an empty span.
using OutputSms = std::function<std::span<int32_t>(int32_t launch, int32_t first_block)>;

// Optional callbacks and settings of one call of place().
struct PlaceOptions {
  // Where it is not set or returns an empty span, SMs are written into a buffer of the scheduler.
  OutputSms output_sms = {};
  // Returns whether blocks of another launch than the current one may be placed now. Not set:
  // always.
  std::function<bool()> may_turn = {};
  // Returns the SMs of the launch's next cluster, which must have room for it; an empty span if the
  // cluster waits. Where it returns nothing, or is not set, the policy decides.
  std::function<std::optional<std::span<const int32_t>>(int32_t launch, int32_t first_block)>
      forced_sms = {};
  // Whether on_refuse is also called for launches that still wait, but for another cause than
  // before. Then every pass visits every launch.
  bool every_refusal = false;
};

// Member functions throw std::invalid_argument for an unknown launch and for one in the wrong
// state. Nothing has changed then.
class BlockScheduler {
 public:
  // How blocks of a launch that were placed at once leave: all together, or one by one.
  enum class Leaving : uint8_t { together, one_by_one };

  // Starts with an idle GPU. The model outlives it.
  BlockScheduler(const Model& model, InitialState state);

  const GpuState& gpu() const { return gpu_; }
  const Demand& demand(const int32_t launch) const { return launches_[checked(launch)].demand; }
  bool placed_whole(const int32_t launch) const {
    return launches_[checked(launch)].waiting() == 0;
  }
  // Whether one launch is visited before another one, whenever they are enqueued.
  bool is_more_urgent(const int32_t one, const int32_t other) const {
    return place_of(checked(one)).rank < place_of(checked(other)).rank;
  }
  bool is_enqueued(const int32_t launch) const { return launches_[checked(launch)].enqueued; }
  // How many blocks of a launch have been placed.
  int32_t placed(const int32_t launch) const { return launches_[checked(launch)].placed; }
  // The launch whose blocks were placed last, or -1. Within on_place: the launch before that.
  int32_t current() const { return current_; }

  // Adds a launch and returns its number; numbers ascend from 0. Throws for a launch that can never
  // fit.
  int32_t add(const Launch& launch, Leaving leaving);
  // Makes the blocks of a launch wait for room. Among launches of equal rank, the lower `place`
  // goes first; it defaults to the launch's number. A launch is enqueued once.
  void enqueue(int32_t launch) { enqueue(launch, launch); }
  void enqueue(int32_t launch, int64_t place);
  // Places every block that fits now. Visits launches in the device's order. Observers may remove
  // blocks and add and enqueue launches, and must do nothing else.
  void place(Observer& observer, const PlaceOptions& options = {});
  // Begins a moment for shared-memory configurations: blocks that take the room of blocks that exit
  // before the next call find SMs configured as those left them.
  void settle() { gpu_.settle(); }
  // Removes the blocks of a footprint that on_place gave to the launch and that has not left yet.
  void leave(int32_t launch, const Footprint& footprint);

 private:
  struct LaunchState {
    Demand demand;
    int32_t blocks;
    int32_t rank;  // launches of the lowest rank are visited first
    Leaving leaving;
    int32_t group;  // index of the set of SMs that it uses
    int32_t placed = 0;
    bool enqueued = false;
    int64_t place = 0;       // order among launches of equal rank
    int64_t visited_in = 0;  // pass that visited it last

    int32_t waiting() const { return blocks - placed; }
  };
  // Key of a waiting launch. The lowest key is visited first.
  struct Place {
    int32_t rank;
    int64_t place;
    int32_t launch;

    auto operator<=>(const Place&) const = default;
  };
  using Queue = std::set<Place>;
  // Cause for which the launches wait that a pass did not visit.
  struct Cause {
    Refusal refusal = Refusal::none;
    int32_t behind = -1;

    bool operator==(const Cause&) const = default;
  };
  // The arguments of place().
  struct Pass {
    Observer& observer;
    const PlaceOptions& options;
  };

  int32_t checked(const int32_t launch) const {
    if (launch < 0 || launch >= static_cast<int32_t>(launches_.size())) refuse_unknown(launch);
    return launch;
  }
  [[noreturn]] void refuse_unknown(int32_t launch) const;
  [[noreturn]] void refuse_footprint(int32_t launch) const;
  void check_cooperative(const Launch& launch, const Demand& demand, int32_t index) const;
  bool has_room_for_all(const LaunchState& state) const;
  Place place_of(int32_t launch) const;
  int32_t first_to_grow();
  Cause visit_waiting(const Pass& pass);
  bool visit(const Place& place, const Pass& pass);
  int32_t holder_before(const LaunchState& state) const;
  void hold_sms_for(int32_t launch);
  void keep_holding(int32_t launch);
  bool all_held(const LaunchState& state) const;
  bool may_block(const LaunchState& state) const;
  void move_to_blocked(const Place& place);
  void unblock_all();
  void unblock_if_any_sm_changed();
  void unblock_next_for(const SmSet& sms);
  void report_unvisited(const Cause& cause, const Pass& pass);
  Refusal try_to_place(int32_t launch, const Pass& pass);
  size_t choose(int32_t launch, const Pass& pass, const Commit& commit, std::span<int32_t> sms);
  std::span<int32_t> memory(int32_t launch, const Pass& pass);
  void sort_by_block(std::span<const int32_t> sms);

  const Model& model_;
  GpuState gpu_;
  LaunchOrder order_;
  std::unique_ptr<Policy> policy_;
  std::vector<LaunchState> launches_;
  int32_t current_ = -1;

  Queue waiting_;
  // Launches that wait like those in waiting_, but whose cause cannot have changed: first those
  // that use the whole GPU, then those of each group.
  std::vector<Queue> blocked_;
  // Launches that need more local memory than there was when they were enqueued, by place.
  std::set<std::pair<int64_t, int32_t>> growing_;
  std::vector<int32_t>
      holders_;  // of this pass: launches that wait and hold the SMs of their groups
  SmGroups groups_;
  std::vector<Queue::node_type>
      spare_;  // nodes of launches that were placed whole, reused to save allocations
  uint64_t changes_seen_ = 0;  // value of gpu_.changes() when launches were last unblocked
  int64_t pass_ = 0;
  Cause cause_;                        // cause at the end of the last pass
  std::vector<int32_t> new_launches_;  // enqueued since the last report
  bool placing_ = false;

  Residents residents_;

  // Buffers for the blocks that are placed at once.
  Rooms rooms_;
  std::vector<int32_t> sms_;
  std::vector<Footprint> footprints_;
  std::vector<Footprint> by_sm_;
  std::vector<int32_t> end_of_sm_;
};

}  // namespace tbsched
