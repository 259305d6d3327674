#include "tbsched/engine/timed/graph_order.h"

#include <cstddef>
#include <string>
#include <utility>

#include "tbsched/program/refuse.h"

namespace tbsched {
namespace {

using Nodes = std::vector<int32_t>;

void check_no_circle(const std::vector<Nodes>& successors, Nodes predecessors) {
  Nodes free;
  for (size_t node = 0; node < predecessors.size(); ++node) {
    if (predecessors[node] == 0) free.push_back(static_cast<int32_t>(node));
  }
  for (size_t done = 0; done < free.size(); ++done) {
    for (const int32_t node : successors[free[done]]) {
      if (--predecessors[node] == 0) free.push_back(node);
    }
  }
  if (free.size() < predecessors.size()) refuse("graph: edges: some nodes wait for each other");
}

}  // namespace

GraphOrder graph_order(const Graph& graph, const DeviceSpec& spec) {
  const size_t count = graph.nodes.size();
  std::vector<Nodes> successors(count);
  Nodes predecessors(count);
  GraphOrder order;
  for (const auto& [from, to] : graph.edges) {
    if (from < 0 || to < 0 || std::cmp_greater_equal(from, count) ||
        std::cmp_greater_equal(to, count)) {
      refuse("graph: edges: from " + std::to_string(from) + " to " + std::to_string(to) +
             " of a graph of " + std::to_string(count) + " nodes");
    }
    successors[from].push_back(to);
    ++predecessors[to];
    order.edges.push_back({from, to, static_cast<int32_t>(spec.node_latency_ns)});
  }
  check_no_circle(successors, predecessors);
  for (size_t node = 0; node < count; ++node) {
    if (predecessors[node] == 0) order.roots.push_back(static_cast<int32_t>(node));
  }
  return order;
}

}  // namespace tbsched
