// What the probe kernel and the launcher agree on. Included by both, and by the rehearsal driver.
#pragma once

#include <cstdint>

namespace tbsched::cuda {

inline constexpr char kProbeName[] = "tbsched_probe";

// A block that was told to leave stays for as long again, so that whatever takes its room starts
// visibly later than its end_ns, however coarse the global timer (32 ns to about 1 us) is.
inline constexpr uint32_t kLingerNs = 4096;

// In mapped host memory, all zero before the launch. A block writes each half at once. While blocks
// run, the host reads nothing but whether it is there; the rest is sure to be when the grid is
// done.
struct alignas(32) BlockRecord {
  uint64_t start_ns;
  uint32_t smid;
  uint32_t started;  // 1
  uint64_t end_ns;   // when the block was told to leave, or its time was over
  uint32_t end_smid;
  uint32_t ended;  // 1
};
static_assert(sizeof(BlockRecord) == 32);

// How the blocks of a launch wait. Time is counted in ticks of 2^tick_bits ns: in 32 bits it takes
// a register less.
struct Waiting {
  int32_t tick_bits;
  uint32_t asks_until;  // ticks before its time is over a block asks no more whether to leave
  uint32_t linger_ns;   // how long a block stays after it has said that it leaves
};

// Until told to leave.
inline constexpr Waiting kHeld{.tick_bits = 20, .asks_until = 0, .linger_ns = kLingerNs};

// For a duration.
inline constexpr Waiting kTimed{.tick_bits = 5, .asks_until = 1024, .linger_ns = 0};

// Who asks the host whether to leave: one look in so many, a power of two; or the first block
// alone, where it stays as long as any other of its launch.
inline constexpr uint32_t kFirstBlockAsks = 0;

// The bus takes about two questions a microsecond, and delays launches while it is busy with them.
// So blocks look at a relay in device memory, and only few looks go on to the host: whoever finds
// the launch released there tells the others.
struct ProbeArguments {
  BlockRecord* records;     // per block
  int32_t* warp_slots;      // per block and warp, row-major; null: not wanted
  const uint32_t* release;  // in host memory; equal to `run`: every block leaves
  uint32_t* relay;          // in device memory; the last run in which the launch was released
  const uint32_t* ticks;  // in device memory: a block leaves by itself so long after its start, at
                          // most 2^31; null: all after `same_ticks`
  uint32_t same_ticks;
  uint32_t run;            // tells this run from those before; never 0
  uint32_t looks_per_ask;  // or kFirstBlockAsks
  uint32_t ask_sleep_ns;   // after a look that went on to the host
  uint32_t look_sleep_ns;  // after another one
  Waiting waiting;
};

}  // namespace tbsched::cuda
