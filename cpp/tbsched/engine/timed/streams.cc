#include "tbsched/engine/timed/streams.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace tbsched {

Streams::Streams(const DeviceSpec& spec)
    : launch_latency_ns_(spec.launch_latency_ns),
      completion_latency_ns_(spec.completion_latency_ns),
      event_latency_ns_(spec.event_latency_ns),
      legacy_latency_ns_(spec.legacy_latency_ns),
      order_(launch_order_named(spec.launch_order)),
      queues_(spec.hardware_queues) {}

void Streams::issue(const Event& event, const int64_t now) {
  settle(now);
  std::visit(Overloaded{
                 [&](const Launch& launch) { issue(launch, now); },
                 [](const Release&) {},  // of held launches, which are not issued here
                 [&](const RecordEvent& record) { issue(record, now); },
                 [&](const WaitEvent& wait) { issue(wait, now); },
                 [](const GraphLaunch&) {},  // refused before
             },
             event);
  settle(now);
}

void Streams::issue(const Launch& launch, const int64_t now) {
  const int32_t number = stream_named(launch.stream);
  StreamState& stream = streams_[number];
  stream.last_launch = add({.kind = Kind::launch,
                            .launch = static_cast<int32_t>(item_of_launch_.size()),
                            .priority = launch.priority,
                            .legacy = launch.stream == kLegacyStream},
                           stream, now);
  stream.last_wait = -1;
  item_of_launch_.push_back(stream.last_launch);
  enqueue(stream.last_launch, stream, number);
}

void Streams::issue(const RecordEvent& record, const int64_t now) {
  StreamState& stream = streams_[stream_named(record.stream)];
  last_record_[record.event] =
      add({.kind = Kind::record,
           .launch = stream.last_launch < 0 ? -1 : items_[stream.last_launch].launch,
           .legacy = record.stream == kLegacyStream},
          stream, now);
}

void Streams::issue(const WaitEvent& wait, const int64_t now) {
  StreamState& stream = streams_[stream_named(wait.stream)];
  const auto known = last_record_.find(wait.event);
  const int32_t awaited = known == last_record_.end() ? -1 : known->second;
  stream.last_wait = add({.kind = Kind::wait,
                          .launch = awaited < 0 ? -1 : items_[awaited].launch,
                          .legacy = wait.stream == kLegacyStream,
                          .record = awaited},
                         stream, now);
}

// A launch without a name has a stream of its own.
int32_t Streams::stream_named(const std::optional<int32_t> name) {
  auto number = static_cast<int32_t>(streams_.size());
  if (name) number = number_of_stream_.try_emplace(*name, number).first->second;
  if (std::cmp_equal(number, streams_.size())) streams_.emplace_back();
  return number;
}

int32_t Streams::add(Item item, StreamState& stream, const int64_t now) {
  const auto index = static_cast<int32_t>(items_.size());
  item.last_launch = stream.last_launch;
  item.last_wait = stream.last_wait;
  item.last_legacy = last_legacy_;
  item.issued_ns = now;
  item.at_head_ns = now;
  items_.push_back(item);
  depend(index, stream.last);
  depend(index, item.record);
  if (item.legacy) {
    last_legacy_ = index;
  } else {
    depend(index, item.last_legacy);
  }
  stream.last = index;
  if (item.kind != Kind::launch && items_[index].unmet == 0 &&
      (!item.legacy || first_undone_ == index)) {
    finished_.push_back(index);
  }
  return index;
}

void Streams::depend(const int32_t item, const int32_t on) {
  if (on < 0 || items_[on].done()) return;
  ++items_[item].unmet;
  dependents_.push_back({.item = item, .next = items_[on].first_dependent});
  items_[on].first_dependent = static_cast<int32_t>(dependents_.size()) - 1;
}

void Streams::enqueue(const int32_t index, StreamState& stream, const int32_t stream_number) {
  stream.queue = choose_queue(stream, stream_number);
  Queue& queue = queues_[stream.queue];
  items_[index].queue = stream.queue;
  items_[index].ahead = queue.items.empty() ? -1 : queue.items.back();
  queue.items.push_back(index);
  queue.last_use = std::ssize(item_of_launch_);
  queue.last_stream = stream_number;
}

int32_t Streams::choose_queue(const StreamState& stream, const int32_t stream_number) const {
  if (stream.queue >= 0 && queues_[stream.queue].last_stream == stream_number) return stream.queue;
  const auto preferred = std::ranges::min_element(
      queues_, {}, [](const Queue& queue) { return std::pair(!queue.empty(), queue.last_use); });
  return static_cast<int32_t>(preferred - queues_.begin());
}

std::optional<int32_t> Streams::take(const bool room_for_grid, const int64_t now) {
  settle(now);
  if (!room_for_grid) return std::nullopt;
  Queue* first = nullptr;
  for (Queue& queue : queues_) {
    if (queue.empty() || !ready(queue.items[queue.head], now)) continue;
    if (first == nullptr || before(queue.items[queue.head], first->items[first->head])) {
      first = &queue;
    }
  }
  if (first == nullptr) return std::nullopt;
  const int32_t launch = items_[first->items[first->head]].launch;
  if (++first->head < first->items.size()) items_[first->items[first->head]].at_head_ns = now;
  return launch;
}

bool Streams::before(const int32_t a, const int32_t b) const {
  if (order_.by_priority && items_[a].priority != items_[b].priority) {
    return items_[a].priority < items_[b].priority;
  }
  return a < b;
}

bool Streams::ready(const int32_t index, const int64_t now) const {
  const Item& item = items_[index];
  return item.unmet == 0 && reaches_gpu_ns(index) <= now &&
         (!item.legacy || (first_undone_ == index && item.legacy_until_ns <= now));
}

int64_t Streams::next_change(const int64_t now) const {
  int64_t next = endings_.empty() ? kNever : endings_.top().time_ns;
  if (reached_ < item_of_launch_.size()) {
    next = std::min(next, reaches_gpu_ns(item_of_launch_[reached_]));
  }
  if (std::cmp_less(first_undone_, items_.size()) && items_[first_undone_].legacy) {
    const int64_t ready = items_[first_undone_].legacy_until_ns;
    if (ready > now) next = std::min(next, ready);
  }
  return std::max(next, now);
}

void Streams::end(const int32_t launch, const int64_t now) {
  endings_.push({.time_ns = now + completion_latency_ns_, .item = item_of_launch_[launch]});
}

// Everything that has happened by now.
void Streams::settle(const int64_t now) {
  while (reached_ < item_of_launch_.size() && reaches_gpu_ns(item_of_launch_[reached_]) <= now) {
    ++reached_;
  }
  while (!endings_.empty() && endings_.top().time_ns <= now) {
    const Ending ending = endings_.top();
    endings_.pop();
    if (ending.is_signal) {
      met(ending.item);
    } else {
      finished_.push_back(ending.item);
    }
  }
  while (!finished_.empty()) {
    const int32_t item = finished_.back();
    finished_.pop_back();
    finish(item, now);
  }
}

void Streams::finish(const int32_t index, const int64_t now) {
  items_[index].done_ns = now;
  if (!items_[index].legacy) other_done_ns_ = now;
  for (int32_t edge = items_[index].first_dependent; edge >= 0; edge = dependents_[edge].next) {
    const int32_t dependent = dependents_[edge].item;
    const int64_t known_ns = known_ns_of(index, dependent);
    if (known_ns > now) {
      endings_.push({.time_ns = known_ns, .item = dependent, .is_signal = true});
    } else {
      met(dependent);
    }
  }
  if (index != first_undone_) return;
  const auto count = static_cast<int32_t>(items_.size());
  while (first_undone_ < count && items_[first_undone_].done()) ++first_undone_;
  if (first_undone_ == count || !items_[first_undone_].legacy) return;
  Item& legacy = items_[first_undone_];
  const bool was_late = legacy.kind == Kind::launch && other_done_ns_ > legacy.issued_ns;
  legacy.legacy_until_ns = std::max(now, was_late ? other_done_ns_ + legacy_latency_ns_ : 0);
  legacy.legacy_behind = items_[index].launch;
  if (legacy.kind != Kind::launch && legacy.unmet == 0) finished_.push_back(first_undone_);
}

// When one that waits for an item knows that it is done: of a launch of the legacy stream other
// streams know later than that stream itself.
int64_t Streams::known_ns_of(const int32_t done, const int32_t dependent) const {
  const Item& item = items_[done];
  if (items_[dependent].record == done) return item.done_ns + event_latency_ns_;
  if (!item.legacy || items_[dependent].legacy) return item.done_ns;
  const int32_t launch = item.kind == Kind::launch ? done : item.last_launch;
  const bool was_late = launch >= 0 && items_[launch].done_ns > items_[dependent].issued_ns;
  return std::max(item.done_ns, was_late ? items_[launch].done_ns + legacy_latency_ns_ : 0);
}

void Streams::met(const int32_t index) {
  Item& item = items_[index];
  if (--item.unmet > 0 || item.kind == Kind::launch) return;
  if (!item.legacy || first_undone_ == index) finished_.push_back(index);
}

// Of several causes at once the first counts that a change of the program would have to remove
// first.
void Streams::append_waits(const int32_t launch, const int64_t now,
                           std::vector<Wait>& waits) const {
  const Item& item = items_[item_of_launch_[launch]];
  int64_t from = reaches_gpu_ns(item_of_launch_[launch]);
  const auto until = [&](const int64_t time, const Refusal cause, const int32_t behind) {
    if (time <= from) return;
    waits.push_back({launch, behind, from, time, cause});
    from = time;
  };
  if (item.last_launch >= 0) {
    const Item& earlier = items_[item.last_launch];
    until(earlier.done_ns, Refusal::stream, earlier.launch);
  }
  const Item* last_event = nullptr;
  for (int32_t wait = item.last_wait; wait >= 0; wait = items_[wait].last_wait) {
    if (items_[wait].record < 0) continue;
    const Item& record = items_[items_[wait].record];
    if (last_event == nullptr || record.done_ns > last_event->done_ns) last_event = &record;
  }
  if (last_event != nullptr) {
    until(items_[item.last_wait].done_ns, Refusal::event, last_event->launch);
  }
  if (item.legacy) {
    until(item.legacy_until_ns, Refusal::legacy_stream, item.legacy_behind);
  } else if (item.last_legacy >= 0) {
    const int64_t known_ns = known_ns_of(item.last_legacy, item_of_launch_[launch]);
    until(known_ns, Refusal::legacy_stream, items_[item.last_legacy].launch);
  }
  const int32_t ahead = item.ahead < 0 ? -1 : items_[item.ahead].launch;
  until(item.at_head_ns, Refusal::hardware_queue, ahead);
  until(now, Refusal::grids, -1);
}

}  // namespace tbsched
