#include "tbsched/sim/wait_log.h"

#include <algorithm>
#include <utility>

namespace tbsched {

void WaitLog::log_waits_before_placement(const int32_t launch, const int32_t index,
                                         const OpGraph& operations, const HardwareQueues& queues) {
  // If several causes overlap, the one counts that a change of the program would have to remove
  // first.
  const Operation& operation = operations[index];
  const size_t first = waits_.size();
  int64_t from = queues.reaches_gpu_ns(index);
  // Logs a wait from the end of the last one on, unless that is later.
  const auto until = [&](const int64_t time, const Refusal cause, const int32_t awaited) {
    if (time <= from) return;
    waits_.push_back({launch, operations.name_of(awaited), from, time, cause, set_of(cause)});
    from = time;
  };
  if (operation.programmatic) {
    const int32_t earlier = operations.launch_before(index, OpGraph::kMaxInFlight);
    if (earlier >= 0) until(operations[earlier].done_ns, Refusal::stream, earlier);
    until(operations[operation.last_launch].triggered_ns, Refusal::trigger, operation.last_launch);
  } else if (operation.last_launch >= 0) {
    until(operations[operation.last_launch].done_ns, Refusal::stream, operation.last_launch);
  }
  int32_t last_event = -1;  // a record, or a write of a value
  for (int32_t wait = operation.last_wait; wait >= 0; wait = operations[wait].last_wait) {
    const int32_t awaited = operations[wait].record;
    if (awaited < 0) continue;
    const bool is_later =
        last_event < 0 || operations[awaited].done_ns > operations[last_event].done_ns;
    if (is_later) last_event = awaited;
  }
  if (last_event >= 0 && !operation.programmatic) {
    const bool is_value = operations[last_event].kind == OperationKind::write_value;
    until(operations[operation.last_wait].done_ns, is_value ? Refusal::value : Refusal::event,
          last_event);
  }
  // A node waits together with its graph for the legacy stream and for the previous launch of the
  // same graph.
  const Operation& ordered = operation.graph < 0 ? operation : operations[operation.graph];
  if (ordered.kind == OperationKind::graph_begin && ordered.record >= 0) {
    // If the graph was issued later, it did not wait until that was known.
    const int64_t known_ns = operations.known_ns_of(ordered.record, operation.graph);
    until(std::min(known_ns, ordered.done_ns), Refusal::node, ordered.record);
  }
  if (ordered.legacy) {
    until(ordered.legacy_until_ns, Refusal::legacy_stream, ordered.legacy_behind);
  } else if (operation.last_legacy >= 0) {
    until(operations[operation.last_legacy].done_ns, Refusal::legacy_stream, operation.last_legacy);
  }
  if (ordered.last_load >= 0) {
    until(operations[ordered.last_load].done_ns, Refusal::first_use, ordered.last_load);
  }
  until(operation.held_until_ns, operation.follows_nodes ? Refusal::node : Refusal::hardware_queue,
        operation.held_by);
  // What the GPU itself needs to go on belongs to the wait before it.
  const bool resets = operation.reset >= 0 && operations[operation.reset].done_ns > from;
  const int64_t ready_ns = resets ? clock_.now() : queues.seen_ns(index);
  if (ready_ns > from) {
    from = ready_ns;
    if (waits_.size() > first) waits_.back().end_ns = from;
  }
  until(clock_.now(), Refusal::grids, -1);
  if (waits_.size() == first) return;
  for (size_t k = first; k < waits_.size(); ++k) {
    Wait& wait = waits_[k];
    wait.begin_ns = clock_.began_ns(wait.begin_ns);
    wait.end_ns = clock_.began_ns(wait.end_ns);
  }
  const Wait& last = waits_.back();
  blocks_[launch] = {last.cause, last.behind, last.begin_ns, last.limiters};
  waits_.pop_back();
}

void WaitLog::note(const int32_t launch, const Refusal cause, const int32_t behind,
                   const Refusals limiters) {
  Blocks& blocks = blocks_[launch];
  if (blocks.cause == cause && blocks.behind == behind) return;
  const int64_t now = clock_.gpu_now();
  if (blocks.cause != Refusal::none && now > blocks.since_ns) {
    waits_.push_back({launch, blocks.behind, blocks.since_ns, now, blocks.cause, blocks.limiters});
  }
  blocks = {cause, behind, now, limiters};
}

std::vector<Wait> WaitLog::take() && {
  std::ranges::stable_sort(waits_, {}, &Wait::launch);
  return std::move(waits_);
}

}  // namespace tbsched
