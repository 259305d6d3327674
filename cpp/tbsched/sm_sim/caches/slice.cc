#include "tbsched/sm_sim/caches/slice.h"

namespace tbsched::sm_sim {

Slice::Slice(const int32_t slice, const Memory& memory, Controller& controller, const bool perfect)
    : memory_(memory),
      controller_(controller),
      cache_({memory.config.l2_bytes / memory.config.line_bytes / memory.config.l2_ways,
              memory.config.l2_ways, static_cast<Replacement>(memory.config.l2_replacement),
              memory.config.hash_sets != 0}),
      mshrs_(memory.config.l2_mshrs),
      delay_ticks_(memory.clocks.core * memory.config.l2_cycles),
      slice_(slice),
      perfect_(perfect) {
  controller_.set_l2(cache_);
}

void Slice::arrive(const Event& request) {
  const Part part{memory_.map.local_line_of(request.line), request.sectors};
  waiting_.push_back({part, request.from, request.kind == EventKind::write});
  if (waiting_.size() == 1) serve(request.tick);
}

void Slice::serve(const int64_t tick) {
  while (!waiting_.empty()) {
    if (tick < free_tick_) {
      if (next_serve_tick_ < free_tick_) {
        next_serve_tick_ = free_tick_;
        memory_.events.push({.tick = free_tick_, .to = slice_, .kind = EventKind::serve});
      }
      return;
    }
    const Waiting& first = waiting_.front();
    const bool served = first.write ? write(tick, first) : read(tick, first);
    if (!served) return;  // until something is read from memory or leaves its queue
    waiting_.pop_front();
    free_tick_ = next_multiple(tick + 1, memory_.clocks.network);
  }
}

void Slice::resume(const int64_t tick) {
  const bool has_mshr = !waiting_.empty() && (waiting_.front().write || !mshrs_.full());
  if (has_mshr && controller_.has_room()) serve(tick);
}

bool Slice::read(const int64_t tick, const Waiting& request) {
  const Part part = request.part;
  Statistics& statistics = memory_.statistics;
  const Sectors has = perfect_ ? part.sectors : cache_.touch(part, false);
  const Part missing{part.line, static_cast<Sectors>(part.sectors & ~has)};
  if (missing.sectors == 0) {
    reply(tick + delay_ticks_, part, request.core);
  } else {
    auto* entry = mshrs_.find(part.line);
    const Sectors coming = entry == nullptr ? Sectors{0} : entry->sectors;
    const Sectors merged = missing.sectors & coming;
    if (merged != missing.sectors) {
      if (!controller_.has_room() || (entry == nullptr && mshrs_.full())) return false;
      if (entry == nullptr) entry = &mshrs_.add(part.line, tick);
      const auto fetched = static_cast<Sectors>(sectors_to_fetch(missing) & ~coming);
      entry->sectors |= fetched;
      send_to_memory(tick, {part.line, fetched}, false);
    }
    entry->waiters.push_back({request.core, part.sectors});
    statistics.l2_misses += sectors_in(missing.sectors);
    statistics.l2_merges += sectors_in(merged);
  }
  statistics.l2_reads += sectors_in(part.sectors);
  return true;
}

Sectors Slice::sectors_to_fetch(const Part missing) const {
  Sectors all = 0;
  const uint64_t first = memory_.map.first_access(missing.line);
  for (uint64_t part = 0; part < memory_.map.parts(); ++part) {
    const Sectors sectors = memory_.map.sectors_of(first + part);
    if ((sectors & missing.sectors) != 0) all |= sectors;
  }
  return all;
}

void Slice::send_to_memory(const int64_t tick, const Part part, const bool write) {
  const uint64_t first = memory_.map.first_access(part.line);
  for (uint64_t at = first; at < first + memory_.map.parts(); ++at) {
    if ((memory_.map.sectors_of(at) & part.sectors) != 0) controller_.add(tick, at, write);
  }
}

bool Slice::write(const int64_t tick, const Waiting& request) {
  const Part part = request.part;
  const Sectors has = perfect_ ? part.sectors : cache_.touch(part, true);
  if (has != part.sectors) {
    if (!controller_.has_room()) return false;
    fill(tick, part, true);
  }
  memory_.statistics.l2_writes += sectors_in(part.sectors);
  memory_.statistics.l2_write_hits += sectors_in(has);
  memory_.events.push({.tick = tick, .to = request.core, .kind = EventKind::written});
  return true;
}

void Slice::fill(const int64_t tick, const Part part, const bool dirty) {
  const std::optional<Part> evicted = cache_.fill(part, dirty);
  if (evicted) send_to_memory(tick, *evicted, true);
}

void Slice::receive_data(const Event& read) {
  const Part part{memory_.map.local_line_of_access(read.line), memory_.map.sectors_of(read.line)};
  if (read.from != 0 && (part.sectors & ~cache_.held(part.line)) != 0) {
    ++memory_.statistics.prefetch_fills;
  }
  fill(read.tick, part, false);
  // If a prefetch was as fast as a demand, the first answer counts.
  if (auto* const entry = mshrs_.find(part.line)) {
    entry->sectors &= static_cast<Sectors>(~part.sectors);
    if (entry->sectors == 0) {
      for (const Waiter waiter : mshrs_.take(entry).waiters) {
        reply(read.tick + delay_ticks_, {part.line, waiter.sectors}, waiter.core);
      }
    }
  }
  serve(read.tick);
}

void Slice::reply(const int64_t tick, const Part part, const int32_t core) {
  memory_.events.push({.tick = tick,
                       .line = memory_.map.global_line_of(slice_, part.line),
                       .to = core,
                       .from = slice_,
                       .kind = EventKind::reply,
                       .sectors = part.sectors});
}

}  // namespace tbsched::sm_sim
