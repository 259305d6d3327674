// Graphs: the part of Streams that issues them.
#include <algorithm>
#include <optional>
#include <ranges>
#include <span>
#include <variant>

#include "tbsched/engine/timed/streams.h"

namespace tbsched {

const GraphOrder& Streams::bring(const GraphLaunch& launched) {
  const auto [known, is_new] = graphs_.try_emplace(launched.graph.get());
  GraphState& graph = known->second;
  if (!is_new) return graph.order;
  graph.order = graph_order(*launched.graph, spec_);
  use_queue(stream_named(launched.stream), true);
  for (size_t root = 1; root < graph.order.roots.size(); ++root) {
    graph.streams.push_back(stream_named(std::nullopt));
    use_queue(graph.streams.back(), true);
  }
  return graph.order;
}

int64_t Streams::issue(const GraphLaunch& launched, EventNumbers numbers,
                       const std::span<const int64_t> issue_ns, const int64_t now) {
  const Graph& graph = *launched.graph;
  GraphState& state = graphs_.at(&graph);
  const GraphOrder& order = state.order;
  const int32_t number = stream_named(launched.stream);
  const int32_t begin = add({.kind = Kind::graph_begin, .record = state.last_end}, number, now);
  const auto first = static_cast<int32_t>(items_.size());
  const int32_t first_launch = numbers.launch;
  for (const Node& node : graph.nodes) add_node(node, begin, numbers);
  for (size_t k = 0; k < order.relays.size(); ++k) {
    item_of_relay_[numbers.hidden] = static_cast<int32_t>(items_.size());
    add_node(launches_ + numbers.hidden++, kRelayPriority, begin);
  }
  const int64_t ends_ns = issue_roots(state, begin, first_launch, issue_ns, now);
  for (const GraphOrder::Edge& edge : order.edges | std::views::reverse) {
    depend(first + edge.to, first + edge.from, Until::over, edge.latency_ns);
  }
  state.last_end = add({.kind = Kind::graph_end}, number, now);
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    depend(state.last_end, first + static_cast<int32_t>(node));
  }
  streams_[number].go_on_from(state.last_end);
  return ends_ns;
}

// The driver launches them one after the other, within the host's call.
int64_t Streams::issue_roots(const GraphState& graph, const int32_t begin,
                             const int32_t first_launch, const std::span<const int64_t> issue_ns,
                             const int64_t now) {
  int64_t issued_ns = now - spec_.node_interval_ns;
  const std::vector<int32_t>& roots = graph.order.roots;
  // Dependents of an item are told in the reverse order of these calls.
  for (const int32_t node : roots | std::views::reverse) depend(begin + 1 + node, begin);
  for (size_t k = 0; k < roots.size(); ++k) {
    const int32_t root = begin + 1 + roots[k];
    Item& item = items_[root];
    if (k > 0) item.stream = graph.streams[k - 1];
    const bool is_asked = item.launch >= 0 && item.launch < launches_ && !issue_ns.empty();
    const int64_t asked_ns = is_asked ? issue_ns[item.launch - first_launch] - late_ns_ : now;
    const int64_t next_ns = issued_ns + spec_.node_interval_ns;
    issued_ns = asked_ns > std::max(issued_ns, now) ? asked_ns : next_ns;
    item.follows_nodes = false;
    item.issued_ns = issued_ns;
    if (issued_ns == now) {
      enqueue(root);
    } else {
      change_later({issued_ns, root, Change::issued});
    }
  }
  return std::max(issued_ns, now);
}

void Streams::add_node(const Node& node, const int32_t begin, EventNumbers& numbers) {
  std::visit(Overloaded{
                 [&](const Launch& launch) {
                   item_of_launch_[numbers.launch] = static_cast<int32_t>(items_.size());
                   add_node(numbers.launch++, launch.priority, begin);
                 },
                 [&](const Copy& copy) { add_transfer_node(copy, begin, numbers); },
                 [&](const Memset& memset) { add_transfer_node(memset, begin, numbers); },
             },
             node);
}

// It waits for what comes before the graph, or for other nodes, and later work for all of them.
void Streams::add_node(const int32_t launch, const int32_t priority, const int32_t begin) {
  Item item = items_[begin];
  item.kind = Kind::launch;
  item.legacy = false;
  item.non_blocking = true;
  item.launch = launch;
  item.priority = priority;
  item.unmet = 0;
  item.first_dependent = -1;
  item.record = -1;
  item.graph = begin;
  item.follows_nodes = true;
  ++not_over_;
  push(item);
}

}  // namespace tbsched
