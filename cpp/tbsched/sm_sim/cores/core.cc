#include "tbsched/sm_sim/cores/core.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

namespace tbsched::sm_sim {
namespace {

// Returns the set of one warp.
Warps bit(const int32_t warp) { return Warps{1} << warp; }

constexpr int64_t kNoSlot = INT64_MAX;
constexpr int64_t kMaxLines = 32;  // slots for which an instruction of a warp has L1

// Returns the most slots that an instruction can be in the pipeline.
size_t slots_of_pipeline(const Config& config) {
  const int64_t lines = (kMaxLines * config.l1_line_cycles + config.issue_cycles - 1);
  const int64_t hit = config.hit_stages + lines / config.issue_cycles;
  return static_cast<size_t>(std::max<int64_t>(config.pipeline_stages, hit));
}

// Removes the first warp from a set that is not empty, and returns it.
int32_t take_first(Warps& warps) {
  const int32_t first = std::countr_zero(warps);
  warps &= warps - 1;
  return first;
}

}  // namespace

Core::Core(const CoreShape& shape, const Chip& chip, std::unique_ptr<Scheduler> scheduler)
    : chip_(chip),
      shape_(shape),
      scheduler_(std::move(scheduler)),
      l1_({chip.config.l1_bytes / chip.config.line_bytes / chip.config.l1_ways, chip.config.l1_ways,
           static_cast<Replacement>(chip.config.l1_replacement), chip.config.hash_sets != 0}),
      all_sectors_(static_cast<Sectors>((1 << chip.config.line_sectors) - 1)),
      mshrs_(chip.config.l1_mshrs),
      remaining_warps_(static_cast<size_t>(shape.places), 0),
      block_at_(static_cast<size_t>(shape.places), -1),
      pipeline_(slots_of_pipeline(chip.config), 0),
      free_stores_(chip.config.store_entries) {}

void Core::start_block(const int64_t tick, const int32_t place) {
  const std::optional<int32_t> block = chip_.blocks.take_next(shape_.core);
  if (!block) return;
  count_idle(tick);
  const int32_t size = shape_.warps_per_block;
  const Warps warps = shape_.warps_at(place);
  for (int32_t index = 0; index < size; ++index) {
    const size_t warp =
        static_cast<size_t>(*block) * static_cast<size_t>(size) + static_cast<size_t>(index);
    const int64_t row = chip_.workload.rows[warp];
    warps_[static_cast<size_t>(place * size + index)] = {
        row, chip_.workload.rows[warp + 1], chip_.workload.compute[static_cast<size_t>(row)], 0, 0,
        -1};
  }
  remaining_warps_[static_cast<size_t>(place)] = size;
  block_at_[static_cast<size_t>(place)] = *block;
  BlockTime& time = chip_.times[static_cast<size_t>(*block)];
  time.core = shape_.core;
  time.start = tick / chip_.clocks.core;
  done_ &= ~warps;
  resident_ |= warps;
  scheduler_->block_started(place);
  make_ready(tick, warps);
}

void Core::make_ready(const int64_t tick, const Warps warps) {
  if (warps == 0) return;
  waiting_ &= ~warps;
  stalled_loads_ &= ~warps;
  stalled_stores_ &= ~warps;
  ready_ |= warps;
  wake(tick, warps);
  schedule_issue(next_multiple(tick, chip_.clocks.slot) / chip_.clocks.slot);
}

void Core::wake(const int64_t tick, Warps warps) {
  if (chip_.warps == nullptr) return;
  while (warps != 0) warps_[static_cast<size_t>(take_first(warps))].ready_since = tick;
}

void Core::sleep(const int64_t tick, Warps warps) {
  if (chip_.warps == nullptr) return;
  while (warps != 0) {
    const int32_t warp_id = take_first(warps);
    const int64_t since = std::exchange(warps_[static_cast<size_t>(warp_id)].ready_since, -1);
    if (since < 0) continue;
    const int64_t cycle = chip_.clocks.core;
    chip_.warps->push_back({shape_.core, warp_id, since / cycle, tick / cycle});
  }
}

void Core::schedule_issue(int64_t slot) {
  slot = std::max(slot, last_slot_ + 1);
  if (next_slot_ >= 0 && next_slot_ <= slot) return;
  next_slot_ = slot;
  chip_.events.push(
      {.tick = slot * chip_.clocks.slot, .to = shape_.core, .kind = EventKind::issue});
}

void Core::issue(const int64_t tick) {
  const int64_t slot = tick / chip_.clocks.slot;
  if (slot != next_slot_) return;  // a later request asked for an earlier slot
  count_idle(tick);
  idle_since_ = -1;
  drain_pipeline(slot);
  for (int32_t issued = 0; issued < chip_.config.issue_width && ready_ != 0; ++issued) {
    const int32_t warp =
        scheduler_->pick({ready_, waiting_ | at_barrier_, resident_, tick / chip_.clocks.core,
                          at_barrier_ | stalled_loads_ | stalled_stores_});
    if (warp == -1) break;
    if (warp < -1 || warp > 63 || (ready_ & bit(warp)) == 0) {
      throw std::invalid_argument("scheduler: it picked warp " + std::to_string(warp) +
                                  " of core " + std::to_string(shape_.core) +
                                  ", which is not ready");
    }
    execute(tick, warp);
  }
  schedule_next_issue(tick);
}

void Core::drain_pipeline(const int64_t slot) {
  Warps& out = pipeline_[static_cast<size_t>(slot) % pipeline_.size()];
  const Warps ended = out & done_;
  ready_ |= out & ~done_;
  out = 0;
  for (; !turns_.empty() && turns_.front().slot <= slot; turns_.pop_front()) {
    ready_ |= bit(turns_.front().warp);
  }
  if (ended != 0) retire(slot * chip_.clocks.slot, ended);
}

void Core::execute(const int64_t tick, const int32_t warp_id) {
  Warp& warp = warps_[static_cast<size_t>(warp_id)];
  const int64_t slot = tick / chip_.clocks.slot;
  ready_ &= ~bit(warp_id);
  int64_t stages = chip_.config.pipeline_stages;
  if (warp.remaining_computes > 0) {
    --warp.remaining_computes;
    ++chip_.statistics.instructions;
    if (warp.remaining_computes == 0 && kind_of(warp.row) == Access::none) advance_row(warp);
  } else if (kind_of(warp.row) == Access::barrier) {
    ++chip_.statistics.instructions;
    advance_row(warp);
    if (warp.row < warp.end) {
      at_barrier_ |= bit(warp_id);
      sleep(tick, bit(warp_id));
    }
  } else {
    const int64_t busy = chip_.config.l1_line_cycles > 0 ? l1_slots_of(warp) : 0;
    if (busy > 0 && !reserve_l1(tick, warp_id, busy)) return;
    if (access(tick, warp_id) != Access::store) stages = chip_.config.hit_stages + busy;
  }
  if (warp.row == warp.end) done_ |= bit(warp_id);
  if (((waiting_ | at_barrier_) & bit(warp_id)) == 0) {
    enter_pipeline_until(slot + stages, bit(warp_id));
  }
  if (at_barrier_ != 0) open_barrier(slot, warp_id / shape_.warps_per_block);
}

void Core::enter_pipeline_until(const int64_t slot, const Warps warps) {
  pipeline_[static_cast<size_t>(slot) % pipeline_.size()] |= warps;
}

void Core::open_barrier(const int64_t slot, const int32_t place) {
  const Warps block = shape_.warps_at(place);
  const Warps arrived = block & at_barrier_;
  if ((block & resident_ & ~done_ & ~arrived) != 0) return;
  at_barrier_ &= ~arrived;
  wake(slot * chip_.clocks.slot, arrived);
  enter_pipeline_until(slot + chip_.config.pipeline_stages, arrived);
}

int64_t Core::l1_slots_of(const Warp& warp) const {
  int64_t end = warp.row + 1;
  while (end < warp.end && kind_of(end) == Access::same_instruction) ++end;
  const int64_t cycles = std::min(end - warp.row, kMaxLines) * chip_.config.l1_line_cycles;
  return (cycles + chip_.config.issue_cycles - 1) / chip_.config.issue_cycles;
}

bool Core::reserve_l1(const int64_t tick, const int32_t warp_id, const int64_t slots) {
  if ((has_turn_ & bit(warp_id)) != 0) {
    has_turn_ &= ~bit(warp_id);
    return true;
  }
  const int64_t now = tick / chip_.clocks.slot;
  const int64_t turn = std::max(now, l1_free_slot_);
  l1_free_slot_ = turn + slots;
  if (turn == now) return true;
  has_turn_ |= bit(warp_id);
  turns_.push_back({turn, warp_id});
  return false;
}

void Core::advance_row(Warp& warp) const {
  if (++warp.row < warp.end) {
    warp.remaining_computes = chip_.workload.compute[static_cast<size_t>(warp.row)];
  }
}

Part Core::part_of(const int64_t row) const {
  const auto at = static_cast<size_t>(row);
  const Workload& workload = chip_.workload;
  return {workload.address[at] / static_cast<uint64_t>(chip_.config.line_bytes),
          workload.sectors.empty() ? all_sectors_
                                   : static_cast<Sectors>(workload.sectors[at] & all_sectors_)};
}

Access Core::access(const int64_t tick, const int32_t warp_id) {
  Warp& warp = warps_[static_cast<size_t>(warp_id)];
  int64_t first = warp.row;
  while (kind_of(first) == Access::same_instruction) --first;
  const Access kind = kind_of(first);
  do {
    if (!access_line(tick, warp_id, kind, part_of(warp.row))) {
      stall(tick, warp_id, kind);
      return kind;
    }
    if (warp.row == first) ++chip_.statistics.instructions;
    advance_row(warp);
  } while (warp.row < warp.end && kind_of(warp.row) == Access::same_instruction);
  // The access may not have used the room for which it was woken.
  if (!mshrs_.full()) make_ready(tick, next_to_replay(stalled_loads_));
  if (free_stores_ > 0) make_ready(tick, next_to_replay(stalled_stores_));
  if (warp.missing_lines > 0) {
    waiting_ |= bit(warp_id);
    sleep(tick + chip_.clocks.slot, bit(warp_id));
  }
  return kind;
}

void Core::stall(const int64_t tick, const int32_t warp_id, const Access kind) {
  ++chip_.statistics.replays;
  waiting_ |= bit(warp_id);
  sleep(tick + chip_.clocks.slot, bit(warp_id));
  (kind == Access::store ? stalled_stores_ : stalled_loads_) |= bit(warp_id);
  warps_[static_cast<size_t>(warp_id)].stall_order = stalls_++;
}

Warps Core::next_to_replay(const Warps stalled) const {
  if (chip_.config.replay_all != 0 || stalled == 0) return stalled;
  Warps rest = stalled;
  int32_t first = take_first(rest);
  while (rest != 0) {
    const int32_t warp = take_first(rest);
    const auto order = [&](const int32_t each) {
      return warps_[static_cast<size_t>(each)].stall_order;
    };
    if (order(warp) < order(first)) first = warp;
  }
  return bit(first);
}

bool Core::access_line(const int64_t tick, const int32_t warp, const Access kind, const Part part) {
  const bool hit = chip_.perfect_l1;
  if (kind == Access::store) {
    if (!hit && !store(tick, part)) return false;
    chip_.statistics.l1_stores += sectors_in(part.sectors);
  } else {
    if (!hit && !load(tick, warp, part)) return false;
    chip_.statistics.l1_loads += sectors_in(part.sectors);
  }
  return true;
}

bool Core::load(const int64_t tick, const int32_t warp_id, const Part part) {
  const auto missing = static_cast<Sectors>(part.sectors & ~l1_.touch(part, false));
  if (missing == 0) return true;
  auto* entry = mshrs_.find(part.line);
  if (entry == nullptr) {
    if (mshrs_.full()) return false;
    entry = &mshrs_.add(part.line, tick);
  }
  const auto asked = static_cast<Sectors>(missing & ~entry->sectors);
  if (asked != 0) {
    entry->sectors |= asked;
    if (chip_.config.l1_miss_allocates != 0) fill_l1(tick, {part.line, 0});
    const int32_t slice = chip_.map.controller_of(part.line);
    chip_.events.push({.tick = chip_.requests.send(tick, shape_.core, slice, 1),
                       .line = part.line,
                       .to = slice,
                       .from = shape_.core,
                       .kind = EventKind::request,
                       .sectors = asked});
  }
  chip_.statistics.l1_misses += sectors_in(missing);
  chip_.statistics.l1_merges += sectors_in(missing) - sectors_in(asked);
  if ((entry->waiters & bit(warp_id)) == 0) {
    entry->waiters |= bit(warp_id);
    ++warps_[static_cast<size_t>(warp_id)].missing_lines;
  }
  return true;
}

bool Core::store(const int64_t tick, const Part part) {
  const bool stays = chip_.config.l1_write_back != 0;
  const Sectors has = l1_.touch(part, stays);
  const bool whole = has == part.sectors;
  if (free_stores_ <= 0 && !(stays && whole)) return false;
  chip_.statistics.l1_store_hits += sectors_in(has);
  if (!stays) send_write(tick, part);
  if (!whole && (stays || chip_.config.l1_store_allocates != 0)) {
    if (const std::optional<Part> evicted = l1_.fill(part, stays)) send_write(tick, *evicted);
  }
  return true;
}

void Core::send_write(const int64_t tick, const Part part) {
  const int32_t flits = flits_of(chip_.config, part.sectors);
  const int32_t slice = chip_.map.controller_of(part.line);
  --free_stores_;
  chip_.statistics.l1_writes += sectors_in(part.sectors);
  chip_.events.push({.tick = chip_.requests.send(tick, shape_.core, slice, flits),
                     .line = part.line,
                     .to = slice,
                     .from = shape_.core,
                     .kind = EventKind::write,
                     .sectors = part.sectors});
}

void Core::free_store(const int64_t tick) {
  ++free_stores_;
  make_ready(tick, next_to_replay(stalled_stores_));
}

void Core::fill_l1(const int64_t tick, const Part part) {
  if (const std::optional<Part> evicted = l1_.fill(part, false)) send_write(tick, *evicted);
}

void Core::fill(const int64_t tick, const Part part) {
  auto* const entry = mshrs_.find(part.line);
  if (entry == nullptr || (part.sectors & ~entry->sectors) != 0) {
    throw std::logic_error("a core received sectors that it did not ask for");
  }
  if (chip_.config.l1_miss_allocates == 0 || l1_.has_place(part.line)) fill_l1(tick, part);
  entry->sectors &= static_cast<Sectors>(~part.sectors);
  if (entry->sectors != 0) return;
  const auto filled = mshrs_.take(entry);
  ++chip_.statistics.fills;
  chip_.statistics.latency_cycles += (tick - filled.since) / chip_.clocks.core;
  Warps finished = next_to_replay(stalled_loads_);
  for (Warps waiters = filled.waiters; waiters != 0;) {
    const int32_t warp = take_first(waiters);
    if (--warps_[static_cast<size_t>(warp)].missing_lines == 0) finished |= bit(warp);
  }
  if (const Warps ended = finished & done_; ended != 0) retire(tick, ended);
  make_ready(tick, finished & ~done_ & waiting_);
}

void Core::retire(const int64_t tick, Warps warps) {
  count_idle(tick);
  sleep(tick, warps);
  waiting_ &= ~warps;
  resident_ &= ~warps;
  while (warps != 0) {
    const int32_t place = take_first(warps) / shape_.warps_per_block;
    if (--remaining_warps_[static_cast<size_t>(place)] > 0) continue;
    chip_.times[static_cast<size_t>(block_at_[static_cast<size_t>(place)])].end =
        tick / chip_.clocks.core;
    chip_.blocks.end_one();
    start_block(tick, place);
  }
}

void Core::schedule_next_issue(const int64_t tick) {
  const int64_t slot = tick / chip_.clocks.slot;
  last_slot_ = slot;
  next_slot_ = -1;
  if (ready_ != 0) return schedule_issue(slot + 1);
  int64_t next = turns_.empty() ? kNoSlot : turns_.front().slot;
  const auto stages = static_cast<int64_t>(pipeline_.size());
  for (int64_t ahead = 1; ahead <= stages && slot + ahead < next; ++ahead) {
    if (pipeline_[static_cast<size_t>(slot + ahead) % pipeline_.size()] != 0) next = slot + ahead;
  }
  if (next != kNoSlot) return schedule_issue(next);
  idle_since_ = (slot + 1) * chip_.clocks.slot;
}

void Core::count_idle(const int64_t tick) {
  if (idle_since_ < 0 || tick <= idle_since_) return;
  (resident_ != 0 ? blocked_ticks_ : empty_ticks_) += tick - idle_since_;
  idle_since_ = tick;
}

void Core::finish(const int64_t tick) {
  count_idle(tick);
  chip_.statistics.memory_block_cycles += blocked_ticks_ / chip_.clocks.core;
  chip_.statistics.no_warp_cycles += empty_ticks_ / chip_.clocks.core;
}

}  // namespace tbsched::sm_sim
