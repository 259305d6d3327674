#include "tbsched/sim/running_blocks.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "tbsched/program/refuse.h"
#include "tbsched/program/trace.h"

namespace tbsched {
namespace {

// Returns whether blocks of a launch trigger before their memory wait. A block that does both at
// the same time triggers first.
bool triggers_first(const Launch& launch) {
  return launch.trigger_ns.value_or(kNever) <= launch.memory_wait_ns.value_or(kNever);
}

}  // namespace

void RunningBlocks::add(const Launch& launch, const int32_t name,
                        const std::optional<int32_t> meeting) {
  any_programmatic_ |= launch.programmatic;
  // The end of a block that waits on its SM, or is slowed, is not known when it is placed.
  const bool ends_are_known = !meeting && !launch.memory_wait_ns && !paces_;
  const bool has_one_row = between_.detail == Detail::launches && name >= 0 && ends_are_known;
  launches_.push_back({.launch = &launch,
                       .name = name,
                       .first_row = between_.rows,
                       .has_one_row = has_one_row,
                       .unfinished = launch.blocks,
                       .untriggered = launch.blocks,
                       .meeting = meeting});
  between_.rows += launches_.back().row_count();
  if (paces_) set_alone_spread(static_cast<int32_t>(launches_.size()) - 1);
}

void RunningBlocks::place(const PlacedBlocks& placed) {
  const int32_t launch = placed.launch;
  const LaunchState& state = launches_[launch];
  const auto blocks = static_cast<int32_t>(placed.sms.size());
  const bool together = leave_together(*state.launch);
  const std::span placed_rows = rows(launch).subspan(state.has_one_row ? 0 : placed.first_block);
  const int64_t now = clock_.gpu_now();
  if (!is_hidden(launch)) first_start_ns_ = std::min(first_start_ns_, clock_.now());
  // Neighbouring blocks of equal durations leave together.
  for (int32_t first = 0, next = 0; first < blocks; first = next) {
    const int64_t duration = duration_ns(launch, placed.first_block + first);
    next = together ? blocks : first + 1;
    if (!together && !paces_) {
      const std::vector<int64_t>& durations = state.launch->duration_ns;
      const int64_t* const placed_ns = durations.data() + placed.first_block;
      while (next < blocks && placed_ns[next] == duration) ++next;
    }
    if (state.has_one_row) {
      BlockTime& row = placed_rows.front();
      if (placed.first_block + first == 0) row = {state.name, 0, placed.sms[0], now, now};
      row.end_ns = std::max(row.end_ns, now + duration);
    }
    for (int32_t k = first; k < next && !state.has_one_row; ++k) {
      placed_rows[k] = {.launch = state.name,
                        .block = placed.first_block + k,
                        .sm = placed.sms[k],
                        .start_ns = now,
                        .end_ns = now + duration};
    }
    int32_t index = -1;  // of the first footprint of the batch
    if (together) {
      for (const Footprint& footprint : placed.footprints)
        index = store_footprint(footprint, index);
    } else {
      for (int32_t k = next; k-- > first;) index = store_footprint(placed.footprints[k], index);
    }
    start({launch, placed.first_block + first, next - first, index, clock_.now(), duration});
  }
}

void RunningBlocks::start(const Batch& batch) {
  const LaunchState& state = launches_[batch.launch];
  const Launch& started = *state.launch;
  const int64_t end_ns = batch.start_ns + batch.duration_ns;
  if (state.meeting) {
    for (BlockTime& block : rows(batch)) block.end_ns = kNever;
    last_end_ns_ = std::max(last_end_ns_, end_ns);  // at the earliest
    waiting_[batch.launch].push_back(batch);
    between_.meetings.arrive(*state.meeting, batch.blocks);
    return;
  }
  const int64_t wait_ns = started.memory_wait_ns.value_or(kNever);
  if (wait_ns > batch.duration_ns || work_.first_in_stream(batch.launch)) {
    schedule_exit(batch, end_ns);
    note_trigger(batch, end_ns);
    return;
  }
  last_end_ns_ = std::max(last_end_ns_, end_ns);  // at the earliest
  waiting_[batch.launch].push_back(batch);
  if (triggers_first(started)) note_trigger(batch, end_ns);
}

void RunningBlocks::meet(const int32_t launch) {
  const auto waiting = waiting_.extract(launch);
  if (waiting.empty()) return;
  for (const Batch& batch : waiting.mapped()) {
    const int64_t end_ns = clock_.now() + batch.duration_ns;
    check_time(launch, batch.duration_ns);
    for (BlockTime& block : rows(batch)) block.end_ns = end_ns;
    schedule_exit(batch, end_ns);
    note_trigger(batch, end_ns);
  }
}

void RunningBlocks::mark_never_started() {
  for (int32_t launch = 0; std::cmp_less(launch, launches_.size()); ++launch) {
    if (scheduler_.placed_whole(launch)) continue;
    const int32_t placed = scheduler_.placed(launch);
    const std::span launch_rows = rows(launch);
    // The only row of a launch that has started stays, but has no end.
    if (placed > 0 && launches_[launch].has_one_row) launch_rows.front().end_ns = kNever;
    for (int32_t block = placed; std::cmp_less(block, launch_rows.size()); ++block) {
      launch_rows[block] = {.launch = launches_[launch].name,
                            .block = block,
                            .sm = kNotPlaced,
                            .start_ns = kNever,
                            .end_ns = kNever};
    }
  }
}

std::span<BlockTime> RunningBlocks::rows(const Batch& batch) const {
  return rows(batch.launch).subspan(batch.first_block, batch.blocks);
}

void RunningBlocks::end_memory_waits(const int32_t launch) {
  const LaunchState& state = launches_[launch];
  if (state.meeting) return;
  const auto waiting = waiting_.extract(launch);
  if (waiting.empty()) return;
  const int64_t wait_ns = *state.launch->memory_wait_ns;
  for (const Batch& batch : waiting.mapped()) {
    const int64_t rest_ns = batch.duration_ns - wait_ns;
    check_time(launch, rest_ns);
    const int64_t end_ns = std::max(clock_.now(), batch.start_ns + wait_ns) + rest_ns;
    for (BlockTime& block : rows(batch)) block.end_ns = clock_.to_gpu(end_ns);
    schedule_exit(batch, end_ns);
    if (!triggers_first(*state.launch)) note_trigger(batch, end_ns);
  }
}

void RunningBlocks::schedule_exit(const Batch& batch, const int64_t end_ns) {
  LaunchState& state = launches_[batch.launch];
  state.end_ns = std::max(state.end_ns, end_ns);
  if (!is_hidden(batch.launch)) last_end_ns_ = std::max(last_end_ns_, end_ns);
  auto index = static_cast<int32_t>(batches_.size());
  if (free_batches_.empty()) {
    batches_.push_back(batch);
  } else {
    index = free_batches_.back();
    free_batches_.pop_back();
    batches_[index] = batch;
  }
  events_.push(Phase::leave, Domain::process,
               {.time_ns = end_ns + spec_.exit_latency_ns, .subject = index, .order = starts_++});
  if (!paces_) return;
  running_.resize(batches_.size());
  running_[index] = {static_cast<double>(end_ns - clock_.now()), 1, clock_.now()};
  paces_->add(batch.launch, footprints_[batch.first_footprint].footprint.sm);
}

void RunningBlocks::note_trigger(const Batch& batch, const int64_t end_ns) {
  if (!any_programmatic_) return;
  LaunchState& state = launches_[batch.launch];
  const int64_t trigger_ns = state.launch->trigger_ns.value_or(kNever);
  const int64_t rest_ns = std::max<int64_t>(0, batch.duration_ns - trigger_ns);
  state.triggered_ns = std::max(state.triggered_ns, end_ns - rest_ns);
  state.untriggered -= batch.blocks;
  if (state.untriggered == 0) work_.schedule_trigger(batch.launch, state.triggered_ns);
}

std::optional<RunningBlocks::Exit> RunningBlocks::exit_next() {
  const std::optional<TimedEvent> event = events_.pop(Phase::leave);
  if (!event) return std::nullopt;
  const Batch batch = batches_[event->subject];
  free_batches_.push_back(event->subject);
  for (int32_t index = batch.first_footprint; index >= 0;) {
    scheduler_.leave(batch.launch, footprints_[index].footprint);
    if (paces_) paces_->remove(batch.launch, footprints_[index].footprint.sm);
    const int32_t next = std::exchange(footprints_[index].next, free_footprint_);
    free_footprint_ = std::exchange(index, next);
  }
  if (clock_.has_stopped()) note_end(batch, event->time_ns - spec_.exit_latency_ns);
  LaunchState& state = launches_[batch.launch];
  state.unfinished -= batch.blocks;
  return Exit{batch.launch, state.unfinished == 0};
}

void RunningBlocks::note_end(const Batch& batch, const int64_t own_end_ns) {
  const int64_t end_ns = clock_.ended_ns(own_end_ns);
  for (BlockTime& block : rows(batch)) {
    block.end_ns = std::max(block.start_ns, end_ns);
  }
}

void RunningBlocks::set_alone_spread(const int32_t launch) {
  if (!paces_->knows(launch)) return;
  int32_t max_room = 0, usable = 0;
  for (int32_t sm = 0; sm < spec_.sms; ++sm) {
    const int32_t room = scheduler_.gpu().room(sm, scheduler_.demand(launch)).blocks;
    max_room = std::max(max_room, room);
    usable += room > 0 ? 1 : 0;
  }
  if (usable == 0) return;
  paces_->set_alone_spread(launch, std::min(launches_[launch].launch->blocks, max_room * usable),
                           usable);
}

void RunningBlocks::update_paces() {
  if (!paces_ || !paces_->changed()) return;
  paces_->settle([this](const int32_t launch) { return scheduler_.placed_whole(launch); });
  const int64_t now = clock_.now();
  events_.reschedule(Phase::leave, [&](const TimedEvent& event) {
    const Batch& batch = batches_[event.subject];
    Pace& running = running_[event.subject];
    BlockTime& block = rows(batch).front();
    if (block.end_ns <= now) return event.time_ns;  // it has ended and is leaving
    running.rest_ns -= running.pace * static_cast<double>(now - running.since_ns);
    running.since_ns = now;
    running.pace = paces_->pace(batch.launch, block.sm);
    const double rest_ns = std::max(running.rest_ns, 0.0) / running.pace;
    check_time(batch.launch, std::llround(std::min(rest_ns, 9e18)));
    block.end_ns = now + std::llround(rest_ns);
    last_end_ns_ = std::max(last_end_ns_, block.end_ns);
    return block.end_ns + spec_.exit_latency_ns;
  });
}

int64_t RunningBlocks::busy_until_ns(const int32_t launch, const int64_t from_ns) const {
  const LaunchState& state = launches_[launch];
  if (scheduler_.placed_whole(launch)) {
    return meets(launch) ? kNever : state.end_ns + spec_.exit_latency_ns;
  }
  if (state.meeting) return from_ns;
  // Its last block is not placed yet.
  return from_ns + std::min(state.launch->duration_ns.back(), kLatestNs) + spec_.exit_latency_ns;
}

int64_t RunningBlocks::duration_ns(const int32_t launch, const size_t block) const {
  const std::vector<int64_t>& durations = launches_[launch].launch->duration_ns;
  const int64_t duration = durations[durations.size() == 1 ? 0 : block];
  check_time(launch, duration);
  return duration;
}

void RunningBlocks::check_time(const int32_t launch, const int64_t duration_ns) const {
  if (duration_ns >= 0 && duration_ns <= kLatestNs && clock_.now() <= kLatestNs) return;
  refuse("launch " + std::to_string(launch) + ": duration: " + std::to_string(duration_ns) +
         " ns from " + std::to_string(clock_.now()) + " ns on is beyond the range of time");
}

int32_t RunningBlocks::store_footprint(const Footprint& footprint, const int32_t next) {
  // Free entries are used first, so that memory is limited by the most blocks that are resident at
  // once.
  if (free_footprint_ < 0) {
    footprints_.push_back({footprint, next});
    return static_cast<int32_t>(footprints_.size()) - 1;
  }
  const int32_t index = free_footprint_;
  free_footprint_ = std::exchange(footprints_[index].next, next);
  footprints_[index].footprint = footprint;
  return index;
}

std::vector<ResidentBlocks> RunningBlocks::resident_blocks() const {
  std::vector<ResidentBlocks> blocks;
  const auto list = [&](const Batch& batch) {
    if (is_hidden(batch.launch)) return;
    for (int32_t index = batch.first_footprint; index >= 0; index = footprints_[index].next) {
      blocks.push_back({batch.launch, footprints_[index].footprint});
    }
  };
  events_.for_each_in_order(Phase::leave,
                            [&](const TimedEvent& event) { list(batches_[event.subject]); });
  for (const auto& [launch, waiting] : waiting_) std::ranges::for_each(waiting, list);
  return blocks;
}

}  // namespace tbsched
