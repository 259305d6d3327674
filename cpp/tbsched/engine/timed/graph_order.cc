#include "tbsched/engine/timed/graph_order.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "tbsched/program/refuse.h"

namespace tbsched {
namespace {

using Nodes = std::vector<int32_t>;

struct Dependents {
  Nodes direct;
  Nodes relayed;  // in the order in which the relay starts them
};

// Of each node, in ascending order.
std::vector<Nodes> successors_of(const Graph& graph) {
  const size_t count = graph.nodes.size();
  std::vector<Nodes> successors(count);
  for (const auto& [from, to] : graph.edges) {
    if (from < 0 || to < 0 || std::cmp_greater_equal(from, count) ||
        std::cmp_greater_equal(to, count)) {
      refuse("graph: edges: from " + std::to_string(from) + " to " + std::to_string(to) +
             " of a graph of " + std::to_string(count) + " nodes");
    }
    successors[from].push_back(to);
  }
  for (Nodes& nodes : successors) std::ranges::sort(nodes);
  return successors;
}

// Whether each node joins branches.
std::vector<bool> find_joins(const std::vector<Nodes>& successors, Nodes& roots) {
  const size_t count = successors.size();
  Nodes unmet(count);
  for (const Nodes& nodes : successors) {
    for (const int32_t node : nodes) ++unmet[node];
  }
  Nodes branch(count, -1);
  std::vector<bool> joins(count);
  for (size_t node = 0; node < count; ++node) {
    if (unmet[node] > 0) continue;
    roots.push_back(static_cast<int32_t>(node));
    branch[node] = static_cast<int32_t>(node);
  }
  Nodes order = roots;
  for (size_t done = 0; done < order.size(); ++done) {
    const int32_t own = branch[order[done]];
    for (const int32_t node : successors[order[done]]) {
      if (branch[node] >= 0 && branch[node] != own) joins[node] = true;
      branch[node] = std::max(branch[node], own);
      if (--unmet[node] == 0) order.push_back(node);
    }
  }
  if (order.size() < count) refuse("graph: edges: some nodes wait for each other");
  return joins;
}

Dependents dependents_of(const Nodes& successors, const std::vector<bool>& joins,
                         const size_t places) {
  Dependents found{.direct = successors, .relayed = {}};
  for (size_t k = successors.size(); k-- > 0;) {
    if (!joins[successors[k]]) continue;
    found.relayed.push_back(successors[k]);
    found.direct[k] = found.direct.back();
    found.direct.pop_back();
  }
  if (found.direct.size() + (found.relayed.empty() ? 0 : 1) <= places) return found;
  return {.direct = {}, .relayed = {successors.rbegin(), successors.rend()}};
}

}  // namespace

GraphOrder graph_order(const Graph& graph, const DeviceSpec& spec) {
  const std::vector<Nodes> successors = successors_of(graph);
  const auto nodes = static_cast<int32_t>(successors.size());
  GraphOrder order;
  std::vector<bool> joins = find_joins(successors, order.roots);
  if (!spec.mechanisms.graph_branches) joins.assign(joins.size(), false);
  for (int32_t node = 0; node < nodes; ++node) {
    const auto [direct, relayed] = dependents_of(successors[node], joins, spec.node_places);
    Nodes places = direct;
    if (!relayed.empty()) {
      const int32_t relay = nodes + static_cast<int32_t>(order.relays.size());
      order.relays.push_back(node);
      places.insert(places.end() - (places.empty() ? 0 : 1), relay);
      for (const int32_t to : relayed)
        order.edges.push_back({relay, to, static_cast<int32_t>(spec.node_latency_ns)});
    }
    for (size_t k = 0; k < places.size(); ++k) {
      const size_t served = std::min(k, places.size() - std::min<size_t>(places.size(), 2));
      order.edges.push_back(
          {.from = node,
           .to = places[k],
           .latency_ns = static_cast<int32_t>(spec.node_latency_ns + served * spec.node_place_ns)});
    }
  }
  return order;
}

}  // namespace tbsched
