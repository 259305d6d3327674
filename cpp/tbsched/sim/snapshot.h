// The contents of every SM at one moment.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/sm/demand.h"
#include "tbsched/hardware/sm/footprint.h"
#include "tbsched/sim/block_scheduler.h"

namespace tbsched {

// Blocks of a launch on one SM that leave together.
struct ResidentBlocks {
  int32_t launch;
  Footprint footprint;
};

// Bytes of an SM's shared memory, from its origin.
struct SharedMemoryPiece {
  int32_t launch;
  int32_t sm;
  int32_t begin;
  int32_t end;
};

struct Snapshot {
  std::vector<ResidentBlocks> blocks;
  std::vector<SharedMemoryPiece>
      pieces;  // shared memory of each block; none where shared memory is pooled
  std::vector<int32_t> configured;  // bytes of shared memory per SM; 0: it is open
  std::vector<int32_t> turns;       // per SM: the processing block of the next warp, or -1
  std::vector<Demand> demands;      // of each launch that has come, without its partition
};

// Returns the snapshot of the first `launches` launches with these resident blocks.
Snapshot snapshot_of(const BlockScheduler& scheduler, int32_t launches,
                     std::vector<ResidentBlocks> blocks);

}  // namespace tbsched
