// Copies and memsets in streams and graphs: the part of Streams that decides when each may begin.
#include <algorithm>
#include <string>

#include "tbsched/engine/timed/streams.h"
#include "tbsched/program/refuse.h"

namespace tbsched {

void Streams::issue(const Copy& copy, const int64_t now) {
  if (copy.blocking) {
    awaited_ = static_cast<int32_t>(items_.size());
    call_ends_ns_ = kNever;
  }
  issue_transfer(transfers_.add(copy), copy.stream, copy.non_blocking, now);
}

void Streams::issue(const Memset& memset, const int64_t now) {
  issue_transfer(transfers_.add(memset), memset.stream, memset.non_blocking, now);
}

// It takes no hardware queue.
void Streams::issue_transfer(const int32_t transfer, const std::optional<int32_t> name,
                             const bool non_blocking, const int64_t now) {
  const int32_t number = stream_named(name);
  if (!name) streams_[number].non_blocking = non_blocking;
  const int32_t index = add({.kind = Kind::transfer,
                             .launch = transfer_number(transfer),
                             .transfer = transfer},
                            number, now);
  streams_[number].go_on_from(index);
}

// Those at the head of a queue. They need no room for a grid.
void Streams::begin_transfers(const int64_t now) {
  for (Queue& queue : queues_) {
    while (!queue.empty() && items_[queue.items[queue.head]].transfer >= 0 &&
           ready(queue.items[queue.head], now)) {
      begin_transfer(queue.items[queue.head], now);
      pass_head(queue, now);
    }
  }
}

void Streams::begin_transfer(const int32_t index, const int64_t now) {
  const Item& item = items_[index];
  const int32_t before = item.is_launch() ? (item.follows_nodes ? item.ahead : -1) : item.last_launch;
  const int32_t after = before < 0 ? -1 : items_[before].transfer;
  const int64_t end_ns = transfers_.begin(item.transfer, after, std::max(now, reaches_gpu_ns(index)));
  if (now > kLatestNs || end_ns > 2 * kLatestNs) {
    refuse("duration: a copy or memset from " + std::to_string(now) + " to " +
           std::to_string(end_ns) + " ns is beyond the range of time");
  }
  later_.push({end_ns, index, Change::transferred});
  if (index == awaited_) call_ends_ns_ = end_ns;
}

// One that takes no hardware queue need not wait any more.
void Streams::go_on(const int32_t index, const int64_t now) {
  if (items_[index].transfer < 0) {
    finished_.push_back(index);
  } else {
    begin_transfer(index, now);
  }
}

}  // namespace tbsched
