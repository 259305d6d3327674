#include "tbsched/sim/graph_order.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <queue>
#include <ranges>
#include <string>
#include <utility>
#include <variant>

#include "tbsched/program/refuse.h"
#include "tbsched/sim/driver_kernels.h"

namespace tbsched {
namespace {

using Nodes = std::vector<int32_t>;

// The nodes that follow a node.
struct Dependents {
  Nodes direct;   // in the order in which they start
  Nodes relayed;  // in the order in which the relay starts them
};

// Returns the successors of each node, in ascending order.
std::vector<Nodes> successors_of(const Graph& graph) {
  const size_t count = graph.nodes.size() + graph.deciders.size();
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

// Returns the nodes and deciders in the driver's order: by number, and deciders before the node
// before which they stand.
Nodes driver_order(const Graph& graph) {
  const auto nodes = static_cast<int32_t>(graph.nodes.size());
  Nodes order(graph.nodes.size() + graph.deciders.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](const int32_t node) {
    return node < nodes ? std::pair(node, 1) : std::pair(graph.deciders[node - nodes], 0);
  });
  return order;
}

// Returns whether each node joins branches. Sets the roots, in the driver's order, and the branch
// of each node, an index into roots: the highest of those that it joins. Refuses a circle.
std::vector<bool> find_joins(const std::vector<Nodes>& successors, const Nodes& driver_order,
                             Nodes& roots, Nodes& branch) {
  const size_t count = successors.size();
  Nodes unmet(count);
  for (const Nodes& nodes : successors) {
    for (const int32_t node : nodes) ++unmet[node];
  }
  branch.assign(count, -1);
  std::vector<bool> joins(count);
  for (const int32_t node : driver_order) {
    if (unmet[node] > 0) continue;
    branch[node] = static_cast<int32_t>(roots.size());
    roots.push_back(node);
  }
  Nodes order = roots;
  for (size_t done = 0; done < order.size(); ++done) {
    const int32_t root = branch[order[done]];
    for (const int32_t node : successors[order[done]]) {
      if (branch[node] >= 0 && branch[node] != root) joins[node] = true;
      branch[node] = std::max(branch[node], root);
      if (--unmet[node] == 0) order.push_back(node);
    }
  }
  if (order.size() < count) {
    const auto waiting = std::ranges::find_if(unmet, [](const int32_t count) { return count > 0; });
    refuse("graph: edges: " + std::to_string(count - order.size()) + " of " +
           std::to_string(count) + " nodes wait for each other, node " +
           std::to_string(waiting - unmet.begin()) + " is the first");
  }
  return joins;
}

// Removes the nodes that match, from the last to the first: each time the last node moves to the
// empty place. Returns them.
template <typename Is>
Nodes take_out(Nodes& nodes, const Is& is) {
  Nodes taken;
  for (size_t k = nodes.size(); k-- > 0;) {
    if (!is(nodes[k])) continue;
    taken.push_back(nodes[k]);
    nodes[k] = nodes.back();
    nodes.pop_back();
  }
  return taken;
}

// Returns whether the GPU does each node without running a kernel.
std::vector<bool> nodes_without_kernel(const Graph& graph, const DeviceSpec& spec) {
  const auto has_none = Overloaded{
      [](const Launch&) { return false; },
      [&](const auto& transfer) { return !is_kernel(spec, transfer); },
  };
  std::vector<bool> no_kernel(graph.nodes.size() + graph.deciders.size());
  if (!spec.mechanisms.graph_copies) return no_kernel;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    no_kernel[node] = std::visit(has_none, graph.nodes[node]);
  }
  return no_kernel;
}

// Returns whether the driver issues each node: roots, nodes without kernels, and the successors of
// these.
std::vector<bool> nodes_issued_by_driver(const std::vector<Nodes>& successors, const Nodes& roots,
                                         const std::vector<bool>& no_kernel) {
  std::vector<bool> is_issued = no_kernel;
  for (const int32_t root : roots) is_issued[root] = true;
  for (size_t node = 0; node < successors.size(); ++node) {
    if (!no_kernel[node]) continue;
    for (const int32_t next : successors[node]) is_issued[next] = true;
  }
  return is_issued;
}

// Returns the nodes that the driver issues, in its order.
std::vector<GraphOrder::Issued> issued_in_order(const Nodes& driver_order,
                                                const std::vector<bool>& is_issued,
                                                const Nodes& branch) {
  std::vector<GraphOrder::Issued> issued;
  for (const int32_t node : driver_order) {
    if (is_issued[node]) issued.push_back({node, branch[node]});
  }
  return issued;
}

// Returns the order in which roots take queues. The first root takes that of the launch's stream.
// Roots without kernels come last.
Nodes queued_of(const Nodes& roots, const std::vector<bool>& no_kernel) {
  Nodes order(roots.size());
  std::iota(order.begin(), order.end(), 0);
  const Nodes last = take_out(order, [&](const int32_t root) { return no_kernel[roots[root]]; });
  order.insert(order.end(), last.rbegin(), last.rend());
  std::ranges::stable_partition(order, [](const int32_t root) { return root == 0; });
  return order;
}

// Returns a topological order: among nodes that may come next, the first in the driver's order
// comes first.
Nodes topological_order(const std::vector<Nodes>& successors, const Nodes& driver_order,
                        const Nodes& roots) {
  Nodes unmet(successors.size());
  Nodes position(successors.size());
  for (size_t k = 0; k < driver_order.size(); ++k)
    position[driver_order[k]] = static_cast<int32_t>(k);
  for (const Nodes& nodes : successors) {
    for (const int32_t node : nodes) ++unmet[node];
  }
  const auto is_later = [&](const int32_t a, const int32_t b) { return position[a] > position[b]; };
  std::priority_queue next(roots.begin(), roots.end(), is_later);
  Nodes order;
  while (!next.empty()) {
    order.push_back(next.top());
    next.pop();
    for (const int32_t node : successors[order.back()]) {
      if (--unmet[node] == 0) next.push(node);
    }
  }
  return order;
}

// Returns whether a node records a CUDA event or waits for one.
bool is_mark(const Node& node) {
  return std::holds_alternative<RecordEvent>(node) || std::holds_alternative<WaitEvent>(node);
}

// Returns the node that begins the last of the streams into which the driver divides the graph; -1:
// the body of a conditional node begins it. `order`: all nodes, in topological order;
// `first_decider`: deciders have the numbers from here on. A node without a stream begins one. Then
// it passes its own on to a node without a stream: the last join, or else the first direct
// dependent. Other direct dependents begin streams at once: all if a join follows, else all but the
// last.
int32_t first_of_last_stream(const std::vector<Nodes>& successors, const std::vector<bool>& joins,
                             const Nodes& order, const int32_t first_decider) {
  int32_t last = -1;
  std::vector<bool> has_stream(successors.size());
  const auto begin = [&](const int32_t node) {
    if (has_stream[node]) return;
    has_stream[node] = true;
    last = node;
  };
  const auto is_join = [&](const int32_t node) { return joins[node]; };
  const auto has_none = [&](const int32_t node) { return !has_stream[node]; };
  for (const int32_t node : order) {
    begin(node);
    if (node >= first_decider) last = -1;
    Nodes direct = successors[node];
    const Nodes joined = take_out(direct, is_join);  // the last one first
    std::ranges::sort(direct);
    const auto heir = joined.empty() ? std::ranges::find_if(direct, has_none) : direct.end();
    if (heir != direct.end()) has_stream[*heir] = true;
    if (!direct.empty() && joined.empty()) direct.pop_back();
    std::ranges::for_each(direct, begin);
    const auto join = std::ranges::find_if(joined, has_none);
    if (join != joined.end()) has_stream[*join] = true;
  }
  return last;
}

// Returns which successors of a node follow it directly, and which are started by a relay: those
// that join branches, or all if there are too few `places`.
Dependents dependents_of(const Nodes& successors, const std::vector<bool>& joins,
                         const size_t places) {
  Dependents dependents{.direct = successors, .relayed = {}};
  dependents.relayed = take_out(dependents.direct, [&](const int32_t node) { return joins[node]; });
  if (dependents.direct.size() + (dependents.relayed.empty() ? 0 : 1) <= places) return dependents;
  return {.direct = {}, .relayed = {successors.rbegin(), successors.rend()}};
}

// Returns a node that each decider follows, or -1.
Nodes nodes_before_deciders(const Graph& graph) {
  const auto nodes = static_cast<int32_t>(graph.nodes.size());
  Nodes neighbours(graph.deciders.size(), -1);
  // Deciders are in the order in which they decide.
  Edges edges = graph.edges;
  std::ranges::sort(edges, {}, [](const auto& edge) { return edge[1]; });
  for (const auto& [from, to] : edges) {
    if (to < nodes || neighbours[to - nodes] >= 0) continue;
    neighbours[to - nodes] = from < nodes ? from : neighbours[from - nodes];
  }
  return neighbours;
}

}  // namespace

GraphOrder graph_order(const Graph& graph, const DeviceSpec& spec) {
  if (graph.nodes.empty()) refuse("graph: it has no nodes");
  const std::vector<Nodes> successors = successors_of(graph);
  const auto nodes = static_cast<int32_t>(successors.size());
  GraphOrder order;
  Nodes branch;
  const Nodes in_order = driver_order(graph);
  std::vector<bool> joins = find_joins(successors, in_order, order.roots, branch);
  const Nodes in_topological_order = topological_order(successors, in_order, order.roots);
  order.nodes = static_cast<int32_t>(graph.nodes.size());
  order.deciders = nodes_before_deciders(graph);
  if (std::ranges::any_of(graph.nodes, is_mark)) {
    order.marks = in_topological_order;
    std::erase_if(order.marks, [&](const int32_t node) {
      return node >= order.nodes || !is_mark(graph.nodes[node]);
    });
  }
  if (!spec.mechanisms.graph_branches) joins.assign(joins.size(), false);
  const std::vector<bool> no_kernel = nodes_without_kernel(graph, spec);
  const std::vector<bool> is_issued = nodes_issued_by_driver(successors, order.roots, no_kernel);
  order.issued = issued_in_order(in_order, is_issued, branch);
  order.queued = queued_of(order.roots, no_kernel);
  const int64_t relayed_ns = spec.relay_ns + spec.exit_latency_ns + spec.node_latency_ns;
  for (int32_t node = 0; node < nodes; ++node) {
    Nodes by_gpu = successors[node];
    const Nodes by_driver = take_out(by_gpu, [&](const int32_t to) { return is_issued[to]; });
    std::ranges::sort(by_gpu);
    // The GPU waits for what the node has written before it copies or sets memory.
    const bool is_written =
        std::ranges::any_of(by_driver, [&](int32_t to) { return no_kernel[to]; });
    const int64_t first_ns = spec.node_latency_ns + (is_written ? spec.host_write_ns : 0);
    const auto add = [&](const int32_t from, const int32_t to, const int64_t latency_ns) {
      order.edges.push_back({from, to, static_cast<int32_t>(latency_ns)});
    };
    const auto [direct, relayed] = dependents_of(by_gpu, joins, spec.node_places);
    Nodes places = direct;
    if (!relayed.empty()) {
      const int32_t relay = nodes + static_cast<int32_t>(order.relays.size());
      order.relays.push_back(node);
      places.insert(places.end() - (places.empty() ? 0 : 1), relay);
      for (const int32_t to : relayed) add(relay, to, spec.node_latency_ns);
    }
    for (size_t k = 0; k < places.size(); ++k) {
      const size_t served = std::min(k, places.size() - std::min<size_t>(places.size(), 2));
      add(node, places[k], first_ns + static_cast<int64_t>(served) * spec.node_place_ns);
    }
    // If these join branches, they start as late as after a relay.
    int64_t place_ns = 0;
    for (const int32_t to : by_driver | std::views::reverse) {
      add(node, to, first_ns + (joins[to] ? relayed_ns : 0) + place_ns);
      if (no_kernel[node]) place_ns += spec.node_place_ns;
    }
  }
  const int32_t last_root = order.roots[order.queued.back()];
  order.last_root_first =
      first_of_last_stream(successors, joins, in_topological_order, order.nodes) == last_root;
  return order;
}

}  // namespace tbsched
