// The launches whose blocks wait for room, placing them, and blocks leaving. It knows no time: an
// engine says when.
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

// Where the SMs of a launch's blocks from this one on are to be written: room for all that wait, or
// nothing.
using SmMemory = std::function<std::span<int32_t>(int32_t launch, int32_t first_block)>;

// What an engine is asked while launches are looked at, and how much it is told. None of it is
// needed.
struct PlaceOptions {
  // Without it, or where it names nothing, SMs are written into a buffer of the scheduler.
  SmMemory memory = {};
  // Whether blocks of another launch than the current one may be placed now; without it, always.
  std::function<bool()> may_turn = {};
  // Where the blocks of the launch's next cluster go, for which there is room; nowhere: they wait.
  // Where it names nothing, and without it, the policy decides.
  std::function<std::optional<std::span<const int32_t>>(int32_t launch, int32_t first_block)>
      where = {};
  // Whether on_refuse is also told of launches that go on waiting, but for something else than
  // before. That takes a look at all of them.
  bool every_refusal = false;
};

// Throws std::invalid_argument for a launch that is not there, or is not as a call needs it;
// nothing has changed then.
class BlockScheduler {
 public:
  // How blocks of a launch leave that were placed at once: all together, or one by one.
  enum class Leaving : uint8_t { together, one_by_one };

  // On an idle GPU. The model outlives it.
  BlockScheduler(const Model& model, InitialState state);

  const GpuState& gpu() const { return gpu_; }
  const Demand& demand(const int32_t launch) const { return launches_[checked(launch)].demand; }
  bool placed_whole(const int32_t launch) const {
    return launches_[checked(launch)].waiting() == 0;
  }
  // The launch of the blocks placed last, or -1; told of blocks that are placed: those before them.
  int32_t current() const { return current_; }

  // Launches are numbered as they are added. One that can never fit is refused.
  int32_t add(const Launch& launch, Leaving leaving);
  // Its blocks wait for room from now on. Of launches equally urgent that of the lower number goes
  // first, or, where a place is given, that of the lower place. A launch is enqueued once.
  void enqueue(int32_t launch) { enqueue(launch, launch); }
  void enqueue(int32_t launch, int64_t place);
  // Places what fits now: looks, in the order of the device, at every launch whose turn it can be.
  // Observers may let blocks leave, add and enqueue launches, and no more.
  void place(Observer& observer, const PlaceOptions& options = {});
  // What takes the room of blocks that exit from now on, before the next call, finds SMs configured
  // as those left them.
  void settle() { gpu_.settle(); }
  // The blocks of a footprint exit, which the launch was given and which has not left.
  void leave(int32_t launch, const Footprint& footprint);

 private:
  struct LaunchState {
    Demand demand;
    int32_t blocks;
    int32_t rank;  // the first to look at first
    Leaving leaving;
    int32_t group;  // the SMs that it uses
    int32_t placed = 0;
    bool enqueued = false;
    int64_t place = 0;      // among those equally urgent
    int64_t looked_at = 0;  // in which pass, the last time

    int32_t waiting() const { return blocks - placed; }
  };
  // A place in the line of those that wait for room, the first to look at first.
  struct Place {
    int32_t rank;
    int64_t place;
    int32_t launch;

    auto operator<=>(const Place&) const = default;
  };
  using Line = std::set<Place>;
  // What all launches wait for that were not looked at.
  struct Cause {
    Refusal refusal = Refusal::none;
    int32_t behind = -1;

    bool operator==(const Cause&) const = default;
  };
  // What the engine of a pass is asked and told.
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
  Cause go_through_line(const Pass& pass);
  bool look_at(const Place& place, const Pass& pass);
  int32_t holder_before(const LaunchState& state) const;
  void hold_for(int32_t launch);
  void hold_again(int32_t launch);
  bool all_held(const LaunchState& state) const;
  bool may_sleep(const LaunchState& state) const;
  void fall_asleep(const Place& place);
  void wake_all();
  void wake_if_any_sm_changed();
  void wake_next_for(const SmSet& sms);
  void tell_the_rest(const Cause& cause, const Pass& pass);
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

  Line waiting_;
  // As waiting_, but what refused them cannot have changed yet: those of the whole GPU, then those
  // of each group.
  std::vector<Line> asleep_;
  // Launches that need more local memory than there was, by place: as they were issued.
  std::set<std::pair<int64_t, int32_t>> growing_;
  std::vector<int32_t> holders_;  // in a pass: they wait, and hold the SMs of their groups
  SmGroups groups_;
  std::vector<Line::node_type> spare_;  // of launches that wait no more, to take no memory again
  uint64_t changes_seen_ = 0;           // of the GPU, by those asleep
  int64_t pass_ = 0;
  Cause cause_;                // of the last pass
  std::vector<int32_t> news_;  // launches that came since
  bool placing_ = false;

  Residents residents_;

  // Of the blocks that are placed at once.
  Rooms rooms_;
  std::vector<int32_t> sms_;
  std::vector<Footprint> footprints_;
  std::vector<Footprint> by_sm_;
  std::vector<int32_t> end_of_sm_;
};

}  // namespace tbsched
