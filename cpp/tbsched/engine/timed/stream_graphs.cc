// Graphs: the part of Streams that issues them.
#include <algorithm>
#include <optional>
#include <ranges>
#include <span>
#include <variant>

#include "tbsched/engine/timed/streams.h"

namespace tbsched {

namespace {
const Graph* executable_of(const GraphLaunch& launched) {
  return (launched.executable ? launched.executable : launched.graph).get();
}
}  // namespace

const GraphOrder& Streams::bring(const GraphLaunch& launched) {
  const auto [known, is_new] = graphs_.try_emplace(executable_of(launched));
  GraphState& graph = known->second;
  if (!is_new) return graph.order;
  graph.order = graph_order(*launched.graph, spec_);
  graph.streams.assign(graph.order.roots.size(), stream_named(launched.stream));
  const std::vector<int32_t>& roots = graph.order.queued;
  for (const int32_t root : roots) {
    if (root > 0) graph.streams[root] = stream_named(std::nullopt);
  }
  if (!graph.order.relays.empty() && spec_.mechanisms.joins_turn_front_ends) {
    use_queue(graph.order.last_root_first ? graph.streams[roots.back()]
                                          : stream_named(std::nullopt));
  }
  for (const int32_t root : roots) use_queue(graph.streams[root]);
  return graph.order;
}

int64_t Streams::issue(const GraphLaunch& launched, EventNumbers numbers,
                       const std::span<const int64_t> issue_ns, const int64_t now) {
  const Graph& graph = *launched.graph;
  GraphState& state = graphs_.at(executable_of(launched));
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
  // Launches that wait for the graph before come first.
  const int64_t from_ns = now < graph_until_ns_ ? graph_until_ns_ + 1 : now;
  graph_until_ns_ = issue_nodes(state, begin, first_launch, issue_ns, from_ns);
  for (const GraphOrder::Edge& edge : order.edges | std::views::reverse) {
    depend(first + edge.to, first + edge.from, Until::over, edge.latency_ns);
  }
  state.last_end = add({.kind = Kind::graph_end}, number, now);
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    depend(state.last_end, first + static_cast<int32_t>(node));
  }
  streams_[number].go_on_from(state.last_end);
  return graph_until_ns_;
}

// The driver issues them one after the other, within the host's call.
int64_t Streams::issue_nodes(const GraphState& graph, const int32_t begin,
                             const int32_t first_launch, const std::span<const int64_t> issue_ns,
                             const int64_t now) {
  // Dependents of an item are told in the reverse order of these calls.
  // Where it waits in another stream than its first one, its first root is told a place later.
  const bool told_late = items_[begin].stream != graph.streams[0] && items_[begin].unmet > 0;
  for (const int32_t node : graph.order.roots | std::views::reverse) {
    const bool is_late = told_late && node == graph.order.roots.front();
    depend(begin + 1 + node, begin, Until::done, is_late ? spec_.node_place_ns : 0);
  }
  const auto [times, known] = issue_times(graph.order, begin, first_launch, issue_ns, now);
  const int64_t ends_ns = std::max(times.back(), now);
  for (size_t k = 0; k < times.size(); ++k) {
    const auto [node, root] = graph.order.issued[k];
    const int32_t index = begin + 1 + node;
    Item& item = items_[index];
    const bool is_root = graph.order.roots[root] == node;
    if (root > 0) item.stream = graph.streams[root];
    item.issued_ns = times[k];
    item.follows_nodes = !is_root;
    item.is_prepared = is_root && (root == 0 || k < known);
    if (!is_root && item.transfer < 0) {
      ++item.unmet;
      item.at_head_ns = reaches_gpu_ns(index);
      change_later({item.at_head_ns, index, Change::one_met});
    }
    // Roots with kernels take their queues first.
    const bool is_first = is_root && item.transfer < 0;
    change_later(
        {is_first ? std::max(times[k], now) : ends_ns, index, Change::issued, is_first ? 0 : 1});
  }
  return ends_ns;
}

// When the driver issues each. Nobody says when it issues copies, memsets and what follows them: it
// does so right before the next root of which that is known.
Streams::IssueTimes Streams::issue_times(const GraphOrder& order, const int32_t begin,
                                         const int32_t first_launch,
                                         const std::span<const int64_t> issue_ns,
                                         const int64_t now) const {
  IssueTimes found;
  auto& [times, known] = found;
  int64_t known_ns = now;
  int64_t issued_ns = now - spec_.node_interval_ns;
  for (const auto& [node, root] : order.issued) {
    const Item& item = items_[begin + 1 + node];
    const bool is_root = order.roots[root] == node;
    issued_ns += spec_.node_interval_ns;
    times.push_back(issued_ns);
    if (!is_root || item.launch < 0 || item.launch >= launches_ || issue_ns.empty()) continue;
    const int64_t asked_ns = issue_ns[item.launch - first_launch] - late_ns_;
    if (known == 0 || asked_ns > known_ns) {
      issued_ns = asked_ns;
      for (const int64_t back : std::views::iota(size_t{0}, times.size() - known)) {
        times[times.size() - 1 - back] = issued_ns - back * spec_.node_interval_ns;
      }
    }
    known = times.size();
    known_ns = issued_ns;
  }
  return found;
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
