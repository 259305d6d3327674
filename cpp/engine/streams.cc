#include "engine/streams.h"

#include <algorithm>
#include <variant>

namespace tbsched {

void Streams::issue(const Event& event, const int64_t now) {
  if (const auto* const launch = std::get_if<Launch>(&event)) {
    issue_launch(*launch, now);
  } else if (const auto* const record = std::get_if<RecordEvent>(&event)) {
    Stream& stream = numbered(record->stream);
    const int32_t last = stream.last_launch;
    last_record_[record->event] = push({.kind = Kind::record,
                                        .launch = last < 0 ? -1 : items_[last].launch,
                                        .legacy = record->stream == kLegacyStream},
                                       stream, now);
  } else if (const auto* const wait = std::get_if<WaitEvent>(&event)) {
    Stream& stream = numbered(wait->stream);
    const auto known = last_record_.find(wait->event);
    const int32_t record = known == last_record_.end() ? -1 : known->second;
    stream.last_wait = push({.kind = Kind::wait,
                             .launch = record < 0 ? -1 : items_[record].launch,
                             .legacy = wait->stream == kLegacyStream,
                             .record = record},
                            stream, now);
  }
}

void Streams::issue_launch(const Launch& launch, const int64_t now) {
  Stream own{.queue = launch.stream ? 0 : next_queue()};
  Stream& stream = launch.stream ? numbered(*launch.stream) : own;
  stream.last_launch = push({.kind = Kind::launch,
                             .launch = static_cast<int32_t>(item_of_launch_.size()),
                             .priority = launch.priority,
                             .legacy = launch.stream == kLegacyStream},
                            stream, now);
  stream.last_wait = -1;
  item_of_launch_.push_back(stream.last_launch);
}

Streams::Stream& Streams::numbered(const int32_t number) {
  if (const auto known = streams_.find(number); known != streams_.end()) return known->second;
  return streams_.emplace(number, Stream{.queue = next_queue()}).first->second;
}

int32_t Streams::next_queue() { return streams_used_++ % static_cast<int32_t>(queues_.size()); }

int32_t Streams::push(Item item, Stream& stream, const int64_t now) {
  const auto index = static_cast<int32_t>(items_.size());
  Queue& queue = queues_[stream.queue];
  item.queue = stream.queue;
  item.predecessor = stream.last;
  item.last_launch = stream.last_launch;
  item.last_wait = stream.last_wait;
  item.last_legacy = last_legacy_;
  item.ahead = queue.items.empty() ? -1 : queue.items.back();
  item.issued_ns = now;
  item.at_head_ns = now;
  items_.push_back(item);
  queue.items.push_back(index);
  stream.last = index;
  if (item.legacy) last_legacy_ = index;
  return index;
}

std::optional<int32_t> Streams::take(const bool room_for_grid, const int64_t now) {
  pass_events(now);
  if (!room_for_grid) return std::nullopt;
  Queue* first = nullptr;
  for (Queue& queue : queues_) {
    if (queue.empty() || !ready(queue.items[queue.head])) continue;
    if (first == nullptr || before(queue.items[queue.head], first->items[first->head])) {
      first = &queue;
    }
  }
  if (first == nullptr) return std::nullopt;
  const int32_t launch = items_[first->items[first->head]].launch;
  pop(*first, now);
  return launch;
}

bool Streams::before(const int32_t a, const int32_t b) const {
  if (order_.by_priority && items_[a].priority != items_[b].priority) {
    return items_[a].priority < items_[b].priority;
  }
  return a < b;
}

void Streams::pass_events(const int64_t now) {
  for (bool moved = true; moved;) {
    moved = false;
    for (Queue& queue : queues_) {
      while (!queue.empty()) {
        const int32_t item = queue.items[queue.head];
        if (items_[item].kind == Kind::launch || !ready(item)) break;
        finish(item, now);
        pop(queue, now);
        moved = true;
      }
    }
  }
}

void Streams::pop(Queue& queue, const int64_t now) {
  if (++queue.head < queue.items.size()) items_[queue.items[queue.head]].at_head_ns = now;
}

bool Streams::ready(const int32_t index) const {
  const Item& item = items_[index];
  const auto met = [&](const int32_t other) { return other < 0 || items_[other].done(); };
  return met(item.predecessor) && met(item.record) &&
         (item.legacy ? first_undone_ == index : met(item.last_legacy));
}

void Streams::end(const int32_t launch, const int64_t now) { finish(item_of_launch_[launch], now); }

void Streams::finish(const int32_t index, const int64_t now) {
  items_[index].done_ns = now;
  if (index != first_undone_) return;
  const auto count = static_cast<int32_t>(items_.size());
  while (first_undone_ < count && items_[first_undone_].done()) ++first_undone_;
  if (first_undone_ < count && items_[first_undone_].legacy) {
    items_[first_undone_].legacy_until_ns = now;
    items_[first_undone_].legacy_behind = items_[index].launch;
  }
}

// Of several causes at once the first counts that a change of the program would have to remove
// first.
void Streams::append_waits(const int32_t launch, const int64_t now,
                           std::vector<Wait>& waits) const {
  const Item& item = items_[item_of_launch_[launch]];
  int64_t from = item.issued_ns;
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
  if (last_event != nullptr) until(last_event->done_ns, Refusal::event, last_event->launch);
  if (item.legacy) {
    until(item.legacy_until_ns, Refusal::legacy_stream, item.legacy_behind);
  } else if (item.last_legacy >= 0) {
    const Item& legacy = items_[item.last_legacy];
    until(legacy.done_ns, Refusal::legacy_stream, legacy.launch);
  }
  const bool launch_ahead = item.ahead >= 0 && items_[item.ahead].kind == Kind::launch;
  until(item.at_head_ns, Refusal::hardware_queue, launch_ahead ? items_[item.ahead].launch : -1);
  until(now, Refusal::grids, -1);
}

}  // namespace tbsched
