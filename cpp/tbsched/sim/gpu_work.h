// The work of a process on one GPU: passes operations from station to station.
//
// Hosts issue operations. Each is pending in the dependency graph, and launches in hardware queues,
// too. Copies go on to the copy engines. Launches go on to the thread block scheduler as soon as
// there is room for a grid. Each operation is in one station, or on its way as an event of the
// queue.
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
#include "tbsched/sim/between_gpus.h"
#include "tbsched/sim/clock.h"
#include "tbsched/sim/copy_engines.h"
#include "tbsched/sim/event_queue.h"
#include "tbsched/sim/graph_issue.h"
#include "tbsched/sim/hardware_queues.h"
#include "tbsched/sim/host_functions.h"
#include "tbsched/sim/numbering.h"
#include "tbsched/sim/op_graph.h"
#include "tbsched/sim/stream_places.h"

namespace tbsched {

class GpuWork : private Stations {
 public:
  // The arguments outlive it. `gpu`: the index of its GPU.
  GpuWork(const DeviceSpec& spec, const Clock& clock, EventQueue& events, BetweenGpus& between,
          int32_t gpu);

  // Sets the order of launches that are ready at the same time and equally urgent: by launch, the
  // lowest number goes first. Without it, the first one issued does. Call it before anything is
  // issued.
  void take_turns(std::vector<int32_t> turns) { turns_ = std::move(turns); }
  // Shares the copy engines with other processes. Call it before anything is issued.
  void share(const std::span<EngineTurns, CopyEngines::kShared> engines, const int32_t process) {
    engines_.share(engines, process);
  }
  // Marks a stream as non-blocking. Call it before anything is issued.
  void make_non_blocking(int32_t stream);
  // Uploads the graph to the GPU. Call it before anything is issued, in the order of the program.
  const GraphOrder& upload(const GraphLaunch& launched) { return graphs_.upload(launched); }
  // Sets the numbers of launches, of hidden launches (relays of graphs and kernels of the driver),
  // and of copies and memsets. Call it before anything is issued.
  void expect(int32_t launches, int32_t hidden, int32_t transfers);

  // Handles every change that is due by now.
  void catch_up() {
    if (!is_caught_up_ || events_.is_due(Phase::change)) handle_changes();
  }

  // Issues an event. `numbers`: those of its first launch, copy or memset, and hidden launch.
  // `issue_ns`: when the driver issues each launch of a graph. Returns when the call ends if it
  // waits for nothing.
  int64_t issue(const Event& event, const EventNumbers& numbers, std::span<const int64_t> issue_ns);
  // Loads the kernel of a launch. Loading waits for all work issued so far, and all later work of
  // every stream waits for it.
  void load(int32_t launch);
  // Returns the operation for which a call waits that synchronizes or sets up local memory; none:
  // it need not wait.
  std::optional<int32_t> wait_for(const Event& event);
  // Returns the same for a call that waits for the end of the copy that it has issued.
  std::optional<int32_t> wait_for_transfer(int32_t transfer);
  // Returns the same for a call that waits for a place for its work.
  std::optional<int32_t> wait_for_place(const Event& event);
  // Returns the waits of hosts that have ended since the last call.
  std::vector<int32_t> take_ended_waits() { return std::exchange(ended_waits_, {}); }
  // Whether there are any.
  bool has_ended_waits() {
    catch_up();
    return !ended_waits_.empty();
  }
  // States that what an operation waits for has happened on another GPU. `name`: what that is
  // called in Wait::behind.
  void learn(int32_t operation, int32_t name);

  // Whether anything has changed since take() found no ready launch.
  bool has_news() const {
    return !is_caught_up_ || !none_ready_ || !ended_waits_.empty() || events_.is_due(Phase::change);
  }
  // Pops the ready launch that goes first, if there is room for a grid.
  std::optional<int32_t> take(bool room_for_grid);
  // States that all blocks of a launch will have triggered or ended by `at_ns`.
  void trigger(int32_t launch, int64_t at_ns);
  // States that the last block of a launch has left. Returns the launches before which nothing is
  // left in their streams now; valid until the next call.
  std::span<const int32_t> end(int32_t launch);
  // Returns whether all work before it in its stream has left.
  bool first_in_stream(const int32_t launch) const {
    return operations_.first_in_stream(numbering_.operation_of(launch));
  }

  // Begins to back off: the GPU ignores launches that come to an empty hardware queue, and launches
  // that waited for a copy engine. A record behind launches that are over is deferred, too.
  void back_off() { queues_.back_off(); }
  // Ends the back-off: the GPU sees all work again.
  void end_back_off();
  // Whether a queue that the GPU looks at holds a launch that waits, or a copy or record behind a
  // launch that is not over.
  bool waits() const { return queues_.any_waits_but(-1); }
  // How many launches have come to queues, except those that wait for a copy engine.
  int64_t arrivals() const { return arrivals_; }
  // How many launches have become ready after a copy of an engine.
  int64_t wakeups() const { return wakeups_; }
  // Returns from when on there is work that needs the process's turn; kNever: all of it is over, or
  // waits for copy engines. Deferred work counts only with `with_deferred`.
  int64_t works_from_ns(bool with_deferred) const;
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
  // A node of a graph that is ready and waits for room for a grid.
  struct ReadyNode {
    int32_t rank;
    int64_t place;  // in the order in which nodes became ready
    int32_t operation;

    auto operator<=>(const ReadyNode&) const = default;
  };

  void handle_changes();
  void on_dependencies_met(int32_t operation) override;
  void on_legacy_turn(int32_t operation) override;
  void on_done(int32_t operation) override;

  void issue(const Launch& launch, int32_t number);
  void issue(const RecordEvent& record);
  void issue(const WaitEvent& wait);
  void issue(const WriteValue& write);
  void issue(const WaitValue& wait);
  void note_marks(const GraphLaunch& launched, int32_t begin);
  int32_t record_here(OperationOfGpu record);
  template <typename Transfer>
  void issue_transfer(const Transfer& asked, const EventNumbers& numbers);
  int64_t issue(const GraphLaunch& launched, const EventNumbers& numbers,
                std::span<const int64_t> issue_ns);
  int32_t add(const Operation& operation, int32_t stream);
  int32_t add_host_wait();
  std::optional<int32_t> if_pending(int32_t wait) const;
  std::optional<StreamPlaces::Entry> entry_of(const Event& event) const;
  void note_place(const Event& event, int32_t stream);
  void count_arrival(int32_t operation);
  void enqueue(int32_t launch);
  void note_issue(int32_t index);
  void correct_issues();
  void apply(const TimedEvent& event);
  void proceed(int32_t operation);
  bool call_functions();
  int64_t function_is_over_ns(int32_t transfer) const;
  bool takes_queue(const Operation& operation) const;
  void write_value(int32_t operation);
  void wake(int32_t wait);
  void wait_for_value(int32_t operation);
  bool begin_values_at_heads();
  void end_of_value(int32_t operation);
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
  BetweenGpus& between_;
  const int32_t gpu_;
  LaunchOrder order_;
  OpGraph operations_;
  HardwareQueues queues_;
  CopyEngines engines_;
  GraphIssue graphs_;
  HostFunctions host_functions_;
  StreamPlaces places_;
  std::vector<int32_t> functions_ready_;  // operations
  Numbering numbering_;
  std::vector<int32_t> turns_;
  std::set<ReadyNode> nodes_;
  int64_t nodes_ready_ = 0;
  std::vector<int32_t> deferred_records_;
  std::vector<int32_t> issued_while_stopped_;  // launches, as long as the own clock stands still
  int32_t running_ = 0;                        // launches that were taken and have not left
  int64_t idle_since_ns_ = 0;                  // if no launch runs
  int32_t not_over_ = 0;                       // launches, and kernels that are loaded
  int64_t arrivals_ = 0;
  int64_t wakeups_ = 0;
  bool is_caught_up_ = false;         // nothing was issued or ended since catch_up()
  bool none_ready_ = false;           // take() found none since catch_up()
  std::vector<int32_t> ended_waits_;  // for take_ended_waits()
};

}  // namespace tbsched
