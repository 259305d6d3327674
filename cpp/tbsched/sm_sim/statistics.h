// The counters of a simulation.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tbsched::sm_sim {

// What each one counts: see counters().
struct Statistics {
  int64_t cycles = 0;
  int64_t instructions = 0;
  int64_t memory_block_cycles = 0;
  int64_t no_warp_cycles = 0;
  int64_t replays = 0;
  int64_t l1_loads = 0;
  int64_t l1_misses = 0;
  int64_t l1_merges = 0;
  int64_t l1_stores = 0;
  int64_t l1_store_hits = 0;
  int64_t l1_writes = 0;
  int64_t latency_cycles = 0;
  int64_t fills = 0;
  int64_t l2_reads = 0;
  int64_t l2_misses = 0;
  int64_t l2_merges = 0;
  int64_t l2_writes = 0;
  int64_t l2_write_hits = 0;
  int64_t dram_reads = 0;
  int64_t dram_writes = 0;
  int64_t row_hits = 0;
  int64_t activates = 0;
  int64_t queue_cycles = 0;
  int64_t prefetches = 0;
  int64_t prefetch_fills = 0;
  int64_t bank_cycles = 0;
  int64_t bank_busy_cycles = 0;

  bool operator==(const Statistics&) const = default;
};

// A counter with its name and what it counts.
struct Counter {
  std::string_view name;
  int64_t Statistics::* member;
  std::string_view doc;
};

// Returns all counters, in the order of Statistics.
std::span<const Counter> counters();

// When a block ran, in core cycles.
struct BlockTime {
  int32_t core = -1;  // -1: it has not started
  int64_t start = -1;
  int64_t end = -1;
};

// A time in core cycles during which a warp could issue. Before and after it the warp waits: for
// memory, for room, or at a barrier.
struct WarpTime {
  int32_t core;
  int32_t warp;  // its number in the core
  int64_t begin;
  int64_t end;
};

}  // namespace tbsched::sm_sim
