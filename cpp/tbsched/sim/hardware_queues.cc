#include "tbsched/sim/hardware_queues.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tbsched {

HardwareQueues::HardwareQueues(const DeviceSpec& spec, const Clock& clock, OpGraph& graph)
    : spec_(spec),
      clock_(clock),
      graph_(graph),
      queues_(spec.hardware_queues),
      front_ends_(spec.front_ends) {}

int32_t HardwareQueues::use(const int32_t stream) {
  const int32_t number = queue_of(stream);
  Queue& queue = queues_[number];
  queue.last_use = ++uses_;
  queue.last_stream = stream;
  if (std::cmp_greater_equal(stream, queue_of_stream_.size())) {
    queue_of_stream_.resize(stream + 1, -1);
  }
  queue_of_stream_[stream] = number;
  last_queue_ = number;
  return number;
}

int32_t HardwareQueues::queue_of(const int32_t stream) const {
  return has_queue(stream) ? queue_of_stream_[stream] : choose();
}

// Returns an empty queue: of the front end with fewer filled queues, else of the one that the last
// launch did not use. If no queue is empty, chooses the least recently used.
int32_t HardwareQueues::choose() const {
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

void HardwareQueues::enqueue(const int32_t launch) {
  const int32_t number = use(graph_[launch].stream);
  queued(launch).queue = number;
  Queue& queue = queues_[number];
  if (queue.is_deferred || (backs_off_ && runs_empty(queue) && !any_waits_but(launch))) {
    queue.is_deferred = true;
    deferred_.push_back(launch);
  } else {
    join(launch, reaches_gpu_ns(launch));
  }
}

void HardwareQueues::join(const int32_t launch, const int64_t seen_ns) {
  const int32_t number = queued(launch).queue;
  Queue& queue = queues_[number];
  if (queue.empty()) ++front_ends_[front_end(number)].filled;
  graph_[launch].held_by = queue.launches.empty() ? -1 : queue.launches.back();
  queue.launches.push_back(launch);
  if (!graph_[launch].is_function) ++queue.places;
  graph_.change_at(seen_ns, launch, Change::reached);
}

void HardwareQueues::pass(const int32_t number, std::vector<int32_t>& over) {
  Queue& queue = queues_[number];
  if (!places_awaited_.empty()) {
    const auto [first, last] = places_awaited_.equal_range(queue.first());
    for (auto each = first; each != last; ++each) over.push_back(each->second);
    places_awaited_.erase(first, last);
  }
  if (!graph_[queue.first()].is_function) --queue.places;
  if (++queue.head < queue.launches.size()) {
    graph_[queue.first()].held_until_ns = clock_.now();
  } else {
    --front_ends_[front_end(number)].filled;
  }
}

bool HardwareQueues::start_delay(const int32_t launch) {
  Queued& delayed = queued_[launch];
  if (delayed.delay_ns == 0) return false;
  delayed.seen_ns = clock_.now() + std::exchange(delayed.delay_ns, 0);
  graph_.change_at(delayed.seen_ns, launch, Change::reached);
  return true;
}

// Sets when the front end of its queue sees it, which may have to poll other queues first.
void HardwareQueues::delay_detection(const int32_t launch) {
  const int32_t number = queued(launch).queue;
  if (number < 0 || graph_[launch].by_engine) return;
  if (spec_.queue_watch_ns == 0 && spec_.host_watch_ns == 0 && spec_.host_write_ns == 0) return;
  const int64_t now = clock_.now();
  const Queue& own = queues_[number];
  if (own.empty() || own.first() != launch || reaches_gpu_ns(launch) >= now) return;
  for (FrontEnd& each : front_ends_) each.waiting = 0;
  for (int32_t queue = 0; std::cmp_less(queue, queues_.size()); ++queue) {
    if (queues_[queue].empty()) continue;
    const int32_t first = queues_[queue].first();
    const bool is_free =
        first != launch && queued_[first].seen_ns <= now && graph_.waits_for_nothing(first);
    if (!is_free && reaches_gpu_ns(first) < now) ++front_ends_[front_end(queue)].waiting;
  }
  const auto polls_several = [](const FrontEnd& each) { return each.waiting > 1; };
  const bool any_polls_several = std::ranges::any_of(front_ends_, polls_several);
  if (!any_polls_several && spec_.host_write_ns == 0) return;
  int64_t& seen_ns = queued(launch).seen_ns;
  const int64_t looks_ns = any_polls_several ? spec_.host_watch_ns : 0;
  seen_ns = std::max(seen_ns, now + std::max(spec_.host_write_ns, looks_ns));
  FrontEnd& end = front_ends_[front_end(number)];
  if (polls_several(end)) {
    seen_ns = std::max(seen_ns, end.last_seen_ns) + spec_.queue_watch_ns;
    end.last_seen_ns = seen_ns;
  }
  graph_.change_at(seen_ns, launch, Change::reached);
}

// Sets when the GPU sees that a launch which waited for a copy engine is ready. Returns false if
// the launch is deferred. While no launch runs, the GPU polls for a while whether a copy is over,
// and then only now and then.
bool HardwareQueues::notice_after_copy(const int32_t launch,
                                       const std::optional<int64_t> idle_since_ns) {
  if (backs_off_ && !any_waits_but(launch)) {
    queued(launch).seen_ns = kNever;
    after_copies_.push_back(launch);
    return false;
  }
  if (idle_since_ns &&
      clock_.now() - std::max(*idle_since_ns, reaches_gpu_ns(launch)) > spec_.copy_watch_ns) {
    queued(launch).seen_ns = clock_.now() + spec_.copy_wake_ns;
    graph_.change_at(queued(launch).seen_ns, launch, Change::reached);
  }
  delay_detection(launch);
  return true;
}

void HardwareQueues::await_place(const int32_t stream, const int32_t wait) {
  const Queue& queue = queues_[queue_of(stream)];
  auto leaves = queue.launches.rbegin();
  for (int32_t behind = 0;; ++leaves) {
    if (!graph_[*leaves].is_function && ++behind == spec_.queue_places) break;
  }
  places_awaited_.emplace(*leaves, wait);
}

void HardwareQueues::end_back_off() {
  backs_off_ = false;
  for (Queue& queue : queues_) queue.is_deferred = false;
  for (const int32_t launch : std::exchange(deferred_, {})) {
    join(launch, std::max(clock_.now(), reaches_gpu_ns(launch)));
  }
  for (const int32_t launch : std::exchange(after_copies_, {})) {
    queued(launch).seen_ns = clock_.now();
    graph_.change_at(clock_.now(), launch, Change::reached);
  }
}

// Returns whether the GPU defers a record behind this operation. A record behind a kernel takes the
// kernel's queue. Behind a copy of an engine it takes none.
bool HardwareQueues::defers_behind(const int32_t operation) const {
  if (operation < 0) return true;
  if (!graph_[operation].needs_turn()) return false;
  const int32_t queue = queued(operation).queue;
  return graph_[operation].done() || queue < 0 || runs_empty(queues_[queue]);
}

bool HardwareQueues::any_waits_but(const int32_t launch) const {
  if (behind_launches_ > 0) return true;
  return std::ranges::any_of(queues_, [&](const Queue& queue) {
    if (queue.empty() || queue.first() == launch) return false;
    const Operation& head = graph_[queue.first()];
    if (queued_[queue.first()].seen_ns == kNever) return false;
    if (head.pending == 0) return queue.head + 1 < queue.launches.size();  // behind it
    return head.last_launch >= 0 && !graph_[head.last_launch].done() &&
           graph_[head.last_launch].needs_turn();
  });
}

int64_t HardwareQueues::first_arrival_ns() const {
  int64_t first_ns = kNever;
  const auto look_at = [&](const int32_t launch) {
    first_ns = std::min(first_ns, std::max(clock_.now(), reaches_gpu_ns(launch)));
  };
  for (const Queue& queue : queues_) {
    if (!queue.empty()) look_at(queue.first());
  }
  std::ranges::for_each(deferred_, look_at);
  return first_ns;
}

int64_t HardwareQueues::first_ready_ns(const bool with_deferred, const bool enabling) const {
  int64_t first_ns = kNever;
  const int64_t now = clock_.now();
  const auto look_at = [&](const int32_t launch) {
    if (!enabling && !graph_.waits_for_nothing(launch)) return;
    const int64_t seen_ns = queued(launch).seen_ns;
    if (seen_ns == kNever && !with_deferred) return;
    const int64_t free_ns = seen_ns == kNever ? now : std::max(now, seen_ns);
    first_ns = std::min(first_ns, std::max(free_ns, reaches_gpu_ns(launch)));
  };
  for (const Queue& queue : queues_) {
    if (!queue.empty()) look_at(queue.first());
  }
  if (with_deferred) std::ranges::for_each(deferred_, look_at);
  return first_ns;
}

}  // namespace tbsched
