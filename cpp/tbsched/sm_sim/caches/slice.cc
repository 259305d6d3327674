#include "tbsched/sm_sim/caches/slice.h"

namespace tbsched::sm_sim {

Slice::Slice(const int32_t number, const Memory& memory, Controller& controller, const bool perfect)
    : memory_(memory),
      controller_(controller),
      cache_(memory.config.l2_bytes / memory.config.line_bytes / memory.config.l2_ways,
             memory.config.l2_ways),
      missing_(memory.config.l2_mshrs),
      delay_(memory.clocks.core * memory.config.l2_cycles),
      number_(number),
      perfect_(perfect) {
  controller_.prefetch_to(cache_);
}

void Slice::arrive(const Event& request) {
  waiting_.push_back(
      {memory_.map.own_of(request.line), request.from, request.what == Happening::write});
  if (waiting_.size() == 1) serve(request.tick);
}

void Slice::serve(const int64_t tick) {
  while (!waiting_.empty()) {
    if (tick < free_) {
      if (asked_ < free_) {
        asked_ = free_;
        memory_.events.push({.tick = free_, .to = number_, .what = Happening::serve});
      }
      return;
    }
    const Waiting& first = waiting_.front();
    const bool served = first.write ? write(tick, first) : read(tick, first);
    if (!served) return;  // until something is read from memory, or leaves its queue
    waiting_.pop_front();
    free_ = next_multiple(tick + 1, memory_.clocks.network);
  }
}

void Slice::resume(const int64_t tick) {
  const bool has_mshr = !waiting_.empty() && (waiting_.front().write || !missing_.full());
  if (has_mshr && controller_.has_room()) serve(tick);
}

// Both return whether it could be served.
bool Slice::read(const int64_t tick, const Waiting& request) {
  Statistics& statistics = memory_.statistics;
  if (perfect_ || cache_.touch(request.own, false)) {
    reply(tick + delay_, request.own, request.core);
  } else if (auto* const entry = missing_.find(request.own)) {
    entry->waiters.push_back(request.core);
    ++statistics.l2_merges;
    ++statistics.l2_misses;
  } else if (!missing_.full() && controller_.has_room()) {
    missing_.add(request.own, tick).waiters.push_back(request.core);
    controller_.add(tick, request.own, false);
    ++statistics.l2_misses;
  } else {
    return false;
  }
  ++statistics.l2_reads;
  return true;
}

// Whole lines are written, so that none is read for it.
bool Slice::write(const int64_t tick, const Waiting& request) {
  if (!perfect_ && !cache_.touch(request.own, true)) {
    if (!controller_.has_room()) return false;
    fill(tick, request.own, true);
  }
  ++memory_.statistics.l2_writes;
  memory_.events.push({.tick = tick, .to = request.core, .what = Happening::written});
  return true;
}

void Slice::fill(const int64_t tick, const uint64_t own, const bool dirty) {
  const std::optional<uint64_t> evicted = cache_.fill(own, dirty);
  if (evicted) controller_.add(tick, *evicted, true);
}

void Slice::data(const Event& read) {
  if (read.from != 0 && !cache_.holds(read.line)) ++memory_.statistics.prefetch_fills;
  fill(read.tick, read.line, false);
  // Where a prefetch was as fast as a demand, the first of them answers.
  if (auto* const entry = missing_.find(read.line)) {
    for (const int32_t core : missing_.take(entry).waiters) {
      reply(read.tick + delay_, read.line, core);
    }
  }
  serve(read.tick);
}

void Slice::reply(const int64_t tick, const uint64_t own, const int32_t core) {
  memory_.events.push({.tick = tick,
                       .line = memory_.map.line_of(number_, own),
                       .to = core,
                       .from = number_,
                       .what = Happening::reply});
}

}  // namespace tbsched::sm_sim
