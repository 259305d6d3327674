#include "tbsched/sim/graph_issue.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <ranges>
#include <variant>

#include "tbsched/policy/launch_order.h"
#include "tbsched/sim/driver_kernels.h"

namespace tbsched {

namespace {
// Returns the graph that was instantiated for a launch.
const Graph* executable_of(const GraphLaunch& launched) {
  return (launched.executable ? launched.executable : launched.graph).get();
}
}  // namespace

const GraphOrder& GraphIssue::upload(const GraphLaunch& launched) {
  const auto [known, is_new] = graphs_.try_emplace(executable_of(launched));
  UploadedGraph& graph = known->second;
  if (!is_new) return graph.order;
  graph.order = graph_order(*launched.graph, spec_);
  // The first root, and roots without kernels, stay in the stream of the launch; the other roots
  // get streams of their own, and so hardware queues.
  graph.streams.assign(graph.order.roots.size(), operations_.stream_named(launched.stream));
  const std::vector<int32_t>& roots = graph.order.queued;
  for (const int32_t root : roots) {
    if (root > 0) graph.streams[root] = operations_.stream_named(std::nullopt);
  }
  // Where branches join, or conditions are reset, the last of the graph's streams takes a hardware
  // queue first.
  const bool resets = !graph.order.deciders.empty() && spec_.condition_reset_ns > 0;
  const bool joins = !graph.order.relays.empty() && spec_.mechanisms.joins_turn_front_ends;
  if (resets || joins) {
    const int32_t last_stream = graph.order.last_root_first
                                    ? graph.streams[roots.back()]
                                    : operations_.stream_named(std::nullopt);
    queues_.use(last_stream);
    if (resets) graph.resetting_stream = last_stream;
  }
  for (const int32_t root : roots) queues_.use(graph.streams[root]);
  return graph.order;
}

int32_t GraphIssue::last_end(const GraphLaunch& launched) const {
  return graphs_.at(executable_of(launched)).last_end;
}

const std::vector<int32_t>& GraphIssue::marks(const GraphLaunch& launched) const {
  return graphs_.at(executable_of(launched)).order.marks;
}

int32_t GraphIssue::issue(const GraphLaunch& launched, const int32_t begin, EventNumbers numbers,
                          const std::span<const int64_t> issue_ns, Numbering& numbering) {
  const UploadedGraph& graph = graphs_.at(executable_of(launched));
  const GraphOrder& order = graph.order;
  const int32_t first = begin + 1;
  const int32_t first_launch = numbers.launch;
  for (const Node& node : launched.graph->nodes) add_node(node, begin, numbers, numbering);
  const auto add_hidden = [&](const size_t count, const int32_t priority) {
    for (size_t k = 0; k < count; ++k) {
      const int32_t launch = numbering.number_of_hidden(numbers.hidden++);
      numbering.set(launch, operations_.size());
      add_launch(launch, priority, begin);
    }
  };
  add_hidden(order.deciders.size(), priority_of(decider(spec_), spec_));
  add_hidden(order.relays.size(), kRelayPriority);
  const int32_t nodes = operations_.size() - first;
  // Launches that wait for the previous graph come first.
  const int64_t now = clock_.now();
  const int64_t from_ns = now < until_ns() ? until_ns() + 1 : now;
  const IssueTimes issued =
      issue_times(order, begin, first_launch, numbering.launches(), issue_ns, from_ns);
  until_gpu_ns_ = clock_.to_gpu(issue_nodes(graph, begin, issued, from_ns));
  // Where the graph waits for nothing, conditions are reset before the first root arrives.
  const bool waits = operations_[begin].pending > 0;
  if (graph.resetting_stream >= 0 && waits) add_reset(graph, begin, from_ns);
  for (const GraphOrder::Edge& edge : order.edges | std::views::reverse) {
    operations_.depend(first + edge.to, first + edge.from, Milestone::over, edge.latency_ns);
  }
  return nodes;
}

void GraphIssue::add_reset(const UploadedGraph& graph, const int32_t begin,
                           const int64_t issued_ns) {
  const Operation before = operations_[begin];
  const int32_t reset = operations_.push({.kind = OperationKind::condition_reset,
                                          .issued_ns = issued_ns,
                                          .issued_gpu_ns = clock_.to_gpu(issued_ns),
                                          .stream = graph.resetting_stream,
                                          .non_blocking = true,
                                          .last_launch = before.last_launch,
                                          .last_wait = before.last_wait,
                                          .last_legacy = before.last_legacy,
                                          .last_load = before.last_load,
                                          .graph = begin,
                                          .held_until_ns = before.held_until_ns});
  operations_.depend(reset, begin);
  for (size_t root = 0; root < graph.order.roots.size(); ++root) {
    if (graph.streams[root] == graph.resetting_stream) continue;
    const int32_t index = begin + 1 + graph.order.roots[root];
    operations_[index].reset = reset;
    operations_.depend(index, reset, Milestone::done,
                       static_cast<int32_t>(spec_.condition_reset_latency_ns));
  }
  operations_.change_at(issued_ns, reset, Change::issued, -1);
}

void GraphIssue::set_end(const GraphLaunch& launched, const int32_t begin, const int32_t end) {
  graphs_.at(executable_of(launched)).last_end = end;
  const Graph& graph = *launched.graph;
  const auto nodes = static_cast<int32_t>(graph.nodes.size() + graph.deciders.size());
  for (int32_t node = 0; node < nodes; ++node) {
    const bool decides = std::cmp_greater_equal(node, graph.nodes.size());
    operations_.depend(end, begin + 1 + node, decides ? Milestone::over : Milestone::done,
                       decides ? static_cast<int32_t>(spec_.node_latency_ns) : 0);
  }
}

bool GraphIssue::is_slow(const Operation& node) const {
  return node.by_engine || (node.transfer >= 0 && engines_.host_function_ns(node.transfer));
}

int64_t GraphIssue::issue_nodes(const UploadedGraph& graph, const int32_t begin,
                                const IssueTimes& issued, const int64_t from_ns) {
  // Dependents are served in the reverse order of these calls. If the graph waits in another stream
  // than the first root's, the first root starts one place later.
  const Operation& first = operations_[begin];
  const bool starts_late = first.stream != graph.streams[0] && first.pending > 0;
  for (size_t root = graph.order.roots.size(); root-- > 0;) {
    const bool is_late = starts_late && root == 0;
    const bool decides = std::cmp_greater_equal(graph.order.roots[root], graph.order.nodes);
    operations_.depend(begin + 1 + graph.order.roots[root], begin, Milestone::done,
                       is_late || decides ? static_cast<int32_t>(spec_.node_place_ns) : 0);
  }
  const auto& [times, known] = issued;
  const int64_t ends_ns = std::max(times.back(), from_ns);
  for (size_t k = 0; k < times.size(); ++k) {
    const auto [node, root] = graph.order.issued[k];
    const int32_t index = begin + 1 + node;
    Operation& operation = operations_[index];
    const bool is_root = graph.order.roots[root] == node;
    if (root > 0) operation.stream = graph.streams[root];
    operation.issued_ns = times[k];
    operation.issued_gpu_ns = clock_.to_gpu(times[k]);
    operation.follows_nodes = !is_root;
    operation.is_prepared = is_root && (root == 0 || k < known);
    if (!is_root && operation.transfer < 0) {
      ++operation.pending;
      operation.held_until_ns = queues_.reaches_gpu_ns(index);
      operations_.change_at(operation.held_until_ns, index, Change::dependency_met);
    }
    // Roots with kernels take their queues first.
    const bool is_first = is_root && operation.transfer < 0;
    operations_.change_at(is_first ? std::max(times[k], from_ns) : ends_ns, index, Change::issued,
                          is_first ? 0 : 1);
  }
  return ends_ns;
}

GraphIssue::IssueTimes GraphIssue::issue_times(const GraphOrder& order, const int32_t begin,
                                               const int32_t first_launch, const int32_t launches,
                                               const std::span<const int64_t> issue_ns,
                                               const int64_t from_ns) const {
  // Times are given for roots alone. The driver issues memsets and successors right before the next
  // root whose time is given. But the last copy by an engine or host function before that root
  // takes the time until then: what is ahead of it follows the root before.
  IssueTimes issued;
  auto& [times, known] = issued;
  int64_t known_ns = std::numeric_limits<int64_t>::min();
  int64_t issued_ns = from_ns - spec_.node_interval_ns;
  for (const auto& [node, root] : order.issued) {
    const Operation& operation = operations_[begin + 1 + node];
    const bool is_root = order.roots[root] == node;
    issued_ns += spec_.node_interval_ns;
    times.push_back(issued_ns);
    const bool decides = std::cmp_greater_equal(node, order.nodes);
    if (decides && known == 0) known_ns = issued_ns;  // what is called first comes behind it
    const bool is_named = operation.launch >= 0 && operation.launch < launches;
    if (!is_root || !is_named || issue_ns.empty()) continue;
    const int64_t given_ns = clock_.to_own(issue_ns[operation.launch - first_launch]);
    if (given_ns > known_ns) {
      issued_ns = given_ns;
      bool is_right_before = true;
      for (size_t k = times.size(); k-- > known;) {
        const auto until_root = static_cast<int64_t>(times.size() - 1 - k);
        const int64_t latest_ns = issued_ns - until_root * spec_.node_interval_ns;
        const int32_t index = begin + 1 + order.issued[k].node;
        is_right_before = is_right_before && !is_slow(operations_[index]);
        times[k] = is_right_before ? latest_ns : std::min(times[k], latest_ns);
      }
    }
    known = times.size();
    known_ns = issued_ns;
  }
  return issued;
}

void GraphIssue::add_node(const Node& node, const int32_t begin, EventNumbers& numbers,
                          Numbering& numbering) {
  std::visit(
      Overloaded{
          [&](const Launch& launch) {
            numbering.set(numbers.launch, operations_.size());
            add_launch(numbers.launch++, priority_of(launch, spec_), begin);
          },
          [&](const Copy& copy) { add_transfer(copy, begin, numbers, numbering); },
          [&](const Memset& memset) { add_transfer(memset, begin, numbers, numbering); },
          [&](const HostFunction& function) { add_transfer(function, begin, numbers, numbering); },
          [&](const RecordEvent& record) { add_transfer(record, begin, numbers, numbering); },
          [&](const WaitEvent& wait) { add_transfer(wait, begin, numbers, numbering); },
      },
      node);
}

template <typename Transfer>
void GraphIssue::add_transfer(const Transfer& asked, const int32_t begin, EventNumbers& numbers,
                              Numbering& numbering) {
  const int32_t transfer = numbers.transfer++;
  const int32_t operation = operations_.size();
  engines_.add(transfer, asked);
  numbering.set_transfer(transfer, operation);
  if (driver_kernel(spec_, asked)) {
    const int32_t kernel = numbering.number_of_hidden(numbers.hidden++);
    numbering.set(kernel, operation);
    add_launch(kernel, 0, begin);
  } else {
    add_launch(transfer_number(transfer), 0, begin);
    operations_[operation].transfer = transfer;
    operations_[operation].by_engine = engines_.has_engine(transfer);
  }
}

void GraphIssue::add_launch(const int32_t launch, const int32_t priority, const int32_t begin) {
  const Operation before = operations_[begin];
  operations_.push({.kind = OperationKind::launch,
                    .launch = launch,
                    .priority = priority,
                    .issued_ns = before.issued_ns,
                    .stream = before.stream,
                    .non_blocking = true,
                    .last_launch = before.last_launch,
                    .last_wait = before.last_wait,
                    .last_legacy = before.last_legacy,
                    .last_load = before.last_load,
                    .graph = begin,
                    .follows_nodes = true,
                    .held_until_ns = before.held_until_ns});
}

}  // namespace tbsched
