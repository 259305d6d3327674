// Runs a program whose blocks end by themselves: from one instant at which something happens to the
// next.
//
// At each instant, in this order:
//   1. Blocks that end then leave, in the order in which they were placed. Blocks that wait for
//      them, in a launch later in the stream, go on. So do host threads that wait for what is over.
//   2. The host issues what is due.
//   3. Hardware queues pass launches on while there is room for another grid.
//   4. Blocks of the launches that wait for room are placed, in the device's order of launches. It
//      takes a while until the scheduler turns from one launch to another.
// Blocks that run for no time at all then leave, at the same instant, and all begins anew.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tbsched/engine/block_scheduler.h"
#include "tbsched/engine/neighbours/paces.h"
#include "tbsched/engine/snapshot.h"
#include "tbsched/engine/timed/hosts.h"
#include "tbsched/engine/timed/streams.h"
#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"

namespace tbsched {

class TimedEngine : private Observer {
 public:
  // The model outlives it.
  TimedEngine(const Model& model, InitialState state, HostCalls calls,
              size_t most_waits = kMostWaits);
  // Before run(): as Streams.
  void take_turns(std::vector<int32_t> turns) { streams_.take_turns(std::move(turns)); }
  // Before run() or begin(): blocks of these launches slow each other, and durations are of blocks
  // with nobody beside them but others of their launch.
  void slow(const Neighbours& neighbours);
  TimedEngine(const TimedEngine&) = delete;
  TimedEngine& operator=(const TimedEngine&) = delete;

  // Throws std::invalid_argument for a launch that can never fit or has no duration or time of
  // issue, for a stream of a negative number other than the legacy stream, for a release, where
  // time overflows, and for more blocks or waits than a timeline holds. Throws std::logic_error
  // rather than returning a part: a launch that did not end, which nothing can bring about.
  Timeline run(const Sequence& sequence) &&;
  // Nanoseconds from the first start to the last end alone; kNever as soon as it is certain that
  // they are not less than `limit_ns`. Throws as run().
  int64_t makespan(const Sequence& sequence, int64_t limit_ns) &&;
  // What is held once all has happened that happens until then. Throws as run().
  Snapshot snapshot(const Sequence& sequence, int64_t at_ns) &&;

  // The same as run(), bit by bit, for a process that shares the GPU: engine/turns/turns.h.
  void begin(const Sequence& sequence);
  // Before that: other processes use the copy engines, too.
  void share(const std::span<EngineTurns, Transfers::kEngines> engines, const int32_t process) {
    streams_.share(engines, process);
  }
  int64_t next_instant() const;
  // Goes on to the next instant, if there is one.
  bool step(const Sequence& sequence);
  void step_at(const Sequence& sequence, int64_t at_ns);
  // As Streams has it, from this instant on.
  int64_t works_from_ns(const bool looks_at_all) const {
    return streams_.works_from_ns(now_, looks_at_all);
  }
  int64_t first_arrival_ns() const { return streams_.first_arrival_ns(now_); }
  // Whether a launch waits in a hardware queue.
  bool waits() const { return streams_.waits(); }
  int64_t came() const { return streams_.came(); }
  int64_t woken() const { return streams_.woken(); }
  const GpuState& gpu() const { return scheduler_.gpu(); }
  // How often blocks have started.
  int64_t starts() const { return serial_; }
  // See Streams.
  void doze() { streams_.doze(); }
  // The clock of the GPU, by which the host and copies by engines go on while the process does not
  // have it, is so much later than the own one.
  int64_t late_ns() const { return streams_.late_ns(); }
  // When any of these does something next, by that clock.
  int64_t next_live_ns() const {
    return std::min(hosts_.next_due_ns(), streams_.next_live_change());
  }
  // They do. The own clock is at this instant then, and the other one at `gpu_ns`.
  void live(const Sequence& sequence, int64_t at_ns, int64_t gpu_ns);
  // The process has the GPU again from these instants on.
  void go_on_at(int64_t at_ns, int64_t gpu_ns);
  // Times are by the clock of the GPU.
  Timeline finish() &&;

 private:
  struct LaunchState {
    const Launch* launch;
    size_t first_row;               // of its blocks in the timeline
    int32_t unfinished;             // blocks that have not left
    int32_t untriggered;            // blocks of which nobody knows when they trigger
    Refusal cause = Refusal::none;  // what its blocks wait for, since when
    int32_t behind = -1;
    int64_t since_ns = 0;
    int64_t triggered_ns = 0;  // when the last of the others does
  };
  // Blocks that leave together: all that were placed at once, or one.
  struct Resident {
    int64_t leaves_ns;
    int64_t serial;  // in the order of placing
    int32_t launch;
    int32_t first_block;
    int32_t blocks;
    int32_t first_held;

    // The first to leave is at the top of a heap.
    bool operator<(const Resident& other) const {
      return leaves_ns != other.leaves_ns ? leaves_ns > other.leaves_ns : serial > other.serial;
    }
  };

  // A heap whose elements may change before they are sorted again.
  class Residents : public std::priority_queue<Resident> {
   public:
    std::vector<Resident>& all() { return c; }
    void sort() { std::make_heap(c.begin(), c.end()); }
  };

  // A block that others may slow, since when it goes on at this pace.
  struct Running {
    size_t row;      // in the timeline
    double left_ns;  // at a pace of 1
    double pace;
    int64_t since_ns;
  };

  // Blocks that start together, and end together where they do not wait.
  struct Started {
    int64_t start_ns;
    int64_t duration_ns;
    int32_t first_block;
    int32_t blocks;
    int32_t first_held;
  };

  // A relay of a graph, or a kernel of the driver.
  struct Hidden {
    const Launch* launch;
    int32_t of;  // what a relay follows, or a kernel copies or sets, as Wait::behind names it
  };

  // A footprint, and the next one of the same blocks that end together, or -1.
  struct Held {
    Footprint footprint;
    int32_t next;
  };

  void on_place(const PlacedBlocks& placed) override;
  void on_refuse(int32_t launch, Refusal cause, int32_t behind) override {
    wait_for(launch, cause, behind);
  }

  void add(const Sequence& sequence);
  void add(const Launch& launch);
  void add(const GraphLaunch& launched);
  int32_t add(const Node& node);
  template <typename Transfer>
  int32_t add_transfer(const Transfer& transfer);
  void add_hidden();
  void remove_hidden();
  bool is_hidden(int32_t launch) const { return launch >= shown_; }
  int64_t least_makespan() const;
  int64_t gpu_ns() const { return now_ + late_ns(); }
  int64_t began_ns(int64_t own_ns) const;
  void note_ends(const Resident& blocks);
  void leave();
  void go_on_hosts(const Sequence& sequence);
  void issue(const Sequence& sequence);
  std::optional<int32_t> wait_for_place(const Event& event);
  void make(const Hosts::Call& call, const Event& event);
  void admit();
  void place();
  bool may_turn();
  int64_t duration_ns(int32_t launch, size_t block) const;
  void start(int32_t launch, const Started& blocks);
  void go_on(int32_t launch);
  void end(int32_t launch, const Started& blocks, int64_t end_ns);
  void trigger(int32_t launch, const Started& blocks, int64_t end_ns);
  void expect_alone(int32_t launch);
  void note_running(int32_t launch, const Started& blocks, int64_t end_ns);
  void change_paces();
  void check_time(int32_t launch, int64_t duration_ns) const;
  int32_t hold(const Footprint& footprint, int32_t next);
  void wait_for(int32_t launch, Refusal cause, int32_t behind);
  void check_waits() const;
  void check_ended() const;

  BlockScheduler scheduler_;
  Streams streams_;
  int32_t grids_left_;
  int64_t exit_latency_ns_;
  int64_t launch_switch_ns_;
  size_t most_waits_;
  Hosts hosts_;
  std::vector<EventNumbers> numbers_;  // by event
  const DeviceSpec& spec_;
  PlaceOptions options_;
  int64_t now_ = 0;
  // The own clock stood still. Times are recorded by that of the GPU, as it is when things happen.
  struct Stop {
    int64_t at_ns;    // by the own clock
    int64_t late_ns;  // from then on
  };
  std::vector<Stop> stops_;
  int64_t launches_admitted_ = 0;
  int64_t next_switch_ns_ = 0;  // when the scheduler may turn to another launch
  bool wants_to_switch_ = false;
  int64_t first_start_ns_ = kNever;
  int64_t last_end_ns_ = 0;
  int64_t serial_ = 0;
  std::vector<LaunchState> launches_;  // of the sequence, and behind them hidden ones
  Launch relay_;
  int32_t transfers_ = 0;
  std::deque<Launch> kernels_;  // of the driver
  std::vector<Hidden> hidden_;
  int32_t shown_ = 0;  // launches that are not hidden
  bool any_programmatic_ = false;
  std::unordered_map<int32_t, std::vector<Started>> waiting_;  // for memory, by launch
  size_t rows_ = 0;  // of the timeline: blocks of all launches
  Residents resident_;
  std::optional<Paces> paces_;
  std::vector<Running> running_;  // with paces, by first_held
  std::vector<Held> held_;
  int32_t free_held_ = -1;  // the first of those not in use
  Timeline timeline_;
};

}  // namespace tbsched
