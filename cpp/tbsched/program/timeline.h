// When and where the blocks of a program ran, and what its launches waited for. Times are
// nanoseconds from the first call of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "tbsched/program/refusal.h"

namespace tbsched {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kLatestNs = kNever / 4;  // of what a user gives: no sum of it overflows

// A longer timeline is refused, before it takes more memory than there may be.
inline constexpr size_t kMostTimedBlocks = size_t{1} << 26;
inline constexpr size_t kMostWaits = size_t{1} << 24;

struct BlockTime {
  int32_t launch;
  int32_t block;
  int32_t sm;
  int64_t start_ns;
  int64_t end_ns;
};

// How `Wait::behind` names copy or memset k of a sequence; those are numbered as they come. Its own
// inverse.
constexpr int32_t transfer_number(const int32_t k) { return -2 - k; }

// When a copy or memset moves its bytes.
struct TransferTime {
  int64_t start_ns;
  int64_t end_ns;
};

// From when it reaches the GPU until its last block is placed, a launch waits.
struct Wait {
  int32_t launch;
  int32_t behind;  // the launch that it waits for; -1: none; lower: see transfer_number
  int64_t begin_ns;
  int64_t end_ns;
  Refusal cause;
};

// A call of a host thread.
struct CallTime {
  int64_t begin_ns;
  int64_t end_ns;
};

struct Timeline {
  std::vector<BlockTime> blocks;        // by launch and block
  std::vector<Wait> waits;              // by launch and time
  std::vector<int32_t> hardware_queue;  // of each launch
  // Of each launch, when the host called; empty where that was given.
  std::vector<int64_t> issued_ns;
  std::vector<CallTime> calls;          // of each event; empty where gaps are not given
  std::vector<TransferTime> transfers;  // in the order in which the sequence has them
};

}  // namespace tbsched
