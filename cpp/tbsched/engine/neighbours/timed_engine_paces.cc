// Blocks that slow each other: their ends move whenever others come or leave.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tbsched/engine/timed/timed_engine.h"

namespace tbsched {

void TimedEngine::slow(const Neighbours& neighbours) { paces_.emplace(neighbours, spec_.sms); }

// Alone, its blocks are spread evenly over the SMs that it may use.
void TimedEngine::expect_alone(const int32_t launch) {
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

void TimedEngine::note_running(const int32_t launch, const Started& blocks, const int64_t end_ns) {
  if (running_.size() <= static_cast<size_t>(blocks.first_held)) {
    running_.resize(blocks.first_held + 1);
  }
  const size_t row = launches_[launch].first_row + blocks.first_block;
  running_[blocks.first_held] = {row, static_cast<double>(end_ns - now_), 1, now_};
  paces_->come(launch, held_[blocks.first_held].footprint.sm);
}

void TimedEngine::change_paces() {
  if (!paces_ || !paces_->changed()) return;
  paces_->settle([this](const int32_t launch) { return scheduler_.placed_whole(launch); });
  for (Resident& resident : resident_.all()) {
    Running& running = running_[resident.first_held];
    BlockTime& block = timeline_.blocks[running.row];
    if (block.end_ns <= now_) continue;  // it is leaving
    running.left_ns -= running.pace * static_cast<double>(now_ - running.since_ns);
    running.since_ns = now_;
    running.pace = paces_->pace(resident.launch, block.sm);
    const double rest_ns = std::max(running.left_ns, 0.0) / running.pace;
    check_time(resident.launch, std::llround(std::min(rest_ns, 9e18)));
    block.end_ns = now_ + std::llround(rest_ns);
    resident.leaves_ns = block.end_ns + exit_latency_ns_;
    last_end_ns_ = std::max(last_end_ns_, block.end_ns);
  }
  resident_.sort();
}

}  // namespace tbsched
