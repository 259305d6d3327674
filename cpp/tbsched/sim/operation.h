// An operation that a host issues. It is issued, then pending while it has dependencies, then
// ready, running and complete.
#pragma once

#include <compare>
#include <cstdint>

namespace tbsched {

// Copies and memsets that take a hardware queue are launches, as are all nodes of graphs. Two kinds
// are in no stream: host_wait, which is what a host thread waits for, and load, which loads a
// kernel.
enum class OperationKind : uint8_t {
  launch,
  engine_copy,
  record,
  wait,
  graph_begin,
  graph_end,
  host_wait,
  load,
  host_function,
  write_value,
  wait_value,
  timed_record,
  condition_reset,  // of the conditional nodes of a graph
};

// How far an operation must have advanced before a dependent may start.
enum class Milestone : uint8_t { triggered, over, done };

// Indices are into the operations of an OpGraph, -1 for none.
struct Operation {
  OperationKind kind;
  int32_t launch =
      -1;  // its name in Wait::behind; for the end of a graph, that of the node done last
  int32_t transfer = -1;  // the number of a copy or memset that is no kernel
  int32_t priority = 0;
  int64_t issued_ns = 0;      // by the driver, by the process's own clock
  int64_t issued_gpu_ns = 0;  // the same by the GPU's clock
  bool by_engine = false;
  bool is_function = false;    // a host function of a stream: it takes no place in its queue
  bool behind_launch = false;  // whether it is a copy or a record behind a launch that is not over

  // Its stream, and the operations before it there and elsewhere.
  int32_t stream = -1;
  bool legacy = false;
  bool non_blocking = false;  // whether it and the legacy stream do not wait for each other
  bool programmatic = false;  // whether it waits for triggers
  int32_t last_launch = -1;   // last launch, copy, memset or end of a graph in the stream
  int32_t last_wait = -1;     // last wait in the stream after last_launch
  int32_t last_legacy = -1;   // last operation of the legacy stream
  int32_t last_load = -1;
  // For a wait, the record; for a wait for a value that is over, the write; for a launch, its
  // completion event; for the begin of a graph, the end of the graph's previous launch.
  int32_t record = -1;

  // Used by nodes of graphs.
  int32_t graph = -1;          // index of the begin of its graph
  bool follows_nodes = false;  // whether it follows other nodes, and so takes no queue
  int32_t reset = -1;          // of conditions in its graph, for which it waits
  bool is_prepared = false;    // whether a copy begins as soon as it reaches the GPU

  // Dependencies and dependents.
  int32_t pending = 0;  // dependencies that are not met, except those of the legacy stream's order
  int32_t first_dependent = -1;  // index into the dependents of the OpGraph
  bool after_copy = false;       // whether its last dependency was a copy of an engine
  int32_t legacy_behind = -1;    // in the legacy stream: the last operation that it waited for,
  int64_t legacy_until_ns = 0;   // and until when
  int32_t held_by =
      -1;  // the operation before it in its queue, or the last node that it waited for,
  int64_t held_until_ns = 0;  // and until when

  // Milestones.
  bool has_left = false;      // all of its blocks have left
  int64_t triggered_ns = -1;  // all of its blocks have triggered or ended; -1: not yet
  int64_t over_ns = -1;       // it has left, and so has all work before it in its stream
  int64_t done_ns = -1;       // dependents know that it is over

  bool is_launch() const { return kind == OperationKind::launch; }
  // Returns whether its stream writes memory or waits for a value there.
  bool is_memory_operation() const {
    return kind == OperationKind::write_value || kind == OperationKind::wait_value ||
           kind == OperationKind::timed_record || kind == OperationKind::condition_reset;
  }
  bool done() const { return done_ns >= 0; }
  bool has_reached(const Milestone milestone) const {
    return (milestone == Milestone::triggered ? triggered_ns
            : milestone == Milestone::over    ? over_ns
                                              : done_ns) >= 0;
  }
  // Returns whether it waits until nothing is left before it in any stream that blocks.
  bool waits_for_all() const { return legacy && !programmatic; }
  // Returns whether it can proceed only while its process has the GPU.
  bool needs_turn() const { return (is_launch() || kind == OperationKind::load) && !by_engine; }
};

// An operation of one of several GPUs.
struct OperationOfGpu {
  int32_t gpu;
  int32_t operation;

  auto operator<=>(const OperationOfGpu&) const = default;
};

// An operation of one GPU has happened for which one of another GPU waits.
struct Notice {
  OperationOfGpu happened;
  OperationOfGpu waiting;
};

}  // namespace tbsched
