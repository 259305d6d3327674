#include "tbsched/engine/timed/streams.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <string>
#include <utility>
#include <variant>

#include "tbsched/program/refuse.h"

namespace tbsched {

Streams::Streams(const DeviceSpec& spec)
    : spec_(spec),
      order_(launch_order_named(spec.launch_order)),
      transfers_(spec),
      queues_(spec.hardware_queues),
      front_ends_(spec.front_ends) {}

void Streams::make_non_blocking(const int32_t stream) {
  streams_[stream_named(stream)].non_blocking = true;
}

void Streams::issue(const Event& event, const std::span<const int64_t> issue_ns,
                    const int64_t now) {
  settle(now);
  std::visit(Overloaded{
                 [&](const Launch& launch) { issue(launch, now); },
                 [](const Release&) {},  // of held launches, which are not issued here
                 [&](const RecordEvent& record) { issue(record, now); },
                 [&](const WaitEvent& wait) { issue(wait, now); },
                 [&](const GraphLaunch& launched) { issue(launched, issue_ns, now); },
             },
             event);
  settle(now);
}

void Streams::issue(const Launch& launch, const int64_t now) {
  const int32_t number = stream_named(launch.stream);
  StreamState& stream = streams_[number];
  if (!launch.stream) stream.non_blocking = launch.non_blocking;
  const bool programmatic = is_programmatic(launch, stream);
  const int32_t index = add({.kind = Kind::launch,
                             .programmatic = programmatic,
                             .launch = next_launch(),
                             .priority = launch.priority},
                            number, now);
  item_of_launch_.push_back(index);
  enqueue(index);
  stream.go_on_from(index);
  if (!launch.completion_event) return;
  // It happens by itself, not in the order of the stream.
  const int32_t record = push({.kind = Kind::record,
                               .non_blocking = true,
                               .stream = number,
                               .last_launch = index,
                               .issued_ns = now});
  items_[index].record = record;
  last_record_[*launch.completion_event] = record;
}

void Streams::issue(const RecordEvent& record, const int64_t now) {
  last_record_[record.event] = add({.kind = Kind::record}, stream_named(record.stream), now);
}

void Streams::issue(const WaitEvent& wait, const int64_t now) {
  const int32_t number = stream_named(wait.stream);
  StreamState& stream = streams_[number];
  const auto known = last_record_.find(wait.event);
  const int32_t record = known == last_record_.end() ? -1 : known->second;
  if (record >= 0 && !items_[record].done() && items_[record].stream != number) {
    stream.waits_for_event = true;
  }
  stream.last_wait = add({.kind = Kind::wait, .record = record}, number, now);
}

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

void Streams::issue(const GraphLaunch& launched, const std::span<const int64_t> issue_ns,
                    const int64_t now) {
  const Graph& graph = *launched.graph;
  GraphState& state = graphs_.at(&graph);
  const GraphOrder& order = state.order;
  const int32_t number = stream_named(launched.stream);
  const int32_t begin = add({.kind = Kind::graph_begin, .record = state.last_end}, number, now);
  const auto first = static_cast<int32_t>(items_.size());
  for (const Node& node : graph.nodes) add_node(node, begin);
  for (size_t k = 0; k < order.relays.size(); ++k) {
    item_of_relay_.push_back(static_cast<int32_t>(items_.size()));
    add_node(launches_ + static_cast<int32_t>(item_of_relay_.size()) - 1, kRelayPriority, begin);
  }
  issue_roots(state, begin, issue_ns, now);
  for (const GraphOrder::Edge& edge : order.edges | std::views::reverse) {
    depend(first + edge.to, first + edge.from, Until::over, edge.latency_ns);
  }
  state.last_end = add({.kind = Kind::graph_end}, number, now);
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    depend(state.last_end, first + static_cast<int32_t>(node));
  }
  streams_[number].go_on_from(state.last_end);
}

// The driver launches them one after the other, within the host's call.
void Streams::issue_roots(const GraphState& graph, const int32_t begin,
                          const std::span<const int64_t> issue_ns, const int64_t now) {
  const auto first_launch = next_launch() - static_cast<int32_t>(issue_ns.size());
  int64_t issued_ns = now - spec_.node_interval_ns;
  const std::vector<int32_t>& roots = graph.order.roots;
  // Dependents of an item are told in the reverse order of these calls.
  for (const int32_t node : roots | std::views::reverse) depend(begin + 1 + node, begin);
  for (size_t k = 0; k < roots.size(); ++k) {
    const int32_t root = begin + 1 + roots[k];
    Item& item = items_[root];
    if (k > 0) item.stream = graph.streams[k - 1];
    const int64_t asked_ns = item.transfer == nullptr ? issue_ns[item.launch - first_launch] : now;
    const int64_t next_ns = issued_ns + spec_.node_interval_ns;
    issued_ns = asked_ns > std::max(issued_ns, now) ? asked_ns : next_ns;
    item.follows_nodes = false;
    item.issued_ns = issued_ns;
    if (issued_ns == now) {
      enqueue(root);
    } else {
      later_.push({issued_ns, root, Change::issued});
    }
    call_ends_ns_ = issued_ns;
  }
}

// A launch without a name has a stream of its own.
int32_t Streams::stream_named(const std::optional<int32_t> name) {
  auto number = static_cast<int32_t>(streams_.size());
  if (name) number = number_of_stream_.try_emplace(*name, number).first->second;
  if (std::cmp_equal(number, streams_.size())) {
    streams_.push_back({.legacy = name == kLegacyStream});
  }
  return number;
}

int32_t Streams::add(Item item, const int32_t number, const int64_t now) {
  StreamState& stream = streams_[number];
  item.stream = number;
  item.legacy = stream.legacy;
  item.non_blocking = stream.non_blocking;
  item.last_launch = stream.last_launch;
  item.last_wait = stream.last_wait;
  item.last_legacy = stream.non_blocking ? -1 : last_legacy_;
  item.issued_ns = now;
  item.at_head_ns = now;
  const int32_t index = push(item);
  if (item.programmatic) {
    depend(index, item.last_launch, Until::triggered);
    depend(index, item.last_launch, Until::over);
    depend(index, launch_before(index, kMostInFlight));
  } else {
    depend(index, stream.last);
  }
  depend(index, item.record);
  if (item.legacy) {
    last_legacy_ = index;
  } else {
    depend(index, item.last_legacy);
    if (!item.non_blocking) last_other_ = index;
  }
  stream.last = index;
  if (item.is_event() && items_[index].unmet == 0 && (!item.legacy || first_undone_ == index)) {
    finished_.push_back(index);
  }
  return index;
}

void Streams::add_node(const Node& node, const int32_t begin) {
  const auto add_transfer = [&] {
    add_node(transfer_number(transfers_issued_++), 0, begin);
    items_.back().transfer = &node;
  };
  std::visit(Overloaded{
                 [&](const Launch& launch) {
                   item_of_launch_.push_back(static_cast<int32_t>(items_.size()));
                   add_node(next_launch() - 1, launch.priority, begin);
                 },
                 [&](const Copy&) { add_transfer(); },
                 [&](const Memset&) { add_transfer(); },
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

int32_t Streams::push(const Item& item) {
  const auto index = static_cast<int32_t>(items_.size());
  items_.push_back(item);
  if (item.non_blocking && first_undone_ == index) ++first_undone_;
  return index;
}

bool Streams::is_programmatic(const Launch& launch, const StreamState& stream) const {
  if (!launch.programmatic || launch.cooperative || stream.last_launch < 0) return false;
  const Item& before = items_[stream.last_launch];
  if (before.kind != Kind::launch || before.done() || stream.waits_for_event) return false;
  const int32_t in_between = stream.legacy ? last_other_ : last_legacy_;
  return stream.non_blocking || in_between < stream.last_launch;
}

int32_t Streams::launch_before(int32_t index, const int32_t count) const {
  for (int32_t k = 0; k < count && index >= 0; ++k) index = items_[index].last_launch;
  return index;
}

void Streams::depend(const int32_t index, const int32_t on, const Until until,
                     const int32_t latency_ns) {
  if (on < 0 || items_[on].has_been(until)) return;
  Item& item = items_[index];
  // When a programmatic launch starts, what comes before it may still run.
  if (until != Until::over || !item.programmatic) ++item.unmet;
  dependents_.push_back({index, items_[on].first_dependent, latency_ns, until});
  items_[on].first_dependent = static_cast<int32_t>(dependents_.size()) - 1;
}

std::optional<int32_t> Streams::take(const bool room_for_grid, const int64_t now) {
  settle(now);
  if (transfers_issued_ > 0) begin_transfers(now);
  if (!room_for_grid) return std::nullopt;
  Queue* first = nullptr;
  for (Queue& queue : queues_) {
    if (queue.empty() || !ready(queue.items[queue.head], now)) continue;
    if (first == nullptr || before(queue.items[queue.head], first->items[first->head])) {
      first = &queue;
    }
  }
  int32_t taken = first == nullptr ? -1 : first->items[first->head];
  if (!nodes_.empty() && (taken < 0 || before(nodes_.begin()->item, taken))) {
    taken = nodes_.extract(nodes_.begin()).value().item;
  } else if (first == nullptr) {
    return std::nullopt;
  } else {
    pass_head(*first, now);
  }
  const Item& item = items_[taken];
  if (item.record >= 0) {
    later_.push({now + spec_.launch_completion_latency_ns, item.record, Change::done});
  }
  return item.launch;
}

void Streams::pass_head(Queue& queue, const int64_t now) {
  if (++queue.head < queue.items.size()) items_[queue.items[queue.head]].at_head_ns = now;
}

// Those at the head of a queue. They need no room for a grid.
void Streams::begin_transfers(const int64_t now) {
  for (Queue& queue : queues_) {
    while (!queue.empty() && items_[queue.items[queue.head]].transfer != nullptr &&
           ready(queue.items[queue.head], now)) {
      begin_transfer(queue.items[queue.head], now);
      pass_head(queue, now);
    }
  }
}

void Streams::begin_transfer(const int32_t index, const int64_t now) {
  const Item& item = items_[index];
  const Node* const after =
      item.follows_nodes && item.ahead >= 0 ? items_[item.ahead].transfer : nullptr;
  const int64_t end_ns = transfers_.begin(*item.transfer, after, now);
  if (now > kLatestNs || end_ns > 2 * kLatestNs) {
    refuse("graph: duration: a copy or memset from " + std::to_string(now) + " to " +
           std::to_string(end_ns) + " ns is beyond the range of time");
  }
  later_.push({end_ns, index, Change::transferred});
}

int32_t Streams::rank(const int32_t index) const {
  return order_.by_priority ? items_[index].priority : 0;
}

bool Streams::before(const int32_t a, const int32_t b) const {
  return rank(a) != rank(b) ? rank(a) < rank(b) : a < b;
}

bool Streams::ready(const int32_t index, const int64_t now) const {
  const Item& item = items_[index];
  return waits_for_nothing(index) && item.seen_ns <= now && reaches_gpu_ns(index) <= now;
}

bool Streams::waits_for_nothing(const int32_t index) const {
  const Item& item = items_[index];
  return item.unmet == 0 && (!item.waits_for_all() || first_undone_ == index);
}

int64_t Streams::next_change(const int64_t now) const {
  int64_t next = later_.empty() ? kNever : later_.top().time_ns;
  return std::max(next, now);
}

void Streams::trigger(const int32_t launch, const int64_t at_ns) {
  later_.push({at_ns + spec_.trigger_latency_ns, item_of(launch), Change::triggered});
}

std::span<const int32_t> Streams::end(const int32_t launch, const int64_t now) {
  const int32_t index = item_of(launch);
  first_in_stream_.clear();
  items_[index].left = true;
  if (first_in_stream(launch)) get_over(index, now);
  return first_in_stream_;
}

bool Streams::first_in_stream(const int32_t launch) const {
  const Item& item = items_[item_of(launch)];
  return !item.programmatic || items_[item.last_launch].has_been(Until::over);
}

void Streams::get_over(int32_t index, const int64_t now) {
  while (index >= 0) {
    items_[index].over_ns = now;
    later_.push({now + spec_.completion_latency_ns, index, Change::done});
    int32_t next = -1;
    for (int32_t edge = items_[index].first_dependent; edge >= 0; edge = dependents_[edge].next) {
      const Dependent& dependent = dependents_[edge];
      if (dependent.until != Until::over) continue;
      Item& item = items_[dependent.item];
      if (item.programmatic) {
        first_in_stream_.push_back(item.launch);
        if (item.left) next = dependent.item;
        continue;
      }
      const int64_t known_ns = now + dependent.latency_ns;
      later_.push({known_ns, dependent.item, Change::one_met, ++nodes_served_});
      if (known_ns < item.at_head_ns) continue;
      item.at_head_ns = known_ns;
      item.ahead = index;
    }
    index = next;
  }
}

// Everything that has happened by now.
void Streams::settle(const int64_t now) {
  while (!later_.empty() && later_.top().time_ns <= now) {
    const Later later = later_.top();
    later_.pop();
    switch (later.change) {
      case Change::done:
        finished_.push_back(later.item);
        break;
      case Change::triggered:
        get_triggered(later.item, now);
        break;
      case Change::one_met:
        met(later.item, now);
        break;
      case Change::issued:
        enqueue(later.item);
        break;
      case Change::reached:
        break;
      case Change::transferred:
        get_over(later.item, now);
        break;
    }
  }
  while (!finished_.empty()) {
    const int32_t item = finished_.back();
    finished_.pop_back();
    finish(item, now);
  }
}

void Streams::get_triggered(const int32_t index, const int64_t now) {
  if (items_[index].has_been(Until::triggered)) return;
  items_[index].triggered_ns = now;
  for (int32_t edge = items_[index].first_dependent; edge >= 0; edge = dependents_[edge].next) {
    if (dependents_[edge].until == Until::triggered) met(dependents_[edge].item, now);
  }
}

void Streams::finish(const int32_t index, const int64_t now) {
  Item& item = items_[index];
  item.done_ns = now;
  const bool triggers = !item.has_been(Until::triggered);
  if (triggers) item.triggered_ns = now;
  for (int32_t edge = item.first_dependent; edge >= 0; edge = dependents_[edge].next) {
    const auto [dependent, next, latency_ns, until] = dependents_[edge];
    if (until == Until::triggered && triggers) met(dependent, now);
    if (until != Until::done) continue;
    if (items_[dependent].kind == Kind::graph_end) items_[dependent].launch = item.launch;
    const int64_t known_ns = known_ns_of(index, dependent);
    if (known_ns > now) {
      later_.push({known_ns, dependent, Change::one_met});
    } else {
      met(dependent, now);
    }
  }
  if (index == first_undone_) turn_to_next_undone(now);
}

void Streams::turn_to_next_undone(const int64_t now) {
  const int32_t finished = first_undone_;
  const auto count = static_cast<int32_t>(items_.size());
  const auto is_passed = [](const Item& item) { return item.done() || item.non_blocking; };
  while (first_undone_ < count && is_passed(items_[first_undone_])) ++first_undone_;
  if (first_undone_ == count || !items_[first_undone_].waits_for_all()) return;
  Item& legacy = items_[first_undone_];
  legacy.legacy_until_ns = now;
  legacy.legacy_behind = finished;
  if (legacy.unmet > 0) return;
  if (legacy.is_event()) {
    finished_.push_back(first_undone_);
  } else {
    be_seen(first_undone_, now);
  }
}

// When one that waits for an item knows that it is done.
int64_t Streams::known_ns_of(const int32_t done, const int32_t dependent) const {
  const bool is_event = items_[dependent].record == done;
  return items_[done].done_ns + (is_event ? spec_.event_latency_ns : 0);
}

void Streams::met(const int32_t index, const int64_t now) {
  Item& item = items_[index];
  if (--item.unmet > 0) return;
  if (item.is_event()) {
    if (!item.legacy || first_undone_ == index) finished_.push_back(index);
  } else if (item.follows_nodes && item.transfer != nullptr) {
    begin_transfer(index, now);
  } else if (item.follows_nodes) {
    nodes_.insert({rank(index), ++nodes_ready_, index});
  } else if (waits_for_nothing(index) && !item.programmatic) {
    be_seen(index, now);
  }
}

}  // namespace tbsched
