// Graphs: the part of Streams that issues them.
#include <algorithm>
#include <optional>
#include <ranges>
#include <span>
#include <variant>

#include "tbsched/engine/timed/streams.h"

namespace tbsched {

const GraphOrder& Streams::order_of(const Graph& graph) {
  const auto [known, is_new] = graphs_.try_emplace(&graph);
  if (is_new) known->second.order = graph_order(graph, spec_);
  return known->second.order;
}

int64_t Streams::issue(const GraphLaunch& launched, EventNumbers numbers,
                       const std::span<const int64_t> issue_ns, const int64_t now) {
  const Graph& graph = *launched.graph;
  const GraphOrder& order = order_of(graph);
  int32_t& last_end = graphs_.at(&graph).last_end;
  const int32_t number = stream_named(launched.stream);
  const int32_t begin = add({.kind = Kind::graph_begin, .record = last_end}, number, now);
  const auto first = static_cast<int32_t>(items_.size());
  const int32_t first_launch = numbers.launch;
  for (const Node& node : graph.nodes) add_node(node, begin, numbers);
  for (size_t k = 0; k < order.relays.size(); ++k) {
    item_of_relay_[numbers.hidden] = static_cast<int32_t>(items_.size());
    add_node(launches_ + numbers.hidden++, kRelayPriority, begin);
  }
  const int64_t ends_ns = issue_roots(order, begin, first_launch, issue_ns, now);
  // Dependents of an item are told in the reverse order of these calls.
  for (const GraphOrder::Edge& edge : order.edges | std::views::reverse) {
    depend(first + edge.to, first + edge.from, Until::over, edge.latency_ns);
  }
  last_end = add({.kind = Kind::graph_end}, number, now);
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    depend(last_end, first + static_cast<int32_t>(node));
  }
  streams_[number].go_on_from(last_end);
  return ends_ns;
}

// The driver launches them one after the other, within the host's call.
int64_t Streams::issue_roots(const GraphOrder& order, const int32_t begin,
                             const int32_t first_launch, const std::span<const int64_t> issue_ns,
                             const int64_t now) {
  int64_t issued_ns = now - spec_.node_interval_ns;
  for (const int32_t node : order.roots) {
    const int32_t root = begin + 1 + node;
    Item& item = items_[root];
    const bool is_asked = item.launch >= 0 && item.launch < launches_ && !issue_ns.empty();
    const int64_t asked_ns = is_asked ? issue_ns[item.launch - first_launch] : now;
    const int64_t next_ns = issued_ns + spec_.node_interval_ns;
    issued_ns = asked_ns > std::max(issued_ns, now) ? asked_ns : next_ns;
    item.follows_nodes = false;
    item.issued_ns = issued_ns;
    depend(root, begin);
    if (issued_ns == now) {
      enqueue_root(root);
    } else {
      later_.push({issued_ns, root, Change::issued});
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
  push(item);
}

// As a launch of a stream of its own.
void Streams::enqueue_root(const int32_t index) {
  const int32_t stream = stream_named(std::nullopt);
  enqueue(index, streams_[stream], stream);
}

}  // namespace tbsched
