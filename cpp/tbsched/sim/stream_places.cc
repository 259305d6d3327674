#include "tbsched/sim/stream_places.h"

#include <utility>

namespace tbsched {

StreamPlaces::OfStream& StreamPlaces::of(const int32_t stream) {
  if (std::cmp_greater_equal(stream, streams_.size())) streams_.resize(stream + 1);
  return streams_[stream];
}

StreamPlaces::OfQueue& StreamPlaces::queue(const int32_t stream, const Entry& entry) {
  if (entry.engine < 0) return queues_[hardware_queues_.queue_of(stream)];
  const int32_t used = hardware_queues_.last_queue(stream);
  return queues_[used < 0 ? ~stream : used];
}

StreamPlaces::Lane& StreamPlaces::pending(OfQueue& of_queue, const int32_t lane) const {
  Lane& found = of_queue[lane];
  for (std::deque<int32_t>* const operations : {&found.stretches, &found.copies}) {
    while (!operations->empty() && operations_[operations->front()].done()) operations->pop_front();
  }
  return found;
}

void StreamPlaces::add(const int32_t stream, const Entry entry, const int32_t operation) {
  OfStream& own = of(stream);
  if (entry.kind == Kind::wait) {
    if (own.last_kind == Kind::host_function) own.wait = operation;
    return;
  }
  const std::optional<int32_t> wait = std::exchange(own.wait, std::nullopt);
  const std::optional<Kind> before = std::exchange(own.last_kind, entry.kind);
  OfQueue& of_queue = queue(stream, entry);
  if (entry.kind == Kind::host_function) {
    if (before && before != Kind::host_function) {
      for (auto& [number, lane] : of_queue) lane.is_parted = true;
    }
    if (wait) pending(of_queue, kWaits).stretches.push_back(*wait);
    return;
  }
  if (entry.kind == Kind::work) own.last = entry.engine;
  Lane& lane = pending(of_queue, own.last);
  if (std::exchange(lane.is_parted, false) || lane.stretches.empty()) {
    lane.stretches.push_back(operation);
  } else {
    lane.stretches.back() = operation;
  }
  if (own.last != kLaunches) lane.copies.push_back(operation);
}

std::optional<int32_t> StreamPlaces::awaited(const int32_t stream, const Entry entry) {
  const auto if_full = [](const std::deque<int32_t>& operations, const int32_t places) {
    const size_t count = operations.size();
    return std::cmp_less(count, places) ? std::nullopt : std::optional(operations[count - places]);
  };
  const OfStream& own = of(stream);
  if (entry.kind == Kind::wait || (entry.kind == Kind::host_function && !own.wait)) {
    return std::nullopt;
  }
  const int32_t number = entry.kind == Kind::host_function ? kWaits
                         : entry.kind == Kind::work        ? entry.engine
                                                           : own.last;
  Lane& lane = pending(queue(stream, entry), number);
  if (number == kWaits || lane.is_parted) {
    if (const auto found = if_full(lane.stretches, spec_.stream_stretches)) return found;
  }
  return if_full(lane.copies, spec_.queue_places);
}

}  // namespace tbsched
