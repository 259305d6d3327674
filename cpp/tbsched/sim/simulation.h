// One simulation of a process and its GPU. It runs a program whose blocks end by themselves, from
// one instant at which something happens to the next.
//
// At each instant, in this order:
//   1. Blocks that end then leave, in the order in which they were placed. Blocks that wait for
//      them, in a launch later in the stream, go on. So do host threads that wait for what is over.
//   2. Hosts issue the calls that are due.
//   3. Hardware queues pass launches on while there is room for another grid.
//   4. Blocks of the launches that wait for room are placed, in the device's order of launches. It
//      takes a while until the scheduler turns from one launch to another.
// Blocks that take no time leave at the same instant, and the instant is simulated again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"
#include "tbsched/sim/block_scheduler.h"
#include "tbsched/sim/clock.h"
#include "tbsched/sim/event_queue.h"
#include "tbsched/sim/gpu_work.h"
#include "tbsched/sim/host_calls.h"
#include "tbsched/sim/numbering.h"
#include "tbsched/sim/paces.h"
#include "tbsched/sim/running_blocks.h"
#include "tbsched/sim/snapshot.h"
#include "tbsched/sim/wait_log.h"

namespace tbsched {

class Simulation : private Observer {
 public:
  // The model outlives it.
  Simulation(const Model& model, InitialState state, HostCalls calls,
             size_t most_waits = kMostWaits);
  // As GpuWork::take_turns(). Call it before run().
  void take_turns(std::vector<int32_t> turns) { work_.take_turns(std::move(turns)); }
  // Makes blocks of these launches slow each other. Durations are then those of a launch that has
  // the GPU for itself. Call it before run() or begin().
  void slow(const Neighbours& neighbours) { blocks_.slow(neighbours); }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Throws std::invalid_argument for a launch that can never fit or has no duration or time of
  // issue, for a stream of a negative number other than the legacy stream, for a release, if time
  // overflows, and for more blocks or waits than a timeline holds. Throws std::logic_error if a
  // launch does not end, which indicates a bug.
  Timeline run(const Sequence& sequence) &&;
  // Returns the nanoseconds from the first start to the last end; kNever as soon as they are known
  // to be at least `limit_ns`. Throws as run().
  int64_t makespan(const Sequence& sequence, int64_t limit_ns) &&;
  // Returns what SMs hold after everything that happens by `at_ns`. Throws as run().
  Snapshot snapshot(const Sequence& sequence, int64_t at_ns) &&;

  // Begins what run() does in one call, for a process that shares the GPU (time_slicing.h).
  void begin(const Sequence& sequence) { add(sequence); }
  // Shares the copy engines with other processes. Call it before begin().
  void share(const std::span<EngineTurns, CopyEngines::kEngines> engines, const int32_t process) {
    work_.share(engines, process);
  }
  const Clock& clock() const { return clock_; }
  const GpuWork& work() const { return work_; }
  const GpuState& gpu() const { return scheduler_.gpu(); }
  // When the next event happens, by the process's own clock.
  int64_t next_instant() const { return events_.next_ns(); }
  // When the next event happens that needs no turn, by the GPU's clock.
  int64_t next_gpu_ns() const { return events_.next_gpu_ns(); }
  // How many groups of blocks have started.
  int64_t starts() const { return blocks_.starts(); }
  // Simulates the next instant. Returns false if there is none.
  bool step(const Sequence& sequence);
  void step_at(const Sequence& sequence, int64_t at_ns);
  // Makes the GPU defer what comes to empty hardware queues.
  void back_off() { work_.back_off(); }
  // Simulates what needs no turn. The own clock stands at `at_ns` while the GPU's is at `gpu_ns`.
  void step_without_gpu(const Sequence& sequence, int64_t at_ns, int64_t gpu_ns);
  // Gives the process the GPU again, at these times of its own clock and the GPU's.
  void resume_at(int64_t at_ns, int64_t gpu_ns);
  // Returns the timeline, with times by the GPU's clock.
  Timeline finish() &&;

 private:
  // A relay of a graph, or a kernel of the driver.
  struct Hidden {
    const Launch* launch;
    int32_t of;  // name in Wait::behind of the node that a relay follows, or of the copy or memset
  };

  void on_place(const PlacedBlocks& placed) override;
  void on_refuse(int32_t launch, Refusal cause, int32_t behind) override;

  void add(const Sequence& sequence);
  void add(const Launch& launch);
  void add(const GraphLaunch& launched);
  int32_t add(const Node& node);
  template <typename Transfer>
  int32_t add_transfer(const Transfer& transfer);
  void add_hidden();
  void remove_hidden(Timeline& timeline) const;
  bool is_hidden(const int32_t launch) const { return launch >= shown_; }
  int64_t least_makespan() const;
  void leave();
  void wake_hosts(const Sequence& sequence);
  void issue(const Sequence& sequence);
  std::optional<int32_t> wait_for_place(const Event& event);
  void make(const Hosts::Call& call, const Event& event);
  void admit();
  void place();
  bool may_turn();
  void check_waits() const;
  void check_values(int32_t left) const;
  void check_ended() const;

  const DeviceSpec& spec_;
  const bool may_decline_;  // the policy, though an SM has room
  Clock clock_;
  EventQueue events_;
  Hosts hosts_;
  GpuWork work_;
  BlockScheduler scheduler_;
  RunningBlocks blocks_;
  WaitLog waits_;
  PlaceOptions options_;
  int32_t grids_left_;
  size_t most_waits_;
  std::vector<EventNumbers> numbers_;  // by event
  int64_t launches_admitted_ = 0;
  int64_t next_switch_ns_ = 0;  // when the scheduler may turn to another launch
  Launch relay_;
  int32_t transfers_ = 0;
  int32_t launches_ = 0;        // launches of the sequence, then hidden ones
  int32_t shown_ = 0;           // launches that are not hidden
  std::deque<Launch> kernels_;  // of the driver
  std::vector<Hidden> hidden_;
  std::vector<int32_t> hardware_queue_;  // by launch
  std::vector<int64_t> issued_ns_;       // by launch, if gaps are given
};

}  // namespace tbsched
