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

// Returns whether blocks trigger before their memory wait. A block that does both at the same time
// triggers first.
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
  if (paces_) expect_alone(static_cast<int32_t>(launches_.size()) - 1);
}

void RunningBlocks::place(const PlacedBlocks& placed) {
  const int32_t launch = placed.launch;
  const LaunchState& state = launches_[launch];
  const auto blocks = static_cast<int32_t>(placed.sms.size());
  const bool together = leave_together(*state.launch);
  const std::span own_rows = rows(launch).subspan(state.has_one_row ? 0 : placed.first_block);
  const int64_t now = clock_.gpu_now();
  if (!is_hidden(launch)) first_start_ns_ = std::min(first_start_ns_, clock_.now());
  // Neighbouring blocks of equal durations leave together.
  for (int32_t first = 0, next = 0; first < blocks; first = next) {
    const int64_t duration = duration_ns(launch, placed.first_block + first);
    next = together ? blocks : first + 1;
    if (!together && !paces_) {
      const std::vector<int64_t>& durations = state.launch->duration_ns;
      const int64_t* const own = durations.data() + placed.first_block;
      while (next < blocks && own[next] == duration) ++next;
    }
    if (state.has_one_row) {
      BlockTime& row = own_rows.front();
      if (placed.first_block + first == 0) row = {state.name, 0, placed.sms[0], now, now};
      row.end_ns = std::max(row.end_ns, now + duration);
    }
    for (int32_t k = first; k < next && !state.has_one_row; ++k) {
      own_rows[k] = {.launch = state.name,
                     .block = placed.first_block + k,
                     .sm = placed.sms[k],
                     .start_ns = now,
                     .end_ns = now + duration};
    }
    int32_t held = -1;
    if (together) {
      for (const Footprint& footprint : placed.footprints) held = hold(footprint, held);
    } else {
      for (int32_t k = next; k-- > first;) held = hold(placed.footprints[k], held);
    }
    start({launch, placed.first_block + first, next - first, held, clock_.now(), duration});
  }
}

void RunningBlocks::start(const Group& group) {
  const LaunchState& state = launches_[group.launch];
  const Launch& started = *state.launch;
  const int64_t end_ns = group.start_ns + group.duration_ns;
  if (state.meeting) {
    for (BlockTime& block : rows(group)) block.end_ns = kNever;
    last_end_ns_ = std::max(last_end_ns_, end_ns);  // at the earliest
    waiting_[group.launch].push_back(group);
    between_.meetings.arrive(*state.meeting, group.blocks);
    return;
  }
  const int64_t wait_ns = started.memory_wait_ns.value_or(kNever);
  if (wait_ns > group.duration_ns || work_.first_in_stream(group.launch)) {
    end(group, end_ns);
    trigger(group, end_ns);
    return;
  }
  last_end_ns_ = std::max(last_end_ns_, end_ns);  // at the earliest
  waiting_[group.launch].push_back(group);
  if (triggers_first(started)) trigger(group, end_ns);
}

void RunningBlocks::meet(const int32_t launch) {
  const auto waiting = waiting_.extract(launch);
  if (waiting.empty()) return;
  for (const Group& group : waiting.mapped()) {
    const int64_t end_ns = clock_.now() + group.duration_ns;
    check_time(launch, group.duration_ns);
    for (BlockTime& block : rows(group)) block.end_ns = end_ns;
    end(group, end_ns);
    trigger(group, end_ns);
  }
}

void RunningBlocks::mark_never_started() {
  for (size_t launch = 0; launch < launches_.size(); ++launch) {
    const auto number = static_cast<int32_t>(launch);
    if (scheduler_.placed_whole(number)) continue;
    const int32_t placed = scheduler_.placed(number);
    const std::span own_rows = rows(number);
    if (placed > 0 && launches_[launch].has_one_row) own_rows.front().end_ns = kNever;
    for (int32_t block = placed; std::cmp_less(block, own_rows.size()); ++block) {
      own_rows[block] = {.launch = launches_[launch].name,
                         .block = block,
                         .sm = kNotPlaced,
                         .start_ns = kNever,
                         .end_ns = kNever};
    }
  }
}

std::span<BlockTime> RunningBlocks::rows(const Group& group) const {
  return rows(group.launch).subspan(group.first_block, group.blocks);
}

void RunningBlocks::end_memory_waits(const int32_t launch) {
  const LaunchState& state = launches_[launch];
  if (state.meeting) return;
  const auto waiting = waiting_.extract(launch);
  if (waiting.empty()) return;
  const int64_t wait_ns = *state.launch->memory_wait_ns;
  for (const Group& group : waiting.mapped()) {
    const int64_t rest_ns = group.duration_ns - wait_ns;
    check_time(launch, rest_ns);
    const int64_t end_ns = std::max(clock_.now(), group.start_ns + wait_ns) + rest_ns;
    for (BlockTime& block : rows(group)) block.end_ns = clock_.to_gpu(end_ns);
    end(group, end_ns);
    if (!triggers_first(*state.launch)) trigger(group, end_ns);
  }
}

void RunningBlocks::end(const Group& group, const int64_t end_ns) {
  LaunchState& state = launches_[group.launch];
  state.end_ns = std::max(state.end_ns, end_ns);
  if (!is_hidden(group.launch)) last_end_ns_ = std::max(last_end_ns_, end_ns);
  auto number = static_cast<int32_t>(groups_.size());
  if (free_groups_.empty()) {
    groups_.push_back(group);
  } else {
    number = free_groups_.back();
    free_groups_.pop_back();
    groups_[number] = group;
  }
  events_.push(Phase::leave, Domain::process,
               {.time_ns = end_ns + spec_.exit_latency_ns, .subject = number, .place = serial_++});
  if (!paces_) return;
  running_.resize(groups_.size());
  running_[number] = {static_cast<double>(end_ns - clock_.now()), 1, clock_.now()};
  paces_->add(group.launch, held_[group.first_held].footprint.sm);
}

// `end_ns` is that of blocks that do not wait between their trigger and their end.
void RunningBlocks::trigger(const Group& group, const int64_t end_ns) {
  if (!any_programmatic_) return;
  LaunchState& state = launches_[group.launch];
  const int64_t trigger_ns = state.launch->trigger_ns.value_or(kNever);
  const int64_t rest_ns = std::max<int64_t>(0, group.duration_ns - trigger_ns);
  state.triggered_ns = std::max(state.triggered_ns, end_ns - rest_ns);
  state.untriggered -= group.blocks;
  if (state.untriggered == 0) work_.trigger(group.launch, state.triggered_ns);
}

std::optional<RunningBlocks::Left> RunningBlocks::leave_next() {
  const std::optional<TimedEvent> event = events_.pop(Phase::leave);
  if (!event) return std::nullopt;
  const Group group = groups_[event->subject];
  free_groups_.push_back(event->subject);
  for (int32_t held = group.first_held; held >= 0;) {
    scheduler_.leave(group.launch, held_[held].footprint);
    if (paces_) paces_->remove(group.launch, held_[held].footprint.sm);
    const int32_t next = std::exchange(held_[held].next, free_held_);
    free_held_ = std::exchange(held, next);
  }
  if (clock_.has_stopped()) note_end(group, event->time_ns - spec_.exit_latency_ns);
  LaunchState& state = launches_[group.launch];
  state.unfinished -= group.blocks;
  return Left{group.launch, state.unfinished == 0};
}

// Sets the end by the GPU's clock, which may have advanced while the process was stopped.
void RunningBlocks::note_end(const Group& group, const int64_t own_end_ns) {
  const int64_t end_ns = clock_.ended_ns(own_end_ns);
  for (BlockTime& block : rows(group)) {
    block.end_ns = std::max(block.start_ns, end_ns);
  }
}

// Tells the paces how the launch is spread when it is alone: evenly over the SMs that it may use.
void RunningBlocks::expect_alone(const int32_t launch) {
  if (!paces_->knows(launch)) return;
  int32_t most = 0, usable = 0;
  for (int32_t sm = 0; sm < spec_.sms; ++sm) {
    const int32_t room = scheduler_.gpu().room(sm, scheduler_.demand(launch)).blocks;
    most = std::max(most, room);
    usable += room > 0 ? 1 : 0;
  }
  if (usable == 0) return;
  paces_->expect(launch, std::min(launches_[launch].launch->blocks, most * usable), usable);
}

void RunningBlocks::change_paces() {
  if (!paces_ || !paces_->changed()) return;
  paces_->settle([this](const int32_t launch) { return scheduler_.placed_whole(launch); });
  const int64_t now = clock_.now();
  events_.reschedule(Phase::leave, [&](const TimedEvent& event) {
    const Group& group = groups_[event.subject];
    Pace& running = running_[event.subject];
    BlockTime& block = rows(group).front();
    if (block.end_ns <= now) return event.time_ns;  // it has ended and is leaving
    running.left_ns -= running.pace * static_cast<double>(now - running.since_ns);
    running.since_ns = now;
    running.pace = paces_->pace(group.launch, block.sm);
    const double rest_ns = std::max(running.left_ns, 0.0) / running.pace;
    check_time(group.launch, std::llround(std::min(rest_ns, 9e18)));
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

// Stores a footprint. Unused entries are used first, so that memory is limited by the most that are
// held at once.
int32_t RunningBlocks::hold(const Footprint& footprint, const int32_t next) {
  if (free_held_ < 0) {
    held_.push_back({footprint, next});
    return static_cast<int32_t>(held_.size()) - 1;
  }
  const int32_t held = free_held_;
  free_held_ = std::exchange(held_[held].next, next);
  held_[held].footprint = footprint;
  return held;
}

std::vector<ResidentBlocks> RunningBlocks::held() const {
  std::vector<ResidentBlocks> blocks;
  const auto list = [&](const Group& group) {
    if (is_hidden(group.launch)) return;
    for (int32_t held = group.first_held; held >= 0; held = held_[held].next) {
      blocks.push_back({group.launch, held_[held].footprint});
    }
  };
  events_.for_each_in_order(Phase::leave,
                            [&](const TimedEvent& event) { list(groups_[event.subject]); });
  for (const auto& [launch, waiting] : waiting_) std::ranges::for_each(waiting, list);
  return blocks;
}

}  // namespace tbsched
