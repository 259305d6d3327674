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
  // Uploads a graph to the GPU, once, and returns the order of its nodes. Call it before anything
  // is issued, in the order of the program.
  const GraphOrder& upload(const GraphLaunch& launched) { return graphs_.upload(launched); }
  // Sets how many launches, hidden launches (relays of graphs and kernels of the driver), and
  // copies and memsets there are. Call it before anything is issued.
  void set_counts(int32_t launches, int32_t hidden, int32_t transfers);

  // Handles every change that is due by now.
  void catch_up() {
    if (!is_caught_up_ || events_.is_due(Phase::change)) handle_changes();
  }

  // Issues an event now. `numbers`: those of its first launch, copy or memset, and hidden launch.
  // `issue_ns`: when the driver issues each launch of a graph. Returns when the call ends if it
  // waits for nothing.
  int64_t issue(const Event& event, const EventNumbers& numbers, std::span<const int64_t> issue_ns);
  // Loads the kernel of a launch. Loading waits for all work issued so far, and all later work of
  // every stream waits for it.
  void load(int32_t launch);
  // For a call that synchronizes or sets up local memory: adds an operation that ends when the call
  // may go on, and returns its index; none: the call need not wait.
  std::optional<int32_t> await_work(const Event& event);
  // For a call that has issued a copy and returns after it: adds an operation that ends with the
  // copy, and returns its index; none: the copy is over.
  std::optional<int32_t> await_transfer(int32_t transfer);
  // If there is no place for the work of an event's call in its stream or hardware queue: adds an
  // operation that ends when there is one, and returns its index; none: there is a place.
  std::optional<int32_t> await_queue_place(const Event& event);
  // Removes and returns the waits of hosts that have ended since the last call.
  std::vector<int32_t> take_ended_waits() { return std::exchange(ended_waits_, {}); }
  // Returns whether there are such waits, once all changes that are due have been handled.
  bool has_ended_waits() {
    catch_up();
    return !ended_waits_.empty();
  }
  // Handles that what an operation waits for has happened on another GPU. `name`: what that is
  // called in Wait::behind.
  void learn(int32_t operation, int32_t name);

  // Returns whether anything has changed since take_ready() found no launch.
  bool has_news() const {
    return !is_caught_up_ || !none_ready_ || !ended_waits_.empty() || events_.is_due(Phase::change);
  }
  // Removes and returns the ready launch that goes first; none: no launch is ready, or there is no
  // room for a grid. Begins the transfers, writes and waits for values that are ready.
  std::optional<int32_t> take_ready(bool room_for_grid);
  // Schedules that all blocks of a launch have triggered or ended at `at_ns`.
  void schedule_trigger(int32_t launch, int64_t at_ns);
  // Handles that the last block of a launch has left. Returns the launches before which nothing is
  // left in their streams now; valid until the next call.
  std::span<const int32_t> end(int32_t launch);
  // Returns whether all work before a launch in its stream has left.
  bool first_in_stream(const int32_t launch) const {
    return operations_.first_in_stream(numbering_.operation_of(launch));
  }

  // Begins to back off: the GPU ignores launches that come to an empty hardware queue, and launches
  // that waited for a copy engine. A record behind launches that are over is deferred, too.
  void back_off() { queues_.back_off(); }
  // Ends the back-off: the GPU sees all work again.
  void end_back_off();
  // Returns whether a queue that the GPU looks at has a launch that waits, or a copy or record
  // behind a launch that is not over.
  bool any_waits() const { return queues_.any_waits_but(-1); }
  // Returns how many launches have come to queues, except those that wait for a copy engine.
  int64_t arrivals() const { return arrivals_; }
  // Returns how many launches have become ready after a copy of an engine.
  int64_t wakeups() const { return wakeups_; }
  // Returns from when on there is work that needs the process's turn; kNever: all of it is over, or
  // waits for copy engines. Deferred work counts only with `with_deferred`.
  int64_t works_from_ns(bool with_deferred) const;
  // Returns when the first pending launch has reached the GPU; kNever: there is none.
  int64_t first_arrival_ns() const;

  const OpGraph& operations() const { return operations_; }
  const HardwareQueues& queues() const { return queues_; }
  int32_t operation_of(const int32_t launch) const { return numbering_.operation_of(launch); }
  // Returns when each copy and memset that was issued moved its bytes.
  const std::vector<TransferTime>& transfer_times() const { return engines_.times(); }
  // Returns the hardware queue that a launch took; -1: a node of a graph that took none.
  int32_t hardware_queue(const int32_t launch) const {
    return queues_.queue_of_launch(operation_of(launch));
  }

 private:
  // A node of a graph that is ready and waits for room for a grid.
  struct ReadyNode {
    int32_t urgency;
    int64_t place;  // in the order in which nodes became ready
    int32_t operation;

    auto operator<=>(const ReadyNode&) const = default;
  };

  // Applies every change that is due, and begins what can begin then.
  void handle_changes();
  void on_dependencies_met(int32_t operation) override;
  void on_legacy_turn(int32_t operation) override;
  void on_done(int32_t operation) override;

  // Add the operations of an event to its stream.
  void issue(const Launch& launch, int32_t launch_number);
  void issue(const RecordEvent& record);
  void issue(const WaitEvent& wait);
  void issue(const WriteValue& write);
  void issue(const WaitValue& wait);
  // Notes the records of events among the nodes of a graph, and makes nodes wait for the last ones.
  void note_marks(const GraphLaunch& launched, int32_t begin);
  // Returns an operation of this GPU that is done when a record is; -1: the record is of another
  // GPU and done.
  int32_t record_here(OperationOfGpu record);
  // Adds a write of a value, a wait for one, or a record with timing to its stream. Returns its
  // index.
  template <typename MemoryOperation>
  int32_t issue_memory_operation(const MemoryOperation& asked, OperationKind kind);
  template <typename Transfer>
  void issue_transfer(const Transfer& asked, const EventNumbers& numbers);
  int64_t issue(const GraphLaunch& launched, const EventNumbers& numbers,
                std::span<const int64_t> issue_ns);
  // Adds an operation to a stream, and proceeds with it if it takes no queue and waits for nothing.
  // Returns its index.
  int32_t add(const Operation& operation, int32_t stream);
  // Adds an operation for which a host waits, without dependencies.
  int32_t add_host_wait();
  // Returns `wait`, an operation for which a host waits; none: all its dependencies are met
  // already.
  std::optional<int32_t> unless_met(int32_t wait) const;
  // Returns as which kind of work, and for which copy engine, an event takes one of the limited
  // places of its stream (stream_places.h); none: it takes no place, and ends no stretch of work.
  std::optional<StreamPlaces::Entry> entry_of(const Event& event) const;
  // Notes the place that an issued event takes in its stream.
  void note_place(const Event& event, int32_t stream);
  // Counts an operation in arrivals() if it matters to the turns of processes.
  void count_arrival(int32_t operation);
  // Puts a launch into its queue: at once, or when the driver has issued the graph that it is
  // issuing.
  void enqueue(int32_t launch);
  // Notes an operation that is issued while the own clock stands still: all of these seem to be
  // issued at one instant.
  void note_issue(int32_t index);
  // Corrects the times of noted operations that were issued after the time at which the own clock
  // goes on.
  void correct_issues();
  // Applies a change to its operation.
  void apply(const TimedEvent& event);
  // Proceeds with an operation that takes no hardware queue and has nothing left to wait for.
  void proceed(int32_t operation);
  // Calls the host functions that may begin now, in the order in which they were issued. Returns
  // whether a change is due at once.
  bool call_functions();
  // Returns when the GPU knows that a host function is over, as far as is known now.
  int64_t function_is_over_ns(int32_t transfer) const;
  // Returns whether an operation goes through a hardware queue.
  bool takes_queue(const Operation& operation) const;
  // Sets the value of a write now, and lets waits of this GPU go on.
  void write_value(int32_t operation);
  // Schedules the end of a wait for a value that has been set.
  void wake(int32_t wait);
  // Begins a wait for a value.
  void wait_for_value(int32_t operation);
  // Begins an operation that writes memory, which takes so long.
  void write(int32_t operation, int64_t write_ns);
  // Begins the waits for values, the writes, the records with timing and the resets of conditions
  // at the heads of queues.
  // Returns whether one of them is over at once, so that other heads follow.
  bool begin_memory_operations_at_heads();
  // Ends a wait, write or record, which leaves its queue.
  void end_memory_operation(int32_t operation);
  // Begins the copies, memsets and host functions at the heads of queues, which need no room for a
  // grid.
  void begin_transfers_at_heads();
  // Begins a copy, memset or host function that has nothing left to wait for.
  void begin_transfer_or_function(int32_t operation);
  // Tells the copy engine of a copy from when on it may move bytes.
  void set_ready_for_engine(int32_t operation);
  // Ends a transfer or host function that is over; schedules its end again if it now ends later.
  void end_transfer(int32_t operation);
  // Schedules the end of a transfer or host function. Throws std::invalid_argument beyond the range
  // of time.
  void schedule_end(int32_t operation, int64_t end_ns);
  // Begins the copies that the engines can begin. Returns whether a change is due at once.
  bool begin_engines();
  // Returns the priority of a ready launch, lowest first; 0 if the order is not by priority.
  int32_t urgency(int32_t operation) const;
  // Returns the number of a ready launch in take_turns(), lowest first; 0 if it has none.
  int32_t turn(int32_t operation) const;
  // Returns whether ready launch a goes before b.
  bool goes_before(int32_t a, int32_t b) const;

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
  std::vector<int32_t> turns_;  // see take_turns()
  std::set<ReadyNode> nodes_;   // of graphs
  int64_t nodes_ready_ = 0;     // number of nodes that have become ready
  std::vector<int32_t> deferred_records_;
  std::vector<int32_t> issued_while_stopped_;  // launches, as long as the own clock stands still
  int32_t running_ = 0;                        // launches that were taken and have not left
  int64_t idle_since_ns_ = 0;                  // if no launch runs
  int32_t unfinished_ = 0;                     // launches, and kernels that are loaded
  int64_t arrivals_ = 0;                       // see arrivals() and wakeups()
  int64_t wakeups_ = 0;
  bool is_caught_up_ = false;         // nothing was issued or ended since catch_up()
  bool none_ready_ = false;           // take_ready() found none since catch_up()
  std::vector<int32_t> ended_waits_;  // for take_ended_waits()
};

}  // namespace tbsched
