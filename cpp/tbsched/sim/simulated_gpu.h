// One GPU of a simulation: the stations below the hosts. It knows its own launches, copies and
// memsets by numbers of its own.
//
// At each instant at which something happens to it, in this order:
//   1. leave(): blocks that end leave, in the order in which they were placed. Blocks that wait for
//      them, in a launch later in the stream, go on.
//   2. Hosts issue what is due.
//   3. admit(): hardware queues pass launches on while there is room for another grid.
//   4. place(): blocks of the launches that wait for room are placed, in the device's order of
//      launches. It takes a while until the scheduler turns from one launch to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"
#include "tbsched/sim/between_gpus.h"
#include "tbsched/sim/block_scheduler.h"
#include "tbsched/sim/clock.h"
#include "tbsched/sim/event_queue.h"
#include "tbsched/sim/gpu_work.h"
#include "tbsched/sim/numbering.h"
#include "tbsched/sim/running_blocks.h"
#include "tbsched/sim/snapshot.h"
#include "tbsched/sim/wait_log.h"

namespace tbsched {

class SimulatedGpu : private Observer {
 public:
  // The arguments outlive it. `index`: of the GPU.
  SimulatedGpu(const Model& model, InitialState state, const Clock& clock, BetweenGpus& between,
               int32_t index);
  SimulatedGpu(const SimulatedGpu&) = delete;
  SimulatedGpu& operator=(const SimulatedGpu&) = delete;

  GpuWork& work() { return work_; }
  const GpuWork& work() const { return work_; }
  RunningBlocks& blocks() { return blocks_; }
  const RunningBlocks& blocks() const { return blocks_; }
  const BlockScheduler& scheduler() const { return scheduler_; }
  const EventQueue& events() const { return events_; }

  // Adds what an event lets the GPU do, in the order of the program. `first_launch`: the number of
  // the event's first launch in the whole program, and `first_transfer` that of its first copy or
  // memset.
  void add(const Event& event, int32_t first_launch, int32_t first_transfer);
  // Returns the GPU's own numbers of the next event.
  EventNumbers next_numbers() const {
    return {launches_, transfers_, static_cast<int32_t>(hidden_.size())};
  }
  // Prepares the simulation, once all events were added.
  void finish_adding();

  // Removes the blocks that end now, and lets those go on that wait for them.
  void leave();
  // Passes ready launches on to the thread block scheduler, while there is room for a grid.
  void admit();
  // Places blocks of the launches that wait for room.
  void place();
  // Returns a time before which hosts and other GPUs cannot learn anything of this GPU if no host
  // calls. `next_ns`: no event of this GPU happens before.
  int64_t quiet_until_ns(int64_t next_ns) const;
  // Returns how many waits are logged.
  size_t waits() const { return waits_.size(); }
  // Returns how many launches were admitted.
  int64_t admitted() const { return launches_admitted_; }
  // Handles that what an operation waits for has happened on another GPU. `name`: what that is
  // called in Wait::behind, in the whole program.
  void learn(int32_t operation, int32_t name) { work_.learn(operation, add_foreign_name(name)); }
  // Returns what an operation is called in Wait::behind, in the whole program.
  int32_t name_of(const int32_t operation) const {
    return global_name(work_.operations().name_of(operation));
  }

  // Returns the launches that have not ended, though nothing more happens, and marks their blocks
  // that never started. `name_elsewhere` returns what an operation of another GPU is called in
  // Wait::behind, in the whole program. Throws std::invalid_argument if a policy lets blocks wait
  // for ever.
  std::vector<HungLaunch> hung_launches(
      const std::function<int32_t(OperationOfGpu)>& name_elsewhere);
  // Returns whether blocks that have been placed wait for others that they meet.
  bool any_waits_to_meet() const;
  // Returns the timeline without blocks, with the numbers of the whole program and by the GPU's
  // clock.
  Timeline finish() &&;
  // Returns the resident blocks and the state of each SM.
  Snapshot snapshot() const { return snapshot_of(scheduler_, shown_, blocks_.resident_blocks()); }
  // Returns a lower bound of when everything ends: the last end of the blocks that have been
  // placed, and of the last block of each other launch if it were placed now.
  int64_t earliest_end_ns();

 private:
  // A relay or decider of a graph, or a kernel of the driver for a copy or memset.
  struct Hidden {
    const Launch* launch;
    // Name in Wait::behind: of the copy or memset; of a node before a relay or decider, or -1.
    int32_t of;
  };
  // Why something waits, and for whom.
  struct Awaited {
    Refusal cause;
    int32_t behind;
  };

  void on_place(const PlacedBlocks& placed) override;
  void on_refuse(int32_t launch, Refusal cause, int32_t behind) override;

  void add(const Launch& launch);
  void add(const GraphLaunch& launched);
  void add(const Node& node);
  template <typename Transfer>
  void add_transfer(const Transfer& transfer);
  // Returns whether the scheduler may turn to another launch now. If not, schedules when it may.
  bool may_turn();
  bool is_hidden(const int32_t launch) const { return launch >= shown_; }
  // Returns a number of this GPU's own that stands for what another GPU did: global_name() of it is
  // `name`.
  int32_t add_foreign_name(int32_t name);
  // Returns a time before which no launch of this GPU ends and none is admitted: blocks leave, and
  // others take their place.
  int64_t steady_until_ns(int64_t next_ns) const;
  // Returns a time before which no host learns that what it waits for is over.
  int64_t hosts_wait_until_ns(int64_t next_ns) const;
  // Returns a time before which an operation that is not done does not end. No block is placed
  // before `from_ns`.
  int64_t least_end_ns(int32_t operation, int64_t from_ns) const;
  // Returns what a number in Wait::behind is in the whole program.
  int32_t global_name(int32_t name) const;
  // Removes hidden launches from a timeline, as users do not see them, and sets the times of the
  // copies and memsets for which they run.
  void remove_hidden(Timeline& timeline) const;
  // Returns why a launch in the thread block scheduler waits. Behind a hidden launch, it is why
  // that one waits.
  Awaited in_queue(int32_t launch) const;
  // Returns why an operation that has not reached the thread block scheduler waits, and behind
  // what.
  Awaited awaited(int32_t operation, std::span<const int32_t> first_awaited,
                  const std::function<int32_t(OperationOfGpu)>& name_elsewhere) const;

  const DeviceSpec& spec_;
  const Clock& clock_;
  BetweenGpus& between_;
  const int32_t index_;
  const bool may_decline_;  // the policy, though an SM has room
  EventQueue events_;
  GpuWork work_;
  BlockScheduler scheduler_;
  RunningBlocks blocks_;
  WaitLog waits_;
  PlaceOptions options_;
  int32_t free_grids_;  // how many more launches can be admitted
  int64_t launches_admitted_ = 0;
  std::vector<int32_t> running_;  // launches that were admitted and have not ended
  int64_t next_switch_ns_ = 0;    // when the scheduler may turn to another launch
  Launch relay_;
  Launch decider_;
  int32_t transfers_ = 0;
  int32_t launches_ = 0;  // launches of the program, then hidden ones
  int32_t shown_ = 0;     // launches that are not hidden
  // Launches that are not hidden, those with the longest last block first, once earliest_end_ns()
  // has been asked for; and how many of them it need not look at again, as all their blocks have
  // been placed.
  std::vector<int32_t> longest_first_;
  size_t longest_placed_ = 0;
  std::deque<Launch> kernels_;  // of the driver
  std::vector<Hidden> hidden_;
  std::vector<int32_t> hardware_queue_;   // by launch
  std::vector<int32_t> global_launch_;    // the number in the whole program, by launch
  std::vector<int32_t> global_transfer_;  // the same, by copy or memset
  std::vector<int32_t> foreign_names_;    // names of what other GPUs did
};

}  // namespace tbsched
