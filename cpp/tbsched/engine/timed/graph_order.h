// Which nodes of a CUDA graph the driver launches itself, and how soon each other node follows
// those that it waits for.
//
// An example: nodes 0 and 1 wait for nothing, 2 waits for 0, and 3 for 1 and 2. The driver launches
// 0 and 1. The GPU starts 2 by itself, 0.8 us after 0. But 3 joins two branches, and starts only
// 1.9 us after the last of 1 and 2, as a launch does that comes behind another in its stream.
//
// The rules:
//   1. Every root, a node that waits for nothing, begins a branch. Another node belongs to the
//      branch of the nodes that it waits for; of several branches to the one whose root has the
//      highest number.
//   2. A node that waits for one branch only is a direct dependent of each node that it waits for:
//      the GPU starts it without delay. All others are joins: they wait in memory.
//   3. A node has a few places for what follows it. Each direct dependent takes one, and its joins
//      take one together, the last but one. The places are served in turn.
//   4. Where there are too few places, all that follows waits in memory, like joins.
//   5. What waits in memory is started in the reverse order of nodes. Direct dependents are started
//      in the order of nodes, but taking out the joins changes it: from the last join to the first,
//      the last dependent of the list moves to where the join was.
//
// Source: traces ways/graphs; docs/explanation/graphs.md.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"

namespace tbsched {

struct GraphOrder {
  struct Edge {
    int32_t from;
    int32_t to;
    int32_t latency_ns;  // from the exit of the last block of `from` until `to` may start
  };

  std::vector<int32_t> roots;  // in the order in which they are launched
  std::vector<Edge> edges;     // in the order of `from`, then of latencies
};

// Throws std::invalid_argument for an edge to or from a node that is not there, and for a circle.
GraphOrder graph_order(const Graph& graph, const DeviceSpec& spec);

}  // namespace tbsched
