// What launches have waited for: the part of Streams that only tells.
#include <algorithm>

#include "tbsched/engine/timed/streams.h"

namespace tbsched {

// What one that waits for an item waits for, as Wait::behind names it.
int32_t Streams::behind(int32_t index) const {
  while (index >= 0) {
    const Item& item = items_[index];
    if (item.launch != -1) return item.launch;
    index = item.kind == Kind::wait ? item.record : item.last_launch;
  }
  return -1;
}

// Of several causes at once the first counts that a change of the program would have to remove
// first.
void Streams::append_waits(const int32_t launch, const int64_t now,
                           std::vector<Wait>& waits) const {
  const int32_t index = item_of(launch);
  const Item& item = items_[index];
  int64_t from = reaches_gpu_ns(index);
  const auto until = [&](const int64_t time, const Refusal cause, const int32_t item_before) {
    if (time <= from) return;
    waits.push_back({launch, behind(item_before), from, time, cause});
    from = time;
  };
  if (item.programmatic) {
    const int32_t earlier = launch_before(index, kMostInFlight);
    if (earlier >= 0) until(items_[earlier].done_ns, Refusal::stream, earlier);
    until(items_[item.last_launch].triggered_ns, Refusal::trigger, item.last_launch);
  } else if (item.last_launch >= 0) {
    until(items_[item.last_launch].done_ns, Refusal::stream, item.last_launch);
  }
  int32_t last_event = -1;
  for (int32_t wait = item.last_wait; wait >= 0; wait = items_[wait].last_wait) {
    const int32_t record = items_[wait].record;
    if (record < 0) continue;
    if (last_event < 0 || items_[record].done_ns > items_[last_event].done_ns) last_event = record;
  }
  if (last_event >= 0 && !item.programmatic) {
    until(items_[item.last_wait].done_ns, Refusal::event, last_event);
  }
  // A node waits for the legacy stream, and for the launch before of the same graph, with its
  // graph.
  const Item& ordered = item.graph < 0 ? item : items_[item.graph];
  if (ordered.kind == Kind::graph_begin && ordered.record >= 0) {
    // Issued later, it did not wait until that was known.
    const int64_t known_ns = known_ns_of(ordered.record, item.graph);
    until(std::min(known_ns, ordered.done_ns), Refusal::node, ordered.record);
  }
  if (ordered.legacy) {
    until(ordered.legacy_until_ns, Refusal::legacy_stream, ordered.legacy_behind);
  } else if (item.last_legacy >= 0) {
    until(items_[item.last_legacy].done_ns, Refusal::legacy_stream, item.last_legacy);
  }
  if (ordered.last_load >= 0) {
    until(items_[ordered.last_load].done_ns, Refusal::first_use, ordered.last_load);
  }
  until(item.at_head_ns, item.follows_nodes ? Refusal::node : Refusal::hardware_queue, item.ahead);
  if (item.seen_ns > from) {
    from = item.seen_ns;
    if (!waits.empty() && waits.back().launch == launch) waits.back().end_ns = from;
  }
  until(now, Refusal::grids, -1);
}

}  // namespace tbsched
