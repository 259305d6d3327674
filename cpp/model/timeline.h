// When and where the blocks of a program ran, and what its launches waited for. Times are
// nanoseconds from the first call of the host.
#pragma once

#include <cstdint>
#include <vector>

#include "model/refusal.h"

namespace tbsched {

struct BlockTime {
  int32_t launch;
  int32_t block;
  int32_t sm;
  int64_t start_ns;
  int64_t end_ns;
};

// From its issue until its last block is placed, a launch waits.
struct Wait {
  int32_t launch;
  int32_t behind;  // the launch that it waits for, or -1
  int64_t begin_ns;
  int64_t end_ns;
  Refusal cause;
};

struct Timeline {
  std::vector<BlockTime> blocks;        // by launch and block
  std::vector<Wait> waits;              // by launch and time
  std::vector<int32_t> hardware_queue;  // of each launch
};

}  // namespace tbsched
