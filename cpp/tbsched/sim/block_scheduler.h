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
#include "tbsched/sim/sm_subsets.h"

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
  // Returns whether all blocks of a launch have been placed.
  bool placed_whole(const int32_t launch) const {
    return launches_[checked(launch)].waiting() == 0;
  }
  // Returns whether one launch is visited before another one, whenever they are enqueued.
  bool is_more_urgent(const int32_t first, const int32_t second) const {
    return key_of(checked(first)).urgency < key_of(checked(second)).urgency;
  }
  bool is_enqueued(const int32_t launch) const { return launches_[checked(launch)].enqueued; }
  // Returns how many blocks of a launch have been placed.
  int32_t placed(const int32_t launch) const { return launches_[checked(launch)].placed; }
  // Returns the launch whose blocks were placed last, or -1. Within on_place: the launch before
  // that.
  int32_t current() const { return current_; }

  // Adds a launch and returns its index; indices ascend from 0. Throws for a launch that can never
  // fit.
  int32_t add(const Launch& launch, Leaving leaving);
  // Makes the blocks of a launch wait for room. Among launches of equal urgency, the lower `order`
  // goes first; it defaults to the launch's index. A launch is enqueued once.
  void enqueue(int32_t launch) { enqueue(launch, launch); }
  void enqueue(int32_t launch, int64_t order);
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
    int32_t urgency;  // launches of the lowest number are visited first
    Leaving leaving;
    int32_t subset;      // of the SMs that it may use; kWholeGpu: all
    int32_t placed = 0;  // blocks
    bool enqueued = false;
    int64_t order = 0;      // among launches of equal urgency
    int64_t last_pass = 0;  // pass that visited it last; 0: none

    // Returns how many blocks have not been placed.
    int32_t waiting() const { return blocks - placed; }
  };
  // Key of a waiting launch. The lowest key is visited first.
  struct QueueKey {
    int32_t urgency;
    int64_t order;
    int32_t launch;

    auto operator<=>(const QueueKey&) const = default;
  };
  using Queue = std::set<QueueKey>;
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

  // Returns the launch; refuses one that has not been added.
  int32_t checked(const int32_t launch) const {
    if (launch < 0 || launch >= static_cast<int32_t>(launches_.size())) refuse_unknown(launch);
    return launch;
  }
  // Throws the error of a launch that has not been added.
  [[noreturn]] void refuse_unknown(int32_t launch) const;
  // Throws the error of a footprint that the launch does not hold.
  [[noreturn]] void refuse_footprint(int32_t launch) const;
  // Refuses a cooperative launch that the driver would refuse.
  void check_cooperative(const Launch& launch, const Demand& demand, int32_t index) const;
  // Returns whether all blocks of a launch fit at once. rooms_ must be up to date for it.
  bool has_room_for_all(const LaunchState& state) const;
  // Returns the key of a launch in waiting_ and blocked_.
  QueueKey key_of(int32_t launch) const;
  // Returns the first enqueued launch that needs more local memory than there is, or -1. The driver
  // makes no other launch until it has that memory: even more urgent launches wait. Source: traces
  // ways-holdout.
  int32_t first_to_grow();
  // Visits the waiting launches in order, and returns the cause for which the rest wait. A launch
  // that does not fit reserves its SMs, and so holds up the launches behind it there. If it
  // reserves all SMs, no other launch is visited until it is placed.
  Cause visit_waiting(const Pass& pass);
  // Tries to place a launch. Returns whether it holds up all launches behind it.
  bool visit(const QueueKey& key, const Pass& pass);
  // Returns the last launch in this pass that reserves an SM which the launch may use, or -1.
  int32_t last_reserver_of_any(const LaunchState& state) const;
  // Reserves the SMs of a launch's subset.
  void reserve_sms_for(int32_t launch);
  // Keeps the SMs of a launch reserved that this pass skips, if an earlier one reserved them.
  void keep_reserved(int32_t launch);
  // Returns whether every SM that a launch may use is reserved for launches before it.
  bool all_reserved(const LaunchState& state) const;
  // Returns whether a launch that was refused need not be visited again for now.
  bool may_block(const LaunchState& state) const;
  // Moves a launch from waiting_ to blocked_.
  void move_to_blocked(const QueueKey& key);
  // Moves all launches from blocked_ back to waiting_.
  void unblock_all();
  // Moves all launches back to waiting_ if the room of an SM has changed, where that may let them
  // go on.
  void unblock_if_any_sm_changed();
  // Moves the first launch of each subset that needs some of these SMs back to waiting_: launches
  // that need the same SMs get them one after the other.
  void unblock_next_for(const SmSet& sms);
  // Reports the cause at the end of a pass for the launches that it did not visit.
  void report_unvisited(const Cause& cause, const Pass& pass);
  // Places as many blocks of a launch as fit. Returns why the rest was refused; none: all are
  // placed.
  Refusal try_to_place(int32_t launch, const Pass& pass);
  // Chooses SMs for the launch's next blocks, and commits the blocks. Returns how many there are.
  size_t choose_sms(int32_t launch, const Pass& pass, const Commit& commit, std::span<int32_t> sms);
  // Returns where the SMs of the launch's next blocks are written: an element for each block that
  // waits, or for as many as the GPU holds at most.
  std::span<int32_t> output_sms(int32_t launch, const Pass& pass);
  // Sorts footprints_, which are in the order of SMs, so that each block has that of its SM.
  void sort_footprints_by_block(std::span<const int32_t> sms);

  const Model& model_;
  GpuState gpu_;
  LaunchOrder order_;
  std::unique_ptr<Policy> policy_;
  std::vector<LaunchState> launches_;
  int32_t current_ = -1;  // see current()

  Queue waiting_;
  // Launches that wait like those in waiting_, but whose cause cannot have changed: first those
  // that use the whole GPU, then those of each subset.
  std::vector<Queue> blocked_;
  // Launches that need more local memory than there was when they were enqueued, by place.
  std::set<std::pair<int64_t, int32_t>> growing_;
  std::vector<int32_t>
      reservers_;  // of this pass: launches that wait and reserve the SMs of their subsets
  SmSubsets subsets_;
  std::vector<Queue::node_type>
      spare_nodes_;  // nodes of launches that were placed whole, reused to save allocations
  uint64_t changes_seen_ = 0;          // value of gpu_.changes() when launches were last unblocked
  int64_t pass_ = 0;                   // number of the current pass, from 1 on
  Cause cause_;                        // cause at the end of the last pass
  std::vector<int32_t> new_launches_;  // enqueued since the last report
  bool placing_ = false;               // place() is under way

  Residents residents_;

  // Buffers for the blocks that are placed at once.
  Rooms rooms_;
  std::vector<int32_t> sms_;
  std::vector<Footprint> footprints_;
  std::vector<Footprint> by_sm_;
  std::vector<int32_t> end_of_sm_;
};

}  // namespace tbsched
