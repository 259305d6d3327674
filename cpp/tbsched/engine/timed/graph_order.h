// How the driver issues a CUDA graph: which nodes it launches itself, in which order, and how long
// each other node takes to follow those that it waits for.
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
  std::vector<Edge> edges;     // as the graph has them
};

// Throws std::invalid_argument for an edge to or from a node that is not there, and for a circle.
GraphOrder graph_order(const Graph& graph, const DeviceSpec& spec);

}  // namespace tbsched
