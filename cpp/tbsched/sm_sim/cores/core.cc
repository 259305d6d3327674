#include "tbsched/sm_sim/cores/core.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

namespace tbsched::sm_sim {
namespace {

Warps only(const int32_t warp) { return Warps{1} << warp; }

constexpr int64_t kNoSlot = INT64_MAX;
constexpr int64_t kMostLines = 32;  // slots for which an instruction of a warp has L1

// Returns the number of slots: the longest way through the pipeline.
size_t slots_of_pipeline(const Config& config) {
  const int64_t lines = (kMostLines * config.l1_line_cycles + config.issue_cycles - 1);
  const int64_t hit = config.hit_stages + lines / config.issue_cycles;
  return static_cast<size_t>(std::max<int64_t>(config.pipeline_stages, hit));
}

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
      missing_(chip.config.l1_mshrs),
      left_(static_cast<size_t>(shape.places), 0),
      blocks_(static_cast<size_t>(shape.places), -1),
      pipeline_(slots_of_pipeline(chip.config), 0),
      stores_(chip.config.store_entries) {}

void Core::start_block(const int64_t tick, const int32_t place) {
  const std::optional<int32_t> block = chip_.blocks.next(shape_.core);
  if (!block) return;
  count_idle(tick);
  const int32_t size = shape_.warps_per_block;
  const Warps warps = shape_.warps_at(place);
  for (int32_t number = 0; number < size; ++number) {
    const size_t warp =
        static_cast<size_t>(*block) * static_cast<size_t>(size) + static_cast<size_t>(number);
    const int64_t row = chip_.workload.rows[warp];
    warps_[static_cast<size_t>(place * size + number)] = {
        row, chip_.workload.rows[warp + 1], chip_.workload.compute[static_cast<size_t>(row)], 0, 0,
        -1};
  }
  left_[static_cast<size_t>(place)] = size;
  blocks_[static_cast<size_t>(place)] = *block;
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
  ask_for(next_multiple(tick, chip_.clocks.slot) / chip_.clocks.slot);
}

// Notes that these warps can issue from `tick` on.
void Core::wake(const int64_t tick, Warps warps) {
  if (chip_.warps == nullptr) return;
  while (warps != 0) warps_[static_cast<size_t>(take_first(warps))].awake = tick;
}

// Notes that these warps cannot issue from `tick` on; some could not before.
void Core::sleep(const int64_t tick, Warps warps) {
  if (chip_.warps == nullptr) return;
  while (warps != 0) {
    const int32_t number = take_first(warps);
    const int64_t since = std::exchange(warps_[static_cast<size_t>(number)].awake, -1);
    if (since < 0) continue;
    const int64_t cycle = chip_.clocks.core;
    chip_.warps->push_back({shape_.core, number, since / cycle, tick / cycle});
  }
}

void Core::ask_for(int64_t slot) {
  slot = std::max(slot, last_slot_ + 1);
  if (next_slot_ >= 0 && next_slot_ <= slot) return;
  next_slot_ = slot;
  chip_.events.push(
      {.tick = slot * chip_.clocks.slot, .to = shape_.core, .what = EventKind::issue});
}

void Core::issue(const int64_t tick) {
  const int64_t slot = tick / chip_.clocks.slot;
  if (slot != next_slot_) return;  // a later request asked for an earlier slot
  count_idle(tick);
  idle_since_ = -1;
  emerge(slot);
  for (int32_t issued = 0; issued < chip_.config.issue_width && ready_ != 0; ++issued) {
    const int32_t warp =
        scheduler_->pick({ready_, waiting_ | at_barrier_, resident_, tick / chip_.clocks.core,
                          at_barrier_ | stalled_loads_ | stalled_stores_});
    if (warp == -1) break;
    if (warp < -1 || warp > 63 || (ready_ & only(warp)) == 0) {
      throw std::invalid_argument("scheduler: it picked warp " + std::to_string(warp) +
                                  " of core " + std::to_string(shape_.core) +
                                  ", which is not ready");
    }
    execute(tick, warp);
  }
  schedule_next_issue(tick);
}

// Makes the warps ready that have left the pipeline since the last call.
void Core::emerge(const int64_t slot) {
  Warps& out = pipeline_[static_cast<size_t>(slot) % pipeline_.size()];
  const Warps ended = out & done_;
  ready_ |= out & ~done_;
  out = 0;
  for (; !turns_.empty() && turns_.front().slot <= slot; turns_.pop_front()) {
    ready_ |= only(turns_.front().warp);
  }
  if (ended != 0) retire(slot * chip_.clocks.slot, ended);
}

void Core::execute(const int64_t tick, const int32_t number) {
  Warp& warp = warps_[static_cast<size_t>(number)];
  const int64_t slot = tick / chip_.clocks.slot;
  ready_ &= ~only(number);
  int64_t stages = chip_.config.pipeline_stages;
  if (warp.compute > 0) {
    --warp.compute;
    ++chip_.statistics.instructions;
    if (warp.compute == 0 && kind_of(warp.row) == Access::none) to_next_row(warp);
  } else if (kind_of(warp.row) == Access::barrier) {
    ++chip_.statistics.instructions;
    to_next_row(warp);
    if (warp.row < warp.end) {
      at_barrier_ |= only(number);
      sleep(tick, only(number));
    }
  } else {
    const int64_t busy = chip_.config.l1_line_cycles > 0 ? lines_of(warp) : 0;
    if (busy > 0 && !take_l1(tick, number, busy)) return;
    if (access(tick, number) != Access::store) stages = chip_.config.hit_stages + busy;
  }
  if (warp.row == warp.end) done_ |= only(number);
  if (((waiting_ | at_barrier_) & only(number)) == 0) leave_at(slot + stages, only(number));
  if (at_barrier_ != 0) open_barrier(slot, number / shape_.warps_per_block);
}

// Lets warps leave the pipeline in that slot.
void Core::leave_at(const int64_t slot, const Warps warps) {
  pipeline_[static_cast<size_t>(slot) % pipeline_.size()] |= warps;
}

// Opens a barrier if all warps of a block that have not ended are at it.
void Core::open_barrier(const int64_t slot, const int32_t place) {
  const Warps block = shape_.warps_at(place);
  const Warps arrived = block & at_barrier_;
  if ((block & resident_ & ~done_ & ~arrived) != 0) return;
  at_barrier_ &= ~arrived;
  wake(slot * chip_.clocks.slot, arrived);
  leave_at(slot + chip_.config.pipeline_stages, arrived);
}

// Returns for how many slots the warp's next instruction occupies L1.
int64_t Core::lines_of(const Warp& warp) const {
  int64_t end = warp.row + 1;
  while (end < warp.end && kind_of(end) == Access::also) ++end;
  const int64_t cycles = std::min(end - warp.row, kMostLines) * chip_.config.l1_line_cycles;
  return (cycles + chip_.config.issue_cycles - 1) / chip_.config.issue_cycles;
}

// Takes L1 for an instruction; instructions have it one after the other. Returns false if the warp
// must wait for its turn.
bool Core::take_l1(const int64_t tick, const int32_t number, const int64_t slots) {
  if ((has_turn_ & only(number)) != 0) {
    has_turn_ &= ~only(number);
    return true;
  }
  const int64_t now = tick / chip_.clocks.slot;
  const int64_t turn = std::max(now, l1_free_);
  l1_free_ = turn + slots;
  if (turn == now) return true;
  has_turn_ |= only(number);
  turns_.push_back({turn, number});
  return false;
}

void Core::to_next_row(Warp& warp) const {
  if (++warp.row < warp.end) warp.compute = chip_.workload.compute[static_cast<size_t>(warp.row)];
}

// Returns the part of a line that a row accesses.
Part Core::part_of(const int64_t row) const {
  const auto at = static_cast<size_t>(row);
  const Workload& workload = chip_.workload;
  return {workload.address[at] / static_cast<uint64_t>(chip_.config.line_bytes),
          workload.sectors.empty() ? all_sectors_
                                   : static_cast<Sectors>(workload.sectors[at] & all_sectors_)};
}

// Accesses the lines of an instruction one after the other. Returns the kind of the first access.
Access Core::access(const int64_t tick, const int32_t number) {
  Warp& warp = warps_[static_cast<size_t>(number)];
  int64_t first = warp.row;
  while (kind_of(first) == Access::also) --first;
  const Access kind = kind_of(first);
  do {
    if (!access_line(tick, number, kind, part_of(warp.row))) {
      stall(tick, number, kind);
      return kind;
    }
    if (warp.row == first) ++chip_.statistics.instructions;
    to_next_row(warp);
  } while (warp.row < warp.end && kind_of(warp.row) == Access::also);
  // The access may not have used the room for which it was woken.
  if (!missing_.full()) make_ready(tick, to_replay(stalled_loads_));
  if (stores_ > 0) make_ready(tick, to_replay(stalled_stores_));
  if (warp.missing > 0) {
    waiting_ |= only(number);
    sleep(tick + chip_.clocks.slot, only(number));
  }
  return kind;
}

// Makes the warp wait for room, to issue the same instruction again.
void Core::stall(const int64_t tick, const int32_t number, const Access kind) {
  ++chip_.statistics.replays;
  waiting_ |= only(number);
  sleep(tick + chip_.clocks.slot, only(number));
  (kind == Access::store ? stalled_stores_ : stalled_loads_) |= only(number);
  warps_[static_cast<size_t>(number)].stalled = stalls_++;
}

// Returns the stalled warps that try again, now that there is room for one.
Warps Core::to_replay(const Warps stalled) const {
  if (chip_.config.replay_all != 0 || stalled == 0) return stalled;
  Warps left = stalled;
  int32_t first = take_first(left);
  while (left != 0) {
    const int32_t warp = take_first(left);
    const auto since = [&](const int32_t one) { return warps_[static_cast<size_t>(one)].stalled; };
    if (since(warp) < since(first)) first = warp;
  }
  return only(first);
}

// Returns false if the access must be repeated later.
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

bool Core::load(const int64_t tick, const int32_t number, const Part part) {
  const auto missing = static_cast<Sectors>(part.sectors & ~l1_.touch(part, false));
  if (missing == 0) return true;
  auto* entry = missing_.find(part.line);
  if (entry == nullptr) {
    if (missing_.full()) return false;
    entry = &missing_.add(part.line, tick);
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
                       .what = EventKind::request,
                       .sectors = asked});
  }
  chip_.statistics.l1_misses += sectors_in(missing);
  chip_.statistics.l1_merges += sectors_in(missing) - sectors_in(asked);
  if ((entry->waiters & only(number)) == 0) {
    entry->waiters |= only(number);
    ++warps_[static_cast<size_t>(number)].missing;
  }
  return true;
}

// Stores the part of an access that is in one line; returns false if no store can be issued yet.
// The warp does not wait for it. Whole sectors are written, so none must be read.
bool Core::store(const int64_t tick, const Part part) {
  const bool stays = chip_.config.l1_write_back != 0;
  const Sectors has = l1_.touch(part, stays);
  const bool whole = has == part.sectors;
  if (stores_ <= 0 && !(stays && whole)) return false;
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
  --stores_;
  chip_.statistics.l1_writes += sectors_in(part.sectors);
  chip_.events.push({.tick = chip_.requests.send(tick, shape_.core, slice, flits),
                     .line = part.line,
                     .to = slice,
                     .from = shape_.core,
                     .what = EventKind::write,
                     .sectors = part.sectors});
}

void Core::written(const int64_t tick) {
  ++stores_;
  make_ready(tick, to_replay(stalled_stores_));
}

void Core::fill_l1(const int64_t tick, const Part part) {
  if (const std::optional<Part> evicted = l1_.fill(part, false)) send_write(tick, *evicted);
}

void Core::fill(const int64_t tick, const Part part) {
  auto* const entry = missing_.find(part.line);
  if (entry == nullptr || (part.sectors & ~entry->sectors) != 0) {
    throw std::logic_error("a core received sectors that it did not ask for");
  }
  if (chip_.config.l1_miss_allocates == 0 || l1_.has_place(part.line)) fill_l1(tick, part);
  entry->sectors &= static_cast<Sectors>(~part.sectors);
  if (entry->sectors != 0) return;
  const auto filled = missing_.take(entry);
  ++chip_.statistics.fills;
  chip_.statistics.latency_cycles += (tick - filled.since) / chip_.clocks.core;
  Warps again = to_replay(stalled_loads_);
  for (Warps waiters = filled.waiters; waiters != 0;) {
    const int32_t warp = take_first(waiters);
    if (--warps_[static_cast<size_t>(warp)].missing == 0) again |= only(warp);
  }
  if (const Warps ended = again & done_; ended != 0) retire(tick, ended);
  make_ready(tick, again & ~done_ & waiting_);
}

void Core::retire(const int64_t tick, Warps warps) {
  count_idle(tick);
  sleep(tick, warps);
  waiting_ &= ~warps;
  resident_ &= ~warps;
  while (warps != 0) {
    const int32_t place = take_first(warps) / shape_.warps_per_block;
    if (--left_[static_cast<size_t>(place)] > 0) continue;
    chip_.times[static_cast<size_t>(blocks_[static_cast<size_t>(place)])].end =
        tick / chip_.clocks.core;
    chip_.blocks.ended();
    start_block(tick, place);
  }
}

// Schedules the next slot in which something can happen.
void Core::schedule_next_issue(const int64_t tick) {
  const int64_t slot = tick / chip_.clocks.slot;
  last_slot_ = slot;
  next_slot_ = -1;
  if (ready_ != 0) return ask_for(slot + 1);
  int64_t next = turns_.empty() ? kNoSlot : turns_.front().slot;
  const auto stages = static_cast<int64_t>(pipeline_.size());
  for (int64_t ahead = 1; ahead <= stages && slot + ahead < next; ++ahead) {
    if (pipeline_[static_cast<size_t>(slot + ahead) % pipeline_.size()] != 0) next = slot + ahead;
  }
  if (next != kNoSlot) return ask_for(next);
  idle_since_ = (slot + 1) * chip_.clocks.slot;
}

// Counts the time since the last call as idle, if the core is idle.
void Core::count_idle(const int64_t tick) {
  if (idle_since_ < 0 || tick <= idle_since_) return;
  (resident_ != 0 ? blocked_ : empty_) += tick - idle_since_;
  idle_since_ = tick;
}

void Core::finish(const int64_t tick) {
  count_idle(tick);
  chip_.statistics.memory_block_cycles += blocked_ / chip_.clocks.core;
  chip_.statistics.no_warp_cycles += empty_ / chip_.clocks.core;
}

}  // namespace tbsched::sm_sim
