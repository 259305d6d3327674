// The work of a process on a GPU: passes operations from station to station.
//
// Hosts issue them. They are pending in the dependency graph, and launches in hardware queues, too.
// Copies go on to the copy engines, and launches, as soon as there is room for a grid, to the
// thread block scheduler. Each operation is in one station, or on its way as an event of the queue.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/policy/launch_order.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"
#include "tbsched/sim/clock.h"
#include "tbsched/sim/copy_engines.h"
#include "tbsched/sim/event_queue.h"
#include "tbsched/sim/graph_issue.h"
#include "tbsched/sim/hardware_queues.h"
#include "tbsched/sim/numbering.h"
#include "tbsched/sim/op_graph.h"

namespace tbsched {

class GpuWork : private Stations {
 public:
  // They outlive it.
  GpuWork(const DeviceSpec& spec, const Clock& clock, EventQueue& events);

  // Before anything is issued: of launches that may go on at the same time, and are equally urgent,
  // the one of the least number goes first; by launch. Without: the first one issued.
  void take_turns(std::vector<int32_t> turns) { turns_ = std::move(turns); }
  // Before anything is issued: other processes use the copy engines, too.
  void share(const std::span<EngineTurns, CopyEngines::kEngines> engines, const int32_t process) {
    engines_.share(engines, process);
  }
  // Before anything is issued: which streams are non-blocking.
  void make_non_blocking(int32_t stream);
  // Before anything is issued, in the order of the program: the driver brings the graph to the GPU.
  const GraphOrder& bring(const GraphLaunch& launched) { return graphs_.bring(launched); }
  // Before anything is issued: how many launches there are, relays of graphs and driver's kernels,
  // and copies and memsets.
  void expect(int32_t launches, int32_t hidden, int32_t transfers);

  // Lets everything happen that is due by now.
  void catch_up();

  // The host issues it. `numbers`: of its first launch, copy or memset, and relay or driver's
  // kernel; further ones follow. `issue_ns`: when the driver issues each launch of a graph. Returns
  // when the call ends, if it waits for nothing.
  int64_t issue(const Event& event, const EventNumbers& numbers, std::span<const int64_t> issue_ns);
  // The kernel of a launch is loaded, which waits for all work issued so far. All later work waits
  // for that, whatever its stream.
  void load(int32_t launch);
  // Returns the operation that a call waits for that synchronizes, or sets up local memory; none:
  // it need not wait.
  std::optional<int32_t> wait_for(const Event& event);
  // The same of a call that waits for the end of the copy that it has issued.
  std::optional<int32_t> wait_for_transfer(int32_t transfer);
  // The same of a launch call, which waits for a place in its hardware queue.
  std::optional<int32_t> wait_for_place(const Launch& launch);
  // Returns those of these operations that are over, and were not at the last call.
  std::vector<int32_t> take_over();

  // Takes the next ready launch, the first in the order of launches, if there is room for a grid.
  std::optional<int32_t> take(bool room_for_grid);
  // All blocks of a launch will have triggered or ended by `at_ns`, now or later.
  void trigger(int32_t launch, int64_t at_ns);
  // The last block of a launch has left. Returns the launches before which, in their streams,
  // nothing is left now; valid until the next call.
  std::span<const int32_t> end(int32_t launch);
  // Whether all that comes before it in its stream has left.
  bool first_in_stream(const int32_t launch) const {
    return operations_.first_in_stream(numbering_.operation_of(launch));
  }

  // From now on the GPU does not look at a hardware queue that was empty and gets something, nor at
  // a launch that waited for an engine. An event that is recorded behind launches that are over
  // waits, too.
  void back_off() { queues_.back_off(); }
  // It looks at all again.
  void look_at_all();
  // Whether anything waits in a queue that it looks at: a launch, or a copy or the record of an
  // event behind a launch that is not over.
  bool waits() const { return queues_.any_waits_but(-1); }
  // How many launches have come to queues, without those that wait for a copy of an engine.
  int64_t arrivals() const { return arrivals_; }
  // How many launches have become ready after a copy of an engine.
  int64_t wakeups() const { return wakeups_; }
  // Returns from when on there is work that needs a turn of its process; kNever: all of it is over,
  // or waits for copy engines. What the GPU backs off from counts only if `looks_at_all`.
  int64_t works_from_ns(bool looks_at_all) const;
  // Returns when the first pending launch has reached the GPU; kNever: there is none.
  int64_t first_arrival_ns() const;

  const OpGraph& operations() const { return operations_; }
  const HardwareQueues& queues() const { return queues_; }
  int32_t operation_of(const int32_t launch) const { return numbering_.operation_of(launch); }
  // When each copy and memset that was issued moved its bytes.
  const std::vector<TransferTime>& transfer_times() const { return engines_.times(); }
  // -1: a node of a graph that took none.
  int32_t hardware_queue(const int32_t launch) const {
    return queues_.queue_of_launch(operation_of(launch));
  }

 private:
  // A node of a graph that is ready, and waits for room for a grid.
  struct ReadyNode {
    int32_t rank;
    int64_t place;  // in the order in which they became so
    int32_t operation;

    auto operator<=>(const ReadyNode&) const = default;
  };

  void on_met(int32_t operation) override;
  void on_legacy_turn(int32_t operation) override;
  void on_done(int32_t operation) override;

  void issue(const Launch& launch, int32_t number);
  void issue(const RecordEvent& record);
  void issue(const WaitEvent& wait);
  template <typename Transfer>
  void issue_transfer(const Transfer& asked, const EventNumbers& numbers);
  int64_t issue(const GraphLaunch& launched, const EventNumbers& numbers,
                std::span<const int64_t> issue_ns);
  int32_t add(const Operation& operation, int32_t stream);
  int32_t add_host_wait();
  std::optional<int32_t> unless_over(int32_t wait) const;
  void count_arrival(int32_t operation);
  void enqueue(int32_t launch);
  void happen(const TimedEvent& event);
  void go_on(int32_t operation);
  void begin_transfers_at_heads();
  void begin_transfer(int32_t operation);
  void end_transfer(int32_t operation);
  void end_transfer_at(int32_t operation, int64_t end_ns);
  bool begin_engines();
  int32_t rank(int32_t operation) const;
  int32_t turn(int32_t operation) const;
  bool before(int32_t a, int32_t b) const;

  const DeviceSpec& spec_;
  const Clock& clock_;
  EventQueue& events_;
  LaunchOrder order_;
  OpGraph operations_;
  HardwareQueues queues_;
  CopyEngines engines_;
  GraphIssue graphs_;
  Numbering numbering_;
  std::vector<int32_t> turns_;
  std::set<ReadyNode> nodes_;
  int64_t nodes_ready_ = 0;
  std::vector<int32_t> records_put_off_;
  int32_t running_ = 0;        // launches that were taken and have not left
  int64_t idle_since_ns_ = 0;  // where there is none
  int32_t not_over_ = 0;       // launches, and kernels that are loaded
  int64_t arrivals_ = 0;
  int64_t wakeups_ = 0;
  bool is_caught_up_ = false;  // nothing was issued or ended since catch_up()
  bool none_to_take_ = false;  // since then take() found none
  std::vector<int32_t> over_;  // what hosts waited for, and were not told of
};

}  // namespace tbsched
