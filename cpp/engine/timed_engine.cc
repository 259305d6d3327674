#include "engine/timed_engine.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace tbsched {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

[[noreturn]] void refuse(const std::string& message) { throw std::invalid_argument(message); }

}  // namespace

TimedEngine::TimedEngine(const DeviceSpec& spec, const PolicyRow& policy, const InitialState state,
                         const int64_t launch_interval_ns)
    : scheduler_(spec, policy, state),
      streams_(spec.hardware_queues, launch_order_named(spec.launch_order)),
      grids_left_(spec.resident_grids),
      launch_interval_ns_(launch_interval_ns) {}

Timeline TimedEngine::run(const Sequence& sequence) && {
  add(sequence);
  while (true) {
    const int64_t now = next_instant(sequence);
    if (now == kNever) break;
    leave(now);
    issue(sequence, now);
    admit(now);
    scheduler_.place({
        .gate = [](int32_t) { return Refusal::none; },
        .placed = [&](const BlockScheduler::Placed& blocks) { placed(blocks, now); },
        .refused = [&](const int32_t launch, const Refusal cause,
                       const int32_t behind) { waits(launch, cause, behind, now); },
    });
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
  if (launch_interval_ns_ > kNever / std::max<int64_t>(1, std::ssize(kernels_))) {
    refuse("launch_interval: " + std::to_string(launch_interval_ns_) + " ns for each of " +
           std::to_string(kernels_.size()) + " launches is beyond the range of time");
  }
  timeline_.blocks.resize(rows);
  timeline_.hardware_queue.resize(kernels_.size());
}

int64_t TimedEngine::next_instant(const Sequence& sequence) const {
  const int64_t leaving = resident_.empty() ? kNever : resident_.top().end_ns;
  return next_event_ < sequence.size() ? std::min(leaving, due_ns()) : leaving;
}

int64_t TimedEngine::due_ns() const { return launches_issued_ * launch_interval_ns_; }

void TimedEngine::leave(const int64_t now) {
  while (!resident_.empty() && resident_.top().end_ns == now) {
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
  // What follows a launch is due an interval after it, but events are due with the launch.
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
    scheduler_.enqueue(*launch);
  }
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
      resident_.push({end, serial_++, placed.launch, 1, hold(placed.footprints[k], -1)});
    }
    timeline_.blocks[kernel.first_row + block] = {.launch = placed.launch,
                                                  .block = block,
                                                  .sm = placed.sms[k],
                                                  .start_ns = now,
                                                  .end_ns = end};
  }
  if (together) {
    for (const Footprint& footprint : placed.footprints) held = hold(footprint, held);
    resident_.push({end, serial_++, placed.launch, blocks, held});
  }
  if (scheduler_.placed_whole(placed.launch)) waits(placed.launch, Refusal::none, -1, now);
}

int64_t TimedEngine::end_ns(const int32_t launch, const size_t block, const int64_t now) const {
  const std::vector<int64_t>& durations = kernels_[launch].launch->duration_ns;
  const int64_t duration = durations[durations.size() == 1 ? 0 : block];
  if (duration < 0 || duration >= kNever - now) {
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
