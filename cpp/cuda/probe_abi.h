// What the probe kernel and the launcher agree on. Included by both, and by the rehearsal driver.
#pragma once

#include <cstdint>

namespace tbsched::cuda {

inline constexpr char kProbeName[] = "tbsched_probe";

// A block that was told to leave stays for as long again, so that whatever takes its room starts
// visibly later than its end_ns, however coarse the global timer (32 ns to about 1 us) is.
inline constexpr uint32_t kLingerNs = 4096;

// A block's own deadline is counted in units of 2^20 ns, about a millisecond.
inline constexpr int kHoldTickBits = 20;

enum class BlockState : uint32_t { absent, started, ended };

// In mapped host memory, all zero before the launch. `state` is written last, after a fence.
struct BlockRecord {
  uint64_t start_ns;
  uint64_t end_ns;  // when the block was told to leave
  uint32_t smid;
  uint32_t end_smid;
  BlockState state;
  uint32_t expired;  // not zero: the block left by itself, its hold time being over
};
static_assert(sizeof(BlockRecord) == 32);

struct ProbeArguments {
  BlockRecord* records;     // per block
  int32_t* warp_slots;      // per block and warp, row-major; null: not wanted
  const uint32_t* release;  // not zero: every block leaves
  uint32_t hold_ticks;      // a block leaves by itself this long after its start
};

}  // namespace tbsched::cuda
