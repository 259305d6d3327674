// Which hardware queue a launch takes, and when the GPU sees that it need not wait in it.
#include <algorithm>
#include <tuple>
#include <utility>

#include "tbsched/engine/timed/streams.h"

namespace tbsched {

// While the driver issues a graph, it issues nothing else.
void Streams::enqueue(const int32_t index, const int64_t now) {
  if (now >= graph_until_ns_) return enqueue(index);
  items_[index].issued_ns = graph_until_ns_;
  change_later({graph_until_ns_, index, Change::issued, kBehindGraph});
}

void Streams::enqueue(const int32_t index) {
  Item& item = items_[index];
  item.queue = use_queue(item.stream);
  Queue& queue = queues_[item.queue];
  if (queue.goes_unnoticed || (dozing_ && runs_empty(queue) && !waits_elsewhere(index))) {
    queue.goes_unnoticed = true;
    unnoticed_.push_back(index);
  } else {
    join_queue(index, reaches_gpu_ns(index));
  }
}

void Streams::join_queue(const int32_t index, const int64_t seen_ns) {
  Queue& queue = queues_[items_[index].queue];
  if (queue.empty()) ++front_ends_[front_end(items_[index].queue)].filled;
  items_[index].ahead = queue.items.empty() ? -1 : queue.items.back();
  queue.items.push_back(index);
  change_later({seen_ns, index, Change::reached});
}

void Streams::look_again(const int64_t now) {
  dozing_ = false;
  for (Queue& queue : queues_) queue.goes_unnoticed = false;
  for (const int32_t item : std::exchange(unnoticed_, {})) {
    join_queue(item, std::max(now, reaches_gpu_ns(item)));
  }
  for (const int32_t item : std::exchange(asleep_, {})) {
    items_[item].seen_ns = now;
    change_later({now, item, Change::reached});
  }
  for (const int32_t item : std::exchange(put_off_, {})) met(item, now);
}

int32_t Streams::use_queue(const int32_t stream_number) {
  StreamState& stream = streams_[stream_number];
  stream.queue = queue_of(stream_number);
  Queue& queue = queues_[stream.queue];
  queue.last_use = ++queue_uses_;
  queue.last_stream = stream_number;
  last_queue_ = stream.queue;
  return stream.queue;
}

int32_t Streams::queue_of(const int32_t stream_number) const {
  const int32_t own = stream_number < 0 ? -1 : streams_[stream_number].queue;
  const bool keeps_it = own >= 0 && queues_[own].last_stream == stream_number;
  return keeps_it ? own : choose_queue();
}

// Of the empty queues one of the front end that has fewer others to look at, or else of the one
// that the last launch did not use. If something waits in every queue, it is any.
int32_t Streams::choose_queue() const {
  const int32_t next = front_end(last_queue_ + 1);
  const auto is_filled = [](const Queue& queue) { return !queue.empty(); };
  const bool all_wait = std::ranges::all_of(queues_, is_filled);
  const auto preference = [&](const Queue& queue) {
    const int32_t end = front_end(static_cast<int32_t>(&queue - queues_.data()));
    const int32_t filled = all_wait ? 0 : front_ends_[end].filled;
    return std::tuple(is_filled(queue), filled, !all_wait && end != next, queue.last_use);
  };
  return static_cast<int32_t>(std::ranges::min_element(queues_, {}, preference) - queues_.begin());
}

// A launch that has waited at the head of its queue waits for nothing any more. Its front end may
// have to look at other queues first.
void Streams::be_seen(const int32_t index, const int64_t now) {
  Item& item = items_[index];
  if (item.transfer >= 0 && transfers_.has_engine(item.transfer)) return;
  if (item.queue < 0) return;
  if (spec_.queue_watch_ns == 0 && spec_.host_watch_ns == 0 && spec_.host_write_ns == 0) return;
  const Queue& own = queues_[item.queue];
  if (own.empty() || own.items[own.head] != index || reaches_gpu_ns(index) >= now) return;
  for (FrontEnd& each : front_ends_) each.waiting = 0;
  for (int32_t queue = 0; std::cmp_less(queue, queues_.size()); ++queue) {
    if (queues_[queue].empty()) continue;
    const int32_t head = queues_[queue].items[queues_[queue].head];
    const bool is_free = head != index && items_[head].seen_ns <= now && waits_for_nothing(head);
    if (!is_free && reaches_gpu_ns(head) < now) ++front_ends_[front_end(queue)].waiting;
  }
  const auto goes_round = [](const FrontEnd& each) { return each.waiting > 1; };
  const bool any_goes_round = std::ranges::any_of(front_ends_, goes_round);
  if (!any_goes_round && spec_.host_write_ns == 0) return;
  const int64_t looks_ns = any_goes_round ? spec_.host_watch_ns : 0;
  item.seen_ns = std::max(item.seen_ns, now + std::max(spec_.host_write_ns, looks_ns));
  FrontEnd& end = front_ends_[front_end(item.queue)];
  if (goes_round(end)) {
    item.seen_ns = std::max(item.seen_ns, end.last_seen_ns) + spec_.queue_watch_ns;
    end.last_seen_ns = item.seen_ns;
  }
  change_later({item.seen_ns, index, Change::reached});
}

}  // namespace tbsched
