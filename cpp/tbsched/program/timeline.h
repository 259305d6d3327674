// When and where the blocks of a program ran, and what its launches waited for. Times are in
// nanoseconds from the first call of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tbsched/program/refusal.h"

namespace tbsched {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kLatestNs =
    kNever / 4;  // limit of times that a user gives: no sum overflows

// Limits of the blocks and the waits of a timeline, which is refused before it takes too much
// memory.
inline constexpr size_t kMaxTimedBlocks = size_t{1} << 26;
inline constexpr size_t kMaxWaits = size_t{1} << 24;

struct BlockTime {
  int32_t launch;
  int32_t block;
  int32_t sm;
  int64_t start_ns;
  int64_t end_ns;
};

// What a timeline has a row for: each block, or each launch, from its first start to its last end.
enum class Detail { blocks, launches };

// Returns the number, -2 or lower, that stands for copy or memset k of a sequence in
// `Wait::behind`. Returns k for such a number: the function is its own inverse.
constexpr int32_t transfer_number(const int32_t k) { return -2 - k; }

// Begin and end of the bytes' transfer of a copy or memset.
struct TransferTime {
  int64_t start_ns;
  int64_t end_ns;
};

// One wait of a launch, between its arrival at the GPU and the placement of its last block.
struct Wait {
  int32_t launch;
  int32_t behind;  // the launch that it waits for; -1: none; lower: see transfer_number
  int64_t begin_ns;
  int64_t end_ns;
  Refusal cause;
  Refusals limiters = 0;  // where `cause` is of an SM: all that refused a block there at the begin
};

// A call of a host thread.
struct CallTime {
  int64_t begin_ns;
  int64_t end_ns;
};

// A launch of which blocks never start, or never end.
struct HungLaunch {
  int32_t launch;
  int32_t started;  // blocks that are resident, or have left
  // Why the next block does not start, and the launch that it waits for; none: every block has
  // started. `behind` as in Wait.
  Refusal cause = Refusal::none;
  int32_t behind = -1;
};

// A stream waits until a value in memory is at least this one, and that does not happen.
struct AwaitedValue {
  int32_t gpu;
  std::string name;
  int64_t value;
  int64_t current;  // what the value is
};

// What is left of a program when nothing more happens.
struct Hang {
  std::vector<HungLaunch> launches;  // in the order of the sequence
  std::vector<size_t> calls;         // events whose calls were made and never return
  std::vector<AwaitedValue> values;
};

// A block that never starts has no SM, kNotPlaced, and starts and ends at kNever. One that starts
// and never ends, ends at kNever. So do copies and calls.
struct Timeline {
  std::vector<BlockTime> blocks;        // by launch and block; with Detail::launches one a launch
  std::vector<Wait> waits;              // by launch and time
  std::vector<int32_t> hardware_queue;  // by launch
  // By launch, when the host called; empty if that was given.
  std::vector<int64_t> issued_ns;
  std::vector<CallTime> calls;          // by event; empty if gaps are not given
  std::vector<TransferTime> transfers;  // in the order of the sequence
  std::optional<Hang> hang;             // none: everything ends
};

}  // namespace tbsched
