// What the host waits for, and the kernels that it loads: the part of Streams that host threads
// ask.
#include <algorithm>
#include <utility>
#include <variant>

#include "tbsched/engine/timed/streams.h"

namespace tbsched {

void Streams::load(const int32_t launch, const int64_t now) {
  settle(now);
  const int32_t load =
      push({.kind = Kind::load, .non_blocking = true, .launch = launch, .issued_ns = now});
  ++not_over_;
  depend_on_streams(load, false);
  depend(load, last_load_);
  if (items_[load].unmet == 0) change_later({now + spec_.load_ns, load, Change::done});
  last_load_ = load;
}

std::optional<int32_t> Streams::wait_for(const Event& event, const int64_t now) {
  settle(now);
  const int32_t wait = push({.kind = Kind::host, .non_blocking = true, .issued_ns = now});
  const auto* const synchronize = std::get_if<Synchronize>(&event);
  if (synchronize != nullptr && synchronize->event) {
    const auto known = last_record_.find(*synchronize->event);
    if (known != last_record_.end()) depend(wait, known->second);
  } else if (synchronize == nullptr || !synchronize->stream) {
    depend_on_streams(wait, false);
  } else if (*synchronize->stream == kLegacyStream) {
    depend_on_streams(wait, true);
  } else {
    depend(wait, streams_[stream_named(*synchronize->stream)].last);
  }
  return items_[wait].unmet == 0 ? std::nullopt : std::optional(wait);
}

std::optional<int32_t> Streams::wait_for_transfer(const int32_t transfer, const int64_t now) {
  settle(now);
  const int32_t wait = push({.kind = Kind::host, .non_blocking = true, .issued_ns = now});
  depend(wait, item_of_transfer_[transfer], Until::over,
         static_cast<int32_t>(spec_.host_return_ns));
  return items_[wait].unmet == 0 ? std::nullopt : std::optional(wait);
}

std::optional<int32_t> Streams::wait_for_place(const Launch& launch, const int64_t now) {
  settle(now);
  const auto known =
      launch.stream ? number_of_stream_.find(*launch.stream) : number_of_stream_.end();
  const int32_t number = known == number_of_stream_.end() ? -1 : known->second;
  const Queue& queue = queues_[queue_of(number)];
  const size_t waiting = queue.items.size() - queue.head;
  const auto places = static_cast<size_t>(spec_.queue_places);
  if (waiting < places) return std::nullopt;
  const int32_t wait = push({.kind = Kind::host, .non_blocking = true, .issued_ns = now});
  places_awaited_.emplace(queue.items[queue.head + waiting - places], wait);
  return wait;
}

void Streams::give_place(const int32_t taken) {
  const auto [first, last] = places_awaited_.equal_range(taken);
  for (auto each = first; each != last; ++each) over_.push_back(each->second);
  places_awaited_.erase(first, last);
}

// The last work of a stream is behind all other of it.
void Streams::depend_on_streams(const int32_t item, const bool blocking_alone) {
  std::erase_if(open_, [&](const int32_t number) {
    StreamState& stream = streams_[number];
    stream.open = !items_[stream.last].done();
    return !stream.open;
  });
  for (const int32_t number : open_) {
    const StreamState& stream = streams_[number];
    if (!blocking_alone || !stream.non_blocking) depend(item, stream.last);
  }
}

std::span<const int32_t> Streams::over(const int64_t now) {
  settle(now);
  told_over_.clear();
  std::swap(told_over_, over_);
  return told_over_;
}

}  // namespace tbsched
