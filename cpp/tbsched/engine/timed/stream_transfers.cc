// Copies and memsets in streams and graphs: the part of Streams that decides when each may begin.
#include <algorithm>
#include <string>
#include <utility>

#include "tbsched/engine/timed/driver_kernels.h"
#include "tbsched/engine/timed/streams.h"
#include "tbsched/program/refuse.h"

namespace tbsched {

void Streams::issue(const Copy& copy, const EventNumbers& numbers, const int64_t now) {
  issue_transfer(copy, numbers, now);
}

void Streams::issue(const Memset& memset, const EventNumbers& numbers, const int64_t now) {
  issue_transfer(memset, numbers, now);
}

template <typename Transfer>
void Streams::issue_transfer(const Transfer& asked, const EventNumbers& numbers,
                             const int64_t now) {
  const int32_t transfer = numbers.transfer;
  transfers_.add(transfer, asked);
  const int32_t number = stream_named(asked.stream);
  if (!asked.stream) streams_[number].non_blocking = asked.non_blocking;
  Item item{.kind = Kind::launch, .launch = transfer_number(transfer), .transfer = transfer};
  if (driver_kernel(spec_, asked)) {
    const int32_t before = streams_[number].last_launch;
    item = {.kind = Kind::launch,
            .launch = launches_ + numbers.hidden,
            .priority = before < 0 ? 0 : items_[before].priority};
    item_of_relay_[numbers.hidden] = static_cast<int32_t>(items_.size());
  } else if (transfers_.has_engine(transfer)) {
    item.kind = Kind::transfer;
    transfers_.enqueue(transfer, number);
  }
  item_of_transfer_[transfer] = static_cast<int32_t>(items_.size());
  const int32_t index = add(item, number, now);
  if (item.is_launch()) enqueue(index, now);
  streams_[number].go_on_from(index);
}

template <typename Transfer>
void Streams::add_transfer_node(const Transfer& asked, const int32_t begin, EventNumbers& numbers) {
  const int32_t transfer = numbers.transfer++;
  transfers_.add(transfer, asked);
  item_of_transfer_[transfer] = static_cast<int32_t>(items_.size());
  if (driver_kernel(spec_, asked)) {
    item_of_relay_[numbers.hidden] = static_cast<int32_t>(items_.size());
    add_node(launches_ + numbers.hidden++, 0, begin);
  } else {
    add_node(transfer_number(transfer), 0, begin);
    items_.back().transfer = transfer;
  }
}

template void Streams::add_transfer_node(const Copy&, int32_t, EventNumbers&);
template void Streams::add_transfer_node(const Memset&, int32_t, EventNumbers&);

// Those at the head of a queue. They need no room for a grid. One that ends at once lets others
// begin, until only launches are left at the heads.
void Streams::begin_transfers(const int64_t now) {
  for (;;) {
    for (Queue& queue : queues_) {
      while (!queue.empty() && items_[queue.items[queue.head]].transfer >= 0 &&
             ready(queue.items[queue.head], now)) {
        begin_transfer(queue.items[queue.head], now);
        pass_head(queue, now);
      }
    }
    if (!begin_engines(now)) return;
    settle(now);
  }
}

// It waits for nothing any more.
void Streams::begin_transfer(const int32_t index, const int64_t now) {
  const Item& item = items_[index];
  if (!transfers_.has_engine(item.transfer)) {
    const int64_t end_ns = transfers_.run(item.transfer, item.follows_nodes, now + late_ns_);
    end_transfer_at(index, now, end_ns - late_ns_);
    return;
  }
  if (item.graph >= 0) transfers_.enqueue_node(item.transfer);
  const int32_t before = item.follows_nodes ? item.ahead : item.last_launch;
  const bool goes_on = before >= 0 && (item.graph >= 0 || items_[before].over_ns == now) &&
                       transfers_.share_engine(items_[before].transfer, item.transfer);
  const bool waited = now > (item.is_prepared ? reaches_gpu_ns(index) : item.issued_ns);
  const int64_t staged_ns = item.issued_ns + transfers_.call_ns(item.transfer);
  const int64_t reaches_ns = item.is_prepared ? now : staged_ns + spec_.host_copy_issue_ns;
  const int64_t latency_ns =
      item.graph < 0 ? spec_.host_copy_latency_ns : spec_.node_copy_latency_ns;
  const int64_t waited_ns = goes_on || !waited ? now : now + latency_ns;
  const int64_t from_ns = std::max(reaches_ns, waited_ns);
  transfers_.be_ready(item.transfer, from_ns + late_ns_, waited);
  change_later({from_ns, index, Change::reached});
}

void Streams::end_transfer_at(const int32_t index, const int64_t now, const int64_t end_ns) {
  if (now > kLatestNs || end_ns > 2 * kLatestNs) {
    refuse("duration: a copy or memset from " + std::to_string(now) + " to " +
           std::to_string(end_ns) + " ns is beyond the range of time");
  }
  change_later({end_ns, index, Change::transferred});
}

// Whether one of them ends at once.
bool Streams::begin_engines(const int64_t now) {
  while (const std::optional<int32_t> transfer = transfers_.begin(now + late_ns_)) {
    const int64_t end_ns = transfers_.times()[*transfer].end_ns - late_ns_;
    end_transfer_at(item_of_transfer_[*transfer], now, end_ns);
  }
  return first_changes(now) != nullptr;
}

void Streams::end_transfer(const int32_t index, const int64_t now) {
  const int32_t transfer = items_[index].transfer;
  if (transfers_.has_engine(transfer)) {
    // Another one may have slowed it down, or another process stopped it.
    const int64_t end_ns = transfers_.ends_ns(transfer) - late_ns_;
    if (end_ns > now) return end_transfer_at(index, now, end_ns);
    transfers_.end(transfer, now + late_ns_);
  } else {
    transfers_.end_without_engine(transfer, now + late_ns_);
  }
  if (items_[index].is_launch()) --not_over_;
  get_over(index, now);
}

// One that takes no hardware queue need not wait any more.
void Streams::go_on(const int32_t index, const int64_t now) {
  if (std::exchange(items_[index].behind_launch, false)) --behind_launches_;
  if (items_[index].transfer < 0) {
    finished_.push_back(index);
  } else {
    begin_transfer(index, now);
  }
}

// Whether anything but this launch waits in a queue for a launch: the GPU goes round these queues.
bool Streams::waits_elsewhere(const int32_t index) const {
  if (behind_launches_ > 0) return true;
  return std::ranges::any_of(queues_, [&](const Queue& queue) {
    if (queue.empty() || queue.items[queue.head] == index) return false;
    const Item& head = items_[queue.items[queue.head]];
    if (head.seen_ns == kNever) return false;
    if (head.unmet == 0) return queue.head + 1 < queue.items.size();  // behind it
    return head.last_launch >= 0 && !items_[head.last_launch].done() &&
           needs_turn(items_[head.last_launch]);
  });
}

// A launch that waited for a copy between the host and the GPU, which is over now. While nothing
// runs, the GPU watches for a while, and then looks now and then.
void Streams::wake(const int32_t index, const int64_t now) {
  Item& item = items_[index];
  const int64_t since_ns = std::max(idle_since_ns_, reaches_gpu_ns(index));
  if (running_ > 0 || now - since_ns <= spec_.copy_watch_ns) return;
  item.seen_ns = now + spec_.copy_wake_ns;
  change_later({item.seen_ns, index, Change::reached});
}

}  // namespace tbsched
