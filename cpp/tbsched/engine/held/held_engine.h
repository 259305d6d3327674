// Runs launches and releases against the state of a GPU. A held launch is one whose blocks stay
// until it is released.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tbsched/engine/held/race.h"
#include "tbsched/hardware/sm/footprint.h"
#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/sim/block_scheduler.h"
#include "tbsched/sim/observer.h"
#include "tbsched/sim/snapshot.h"

namespace tbsched {

struct HeldOptions {
  // one_by_one: each block has its own footprint.
  BlockScheduler::Leaving leaving = BlockScheduler::Leaving::together;
  OutputSms output_sms = {};
  // The order in which blocks of a released launch leave; nullptr: all at once. It outlives the
  // engine, and needs blocks that leave one by one.
  Race* race = nullptr;
};

class HeldEngine : private Observer {
 public:
  // The model and the observers outlive it. Throws std::invalid_argument for a null observer.
  HeldEngine(const Model& model, InitialState state, std::vector<Observer*> observers,
             HeldOptions options = {});

  // Throws std::invalid_argument for a launch that step() refuses, other than for its size.
  static void check(const Launch& launch, size_t index);

  // Runs one launch or release. Throws std::invalid_argument for a launch that can never fit, has a
  // duration or is in the legacy stream or a stream of a negative number, for a release of a launch
  // that does not exist or is released already, and for CUDA events; the state is then unchanged.
  void step(const Event& event);
  // Lets one block of a launch that is not released exit. Needs blocks that leave one by one.
  // Throws std::invalid_argument for a block that is not resident.
  void exit_block(int32_t launch, int32_t block);

  // Returns the resident blocks, by launch.
  Snapshot snapshot() const;

 private:
  struct LaunchState {
    int32_t successor = -1;  // the launch after it in its stream, or -1
    bool released = false;
    int32_t leaving = 0;              // released blocks that are still resident
    std::vector<Footprint> resident;  // a footprint of 0 blocks has left
  };

  void on_place(const PlacedBlocks& placed) override;
  void on_refuse(int32_t launch, Refusal refusal, int32_t behind) override;

  // Adds a launch, and places what fits once its stream lets it go on.
  void launch(const Launch& launch);
  // Lets all blocks of a launch exit, and places what fits then.
  void release(int32_t index);
  // Places blocks until nothing changes.
  void place_waiting();
  // Enqueues the launch after this one in its stream, if this one has finished.
  void enqueue_successor(int32_t index);
  // Returns whether the launch is released and all its blocks have exited.
  bool is_finished(int32_t index) const;
  // Lets the resident blocks of a released launch exit: now, or when the race says.
  void release_resident(int32_t index, bool have_started);
  // Lets a block exit that the race was told of.
  void exit_released(const LeavingBlock& leaver);
  // Returns the SMs to which the race sends the launch's next blocks, as Race::sms_of_next does,
  // once blocks that are in the way there have exited.
  std::optional<std::span<const int32_t>> forced_sms(int32_t launch, int32_t first_block);
  template <typename Call>
  void notify(Call call) const;

  BlockScheduler scheduler_;
  BlockScheduler::Leaving leaving_;
  PlaceOptions options_;
  Race* race_;
  std::vector<Observer*> observers_;
  std::vector<LaunchState> launches_;
  std::unordered_map<int32_t, int32_t> last_in_stream_;
  bool released_ = false;  // whether blocks of released launches were placed in this pass
};

}  // namespace tbsched
