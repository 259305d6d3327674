// What a host issues: an operation, which is issued, then pending until nothing before it is left
// to wait for, then ready, running and complete.
#pragma once

#include <cstdint>

namespace tbsched {

// Copies and memsets that take a hardware queue are launches, as are all nodes of graphs. In no
// stream: host_wait, what a host thread waits for, and load, a kernel that is loaded.
enum class OperationKind : uint8_t {
  launch,
  engine_copy,
  record,
  wait,
  graph_begin,
  graph_end,
  host_wait,
  load,
};

// How far along an operation is when another one that waits for it may go on.
enum class Milestone : uint8_t { triggered, over, done };

// Indices are into the operations of an OpGraph, -1 for none.
struct Operation {
  OperationKind kind;
  int32_t launch = -1;    // as Wait::behind names it; of a graph's end: of the node done last
  int32_t transfer = -1;  // the number of a copy or memset that is no kernel
  int32_t priority = 0;
  int64_t issued_ns = 0;  // by the driver
  bool by_engine = false;
  bool behind_launch = false;  // a copy or a record behind a launch that is not over

  // Its stream, and what is before it there and elsewhere.
  int32_t stream = -1;
  bool legacy = false;
  bool non_blocking = false;  // it and the legacy stream do not wait for each other
  bool programmatic = false;  // it waits for triggers, and nothing keeps it from that
  int32_t last_launch = -1;   // or copy, memset or end of a graph of the stream
  int32_t last_wait = -1;     // of the stream, after last_launch
  int32_t last_legacy = -1;   // of the legacy stream
  int32_t last_load = -1;
  // What a wait waits for; a launch's completion event; the end of the launch before of a graph.
  int32_t record = -1;

  // Of a node.
  int32_t graph = -1;          // the begin of its graph
  bool follows_nodes = false;  // and so takes no queue
  bool is_prepared = false;    // a copy that begins when it reaches the GPU

  // What it waits for, and who waits for it.
  int32_t pending = 0;           // but for the legacy stream's own operations
  int32_t first_dependent = -1;  // into the dependents of the graph
  bool after_copy = false;       // what it waited for last is a copy of an engine
  int32_t legacy_behind = -1;    // of the legacy stream: the last operation that it waited for,
  int64_t legacy_until_ns = 0;   // and until when
  int32_t held_by = -1;          // before it in its queue, or the last node that it waited for,
  int64_t held_until_ns = 0;     // and until when

  // Milestones.
  bool left = false;  // all of its blocks have
  int64_t triggered_ns = -1;
  int64_t over_ns = -1;  // it has left, and so has all before it in its stream
  int64_t done_ns = -1;  // what waits for it knows that it is over

  bool is_launch() const { return kind == OperationKind::launch; }
  bool done() const { return done_ns >= 0; }
  bool has_reached(const Milestone milestone) const {
    return (milestone == Milestone::triggered ? triggered_ns
            : milestone == Milestone::over    ? over_ns
                                              : done_ns) >= 0;
  }
  // Whether it waits until nothing before it is left in any stream that blocks.
  bool waits_for_all() const { return legacy && !programmatic; }
  // Whether its process must have the GPU for it.
  bool needs_turn() const { return (is_launch() || kind == OperationKind::load) && !by_engine; }
};

}  // namespace tbsched
