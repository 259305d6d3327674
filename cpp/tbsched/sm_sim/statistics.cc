#include "tbsched/sm_sim/statistics.h"

#include <array>

namespace tbsched::sm_sim {
namespace {

using S = Statistics;

constexpr std::array kCounters = {
    Counter{"cycles", &S::cycles, "core cycles until the last block ended"},
    Counter{"instructions", &S::instructions, "warp instructions issued, without replays"},
    Counter{"memory_block_cycles", &S::memory_block_cycles,
            "cycles in which all warps of a core wait for memory; summed over cores"},
    Counter{"no_warp_cycles", &S::no_warp_cycles,
            "cycles in which a core has no warp; summed over cores"},
    Counter{"replays", &S::replays, "issues that found no MSHR or no room for a store"},
    Counter{"l1_loads", &S::l1_loads, "sectors that loads asked L1 for; a line may be one sector"},
    Counter{"l1_misses", &S::l1_misses, "of these, not in L1"},
    Counter{"l1_merges", &S::l1_merges, "misses of sectors that were on their way already"},
    Counter{"l1_stores", &S::l1_stores, "sectors that stores wrote to"},
    Counter{"l1_store_hits", &S::l1_store_hits, "of these, in L1"},
    Counter{"l1_writes", &S::l1_writes, "sectors that L1 sent to L2"},
    Counter{"latency_cycles", &S::latency_cycles,
            "core cycles from a miss of L1 to what it needs of its line; summed over fills"},
    Counter{"fills", &S::fills, "lines that L1 received"},
    Counter{"l2_reads", &S::l2_reads, "sectors that L2 was asked for"},
    Counter{"l2_misses", &S::l2_misses, "of these, not in L2"},
    Counter{"l2_merges", &S::l2_merges, "misses of sectors that were on their way already"},
    Counter{"l2_writes", &S::l2_writes, "sectors written to L2"},
    Counter{"l2_write_hits", &S::l2_write_hits, "of these, in L2"},
    Counter{"dram_reads", &S::dram_reads,
            "accesses that read, without prefetches; each moves l2_fetch_sectors"},
    Counter{"dram_writes", &S::dram_writes, "accesses that write"},
    Counter{"row_hits", &S::row_hits, "reads and writes of a row that an earlier one had opened"},
    Counter{"activates", &S::activates, "rows opened"},
    Counter{"queue_cycles", &S::queue_cycles,
            "DRAM cycles from a read's arrival to its command; summed over reads"},
    Counter{"prefetches", &S::prefetches, "accesses that nobody asked for"},
    Counter{"prefetch_fills", &S::prefetch_fills, "of these, not in L2 already"},
    Counter{"bank_cycles", &S::bank_cycles,
            "DRAM cycles in which a bank has a request; summed over banks"},
    Counter{"bank_busy_cycles", &S::bank_busy_cycles,
            "DRAM cycles in which any bank has a request"},
};

}  // namespace

std::span<const Counter> counters() { return kCounters; }

}  // namespace tbsched::sm_sim
