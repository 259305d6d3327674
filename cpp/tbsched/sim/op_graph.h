// The dependency graph of a GPU's operations: streams, CUDA events, the legacy stream, and edges of
// graphs.
//
// An operation is ready as soon as each operation that it depends on has reached the milestone that
// it waits for, and, in the legacy stream, nothing is left before it in any stream that blocks.
//
// Most operations wait until the operation before them in their stream is done. Three kinds wait
// for less:
//   - A programmatic launch waits for the triggers of the launch before it in its stream. For later
//     work it is over only when that launch is over too.
//   - A node of a graph waits for the nodes that it depends on.
//   - Work of a non-blocking stream and work of the legacy stream do not wait for each other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"
#include "tbsched/sim/clock.h"
#include "tbsched/sim/event_queue.h"
#include "tbsched/sim/operation.h"

namespace tbsched {

struct Stream {
  bool legacy = false;
  bool non_blocking = false;
  bool open = false;  // whether it may have work that is not done
  // Whether a wait for an event that had not happened was issued since the last launch.
  bool waits_for_event = false;
  int32_t last = -1;         // last operation, or -1
  int32_t last_launch = -1;  // last launch, copy, memset or end of a graph, or -1
  int32_t last_wait = -1;    // last wait after last_launch, or -1

  // Notes a launch, copy, memset or end of a graph as the last one.
  void continue_from(const int32_t operation) {
    last_launch = operation;
    last_wait = -1;
    waits_for_event = false;
  }
};

// Receives operations whose dependencies are met.
class Stations {
 public:
  virtual ~Stations() = default;

  // Is called when all dependencies of the operation are met.
  virtual void on_dependencies_met(int32_t operation) = 0;
  // Is called when all dependencies of an operation of the legacy stream are met, and nothing is
  // left before it in any stream that blocks.
  virtual void on_legacy_turn(int32_t operation) = 0;
  // Is called when an operation is done.
  virtual void on_done(int32_t operation) = 0;
};

class OpGraph {
 public:
  // The arguments outlive it.
  OpGraph(const DeviceSpec& spec, const Clock& clock, EventQueue& events, Stations& stations)
      : spec_(spec), clock_(clock), events_(events), stations_(stations) {}

  const Operation& operator[](const int32_t operation) const { return operations_[operation]; }
  Operation& operator[](const int32_t operation) { return operations_[operation]; }
  int32_t size() const { return static_cast<int32_t>(operations_.size()); }

  // Returns the index of a stream, which is added if it is new. Each launch without a name gets a
  // stream of its own.
  int32_t stream_named(std::optional<int32_t> name);
  // Returns the index that stream_named() would, and adds no stream.
  int32_t index_of(std::optional<int32_t> name) const;
  Stream& stream(const int32_t index) { return streams_[index]; }

  // Adds an operation to a stream and returns its index. It depends on the given milestone of the
  // last operation there.
  int32_t add(Operation operation, int32_t stream, Milestone behind = Milestone::done);
  // Adds an operation without dependencies, and returns its index.
  int32_t push(const Operation& operation);
  // Makes one operation depend on a milestone of another.
  void depend(int32_t operation, int32_t on, Milestone milestone = Milestone::done,
              int32_t latency_ns = 0);
  // Makes an operation depend on all work of all streams, or of those that block.
  void depend_on_streams(int32_t operation, bool blocking_alone);
  // Adds the loading of a launch's kernel. All later work depends on it.
  int32_t add_load(int32_t launch);

  // Returns whether a launch that is issued to a stream now may start before the launch before it
  // there has ended.
  bool may_be_programmatic(const Launch& launch, const Stream& stream) const;
  // Returns whether an operation has all its dependencies met, and its turn in the legacy stream.
  bool waits_for_nothing(const int32_t operation) const {
    const Operation& waiting = operations_[operation];
    return waiting.pending == 0 && (!waiting.waits_for_all() || first_undone_ == operation);
  }
  // Returns whether nothing is left before an operation of the legacy stream; true for all other
  // operations.
  bool has_legacy_turn(const int32_t operation) const {
    return !operations_[operation].legacy || first_undone_ == operation;
  }
  // Returns the first operation of those that block that is not done.
  int32_t first_undone() const { return first_undone_; }
  // Returns, by operation, the first of those for which it waits; -1: it waits for none.
  std::vector<int32_t> first_awaited() const;
  // Returns when `dependent` learns that the operation is done.
  int64_t known_ns_of(int32_t done, int32_t dependent) const;
  // Returns the number that stands for an operation in Wait::behind: of the launch, copy or memset
  // that it is, or of the last one before it; -1: there is none.
  int32_t name_of(int32_t operation) const;
  // Returns the launch that is `count` launches before this one in its stream.
  int32_t launch_before(int32_t launch, int32_t count) const;

  // Schedules a change of an operation, at a time of the process's own clock.
  void change_at(int64_t time_ns, int32_t operation, Change change, int64_t order = 0);
  // Notes that such an event happens. Call it for each of them.
  void note_event(const TimedEvent& event);
  // A wait of a host, and an operation that it depends on.
  struct HostWait {
    int32_t wait;
    int32_t on;
  };
  // Returns the waits of hosts that are not over, once for each operation that they depend on.
  // Those of one wait follow each other.
  std::span<const HostWait> host_waits() const { return host_waits_; }
  // Returns how many pending events may enable other operations.
  int32_t enabling() const { return enabling_; }

  // Notes that all blocks of an operation have left. It is over if the operations before it in its
  // stream are. Returns the launches before which nothing is left in their streams now; valid until
  // the next call.
  std::span<const int32_t> leave(int32_t operation);
  // Returns whether all work before an operation in its stream is over.
  bool first_in_stream(int32_t operation) const;
  // Marks an operation as over now: it has ended, and all before it in its stream. So are then the
  // programmatic launches behind it whose blocks have left. Dependents learn it after a latency.
  void set_over(int32_t operation);
  // Notes that all blocks of a launch have triggered by now (programmatic dependent launch), and
  // lets operations go on that wait for that. Does nothing if they had before.
  void trigger(int32_t operation);
  // Marks an operation that the next finish_all() finishes.
  void finish_later(const int32_t operation) { finished_.push_back(operation); }
  // Finishes all marked operations, and notifies their dependents.
  void finish_all();
  // Notes that one more dependency of an operation is met. Tells the stations if it was the last.
  void meet_dependency(int32_t operation);

  // How many launches of a stream can be in flight at once (traces ways/dependent).
  static constexpr int32_t kMaxInFlight = 8;

 private:
  // An edge of the graph, in the list of the operation that is waited for.
  struct Dependent {
    int32_t operation;   // that waits
    int32_t next;        // in the list, or -1
    int32_t latency_ns;  // from the milestone until the operation learns it
    Milestone milestone;
  };

  // Returns whether an operation that needs no turn depends on this one.
  bool is_awaited_by_gpu_clock(const Operation& operation) const;
  // Returns whether an event may let other operations go on.
  bool may_enable(const TimedEvent& event) const;
  // Marks an operation as done now, and meets the dependencies on it, or schedules that where
  // dependents learn it later.
  void finish(int32_t operation);
  // Moves first_undone_ on, and gives an operation of the legacy stream there its turn.
  void advance_first_undone();

  const DeviceSpec& spec_;
  const Clock& clock_;
  EventQueue& events_;
  Stations& stations_;
  std::vector<Operation> operations_;  // in the order in which hosts issue them
  std::vector<Dependent> dependents_;
  std::unordered_map<int32_t, int32_t> index_of_stream_;
  std::vector<Stream> streams_;
  std::vector<HostWait> host_waits_;
  std::vector<int32_t> open_;  // streams
  int32_t last_legacy_ = -1;
  int32_t last_load_ = -1;
  int32_t last_other_ = -1;        // the last one of a blocking stream other than the legacy stream
  int32_t first_undone_ = 0;       // see first_undone()
  int32_t enabling_ = 0;           // see enabling()
  int64_t nodes_served_ = 0;       // number of dependencies on `over` that were met
  std::vector<int32_t> finished_;  // marked by finish_later()
  std::vector<int32_t> first_in_stream_;  // launches that have become the first in their stream
};

}  // namespace tbsched
