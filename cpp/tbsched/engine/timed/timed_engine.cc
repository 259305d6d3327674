#include "tbsched/engine/timed/timed_engine.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace tbsched {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw std::invalid_argument(message); }

}  // namespace

TimedEngine::TimedEngine(const Model& model, const InitialState state,
                         std::vector<int64_t> issue_ns)
    : scheduler_(model, state),
      streams_(model.device().spec),
      grids_left_(model.device().spec.resident_grids),
      exit_latency_ns_(model.device().spec.exit_latency_ns),
      launch_switch_ns_(model.device().spec.launch_switch_ns),
      issue_ns_(std::move(issue_ns)) {}

Timeline TimedEngine::run(const Sequence& sequence) && {
  add(sequence);
  for (int64_t now = 0; (now = next_instant(sequence, now)) != kNever;) {
    leave(now);
    issue(sequence, now);
    admit(now);
    place(now);
  }
  std::ranges::stable_sort(timeline_.waits, {}, &Wait::launch);
  return std::move(timeline_);
}

void TimedEngine::add(const Sequence& sequence) {
  size_t rows = 0;
  for (const Event& event : sequence) {
    if (const auto* const launch = std::get_if<Launch>(&event)) {
      const size_t durations = launch->duration_ns.size();
      const int32_t index =
          scheduler_.add(*launch, durations > 1 ? BlockScheduler::Leaving::one_by_one
                                                : BlockScheduler::Leaving::together);
      if (durations != 1 && durations != static_cast<size_t>(launch->blocks)) {
        refuse("launch " + std::to_string(index) + ": duration: one, or one per block, is needed");
      }
      kernels_.push_back({.launch = launch, .first_row = rows, .unfinished = launch->blocks});
      rows += static_cast<size_t>(launch->blocks);
    } else if (std::holds_alternative<Release>(event)) {
      refuse("release: launches with durations end by themselves");
    }
  }
  const bool in_range =
      issue_ns_.empty() || (issue_ns_.front() >= 0 && issue_ns_.back() <= kLatestNs);
  if (issue_ns_.size() != kernels_.size() || !in_range || !std::ranges::is_sorted(issue_ns_)) {
    refuse("issue times: one per launch is needed, ascending, within the range of time, 0.." +
           std::to_string(kLatestNs) + " ns");
  }
  timeline_.blocks.resize(rows);
  timeline_.hardware_queue.resize(kernels_.size());
}

int64_t TimedEngine::next_instant(const Sequence& sequence, const int64_t now) const {
  const int64_t leaving = resident_.empty() ? kNever : resident_.top().leaves_ns;
  const int64_t due = next_event_ < sequence.size() ? due_ns() : kNever;
  const int64_t switching = wants_to_switch_ ? next_switch_ns_ : kNever;
  return std::min({leaving, due, switching, streams_.next_change(now)});
}

// Events behind the last launch are due with it.
int64_t TimedEngine::due_ns() const {
  if (launches_issued_ < issue_ns_.size()) return issue_ns_[launches_issued_];
  return issue_ns_.empty() ? 0 : issue_ns_.back();
}

void TimedEngine::leave(const int64_t now) {
  while (!resident_.empty() && resident_.top().leaves_ns == now) {
    const Resident blocks = resident_.top();
    resident_.pop();
    for (int32_t held = blocks.first_held; held >= 0;) {
      scheduler_.leave(blocks.launch, held_[held].footprint);
      const int32_t next = std::exchange(held_[held].next, free_held_);
      free_held_ = std::exchange(held, next);
    }
    Kernel& kernel = kernels_[blocks.launch];
    kernel.unfinished -= blocks.blocks;
    if (kernel.unfinished == 0) {
      ++grids_left_;
      streams_.end(blocks.launch, now);
    }
  }
}

void TimedEngine::issue(const Sequence& sequence, const int64_t now) {
  // The next launch is due later, but the events before it with the launch before them.
  while (next_event_ < sequence.size()) {
    const bool is_launch = std::holds_alternative<Launch>(sequence[next_event_]);
    if (is_launch && due_ns() > now) break;
    streams_.issue(sequence[next_event_++], now);
    launches_issued_ += is_launch;
  }
}

void TimedEngine::admit(const int64_t now) {
  while (const std::optional<int32_t> launch = streams_.take(grids_left_ > 0, now)) {
    --grids_left_;
    streams_.append_waits(*launch, now, timeline_.waits);
    timeline_.hardware_queue[*launch] = streams_.hardware_queue(*launch);
    scheduler_.enqueue(*launch, launches_admitted_++);
  }
}

void TimedEngine::place(const int64_t now) {
  wants_to_switch_ = false;
  scheduler_.place({
      .placed =
          [&](const BlockScheduler::Placed& blocks) {
            if (scheduler_.current() != blocks.launch) next_switch_ns_ = now + launch_switch_ns_;
            placed(blocks, now);
          },
      .refused = [&](const int32_t launch, const Refusal cause,
                     const int32_t behind) { waits(launch, cause, behind, now); },
      .may_turn =
          [&] {
            wants_to_switch_ = now < next_switch_ns_;
            return !wants_to_switch_;
          },
      .every_refusal = true,
  });
}

void TimedEngine::placed(const BlockScheduler::Placed& placed, const int64_t now) {
  const Kernel& kernel = kernels_[placed.launch];
  const auto blocks = static_cast<int32_t>(placed.sms.size());
  const bool together = kernel.launch->duration_ns.size() == 1;
  int64_t end = end_ns(placed.launch, placed.first_block, now);
  int32_t held = -1;
  for (int32_t k = 0; k < blocks; ++k) {
    const int32_t block = placed.first_block + k;
    if (!together) {
      end = end_ns(placed.launch, block, now);
      resident_.push(
          {end + exit_latency_ns_, serial_++, placed.launch, 1, hold(placed.footprints[k], -1)});
    }
    timeline_.blocks[kernel.first_row + block] = {.launch = placed.launch,
                                                  .block = block,
                                                  .sm = placed.sms[k],
                                                  .start_ns = now,
                                                  .end_ns = end};
  }
  if (together) {
    for (const Footprint& footprint : placed.footprints) held = hold(footprint, held);
    resident_.push({end + exit_latency_ns_, serial_++, placed.launch, blocks, held});
  }
  if (scheduler_.placed_whole(placed.launch)) waits(placed.launch, Refusal::none, -1, now);
}

int64_t TimedEngine::end_ns(const int32_t launch, const size_t block, const int64_t now) const {
  const std::vector<int64_t>& durations = kernels_[launch].launch->duration_ns;
  const int64_t duration = durations[durations.size() == 1 ? 0 : block];
  if (duration < 0 || duration > kLatestNs || now > kLatestNs) {
    refuse("launch " + std::to_string(launch) + ": duration: " + std::to_string(duration) +
           " ns from " + std::to_string(now) + " ns on is beyond the range of time");
  }
  return now + duration;
}

// Takes a place that is not in use, so that the host allocates no more than are held at once.
int32_t TimedEngine::hold(const Footprint& footprint, const int32_t next) {
  if (free_held_ < 0) {
    held_.push_back({footprint, next});
    return static_cast<int32_t>(held_.size()) - 1;
  }
  const int32_t held = free_held_;
  free_held_ = std::exchange(held_[held].next, next);
  held_[held].footprint = footprint;
  return held;
}

// Notes the wait that ends when another begins, or none.
void TimedEngine::waits(const int32_t launch, const Refusal cause, const int32_t behind,
                        const int64_t now) {
  Kernel& kernel = kernels_[launch];
  const bool more_urgent =
      behind >= 0 && kernels_[behind].launch->priority < kernel.launch->priority;
  const Refusal found = cause == Refusal::queue && more_urgent ? Refusal::priority : cause;
  if (kernel.cause == found && kernel.behind == behind) return;
  if (kernel.cause != Refusal::none && now > kernel.since_ns) {
    timeline_.waits.push_back({launch, kernel.behind, kernel.since_ns, now, kernel.cause});
  }
  kernel.cause = found;
  kernel.behind = behind;
  kernel.since_ns = now;
}

}  // namespace tbsched
