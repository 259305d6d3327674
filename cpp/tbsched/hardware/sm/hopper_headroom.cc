#include "tbsched/hardware/sm/hopper_headroom.h"

#include <algorithm>

namespace tbsched::hopper_headroom {
namespace {

// Limits of the headroom: twice as many blocks as fit, a number of blocks and warps, and bytes.
constexpr int32_t kFactor = 2;
constexpr int32_t kMaxBlocksAndWarps = 32;  // number of blocks plus the warps of a block
constexpr int64_t kMaxBytes = 132 * 1024;

}  // namespace

int64_t bytes_without_carveout(const int32_t shared_memory, const int32_t warps,
                               const int32_t blocks) {
  const int64_t needed = int64_t{shared_memory} * blocks;
  if (blocks == 1) return needed;
  const int32_t counted_blocks = std::min(kFactor * blocks, kMaxBlocksAndWarps - warps);
  return std::max(needed, std::min(int64_t{shared_memory} * counted_blocks, kMaxBytes));
}

int64_t bytes_with_carveout(const int64_t carveout, const int32_t own_bytes,
                            const int32_t shared_memory) {
  return carveout / own_bytes * shared_memory;
}

int32_t bytes_without_shared_memory(const int32_t warps, const int32_t blocks) {
  if (blocks == 1 || warps >= 24) return 8 * 1024;
  return warps >= 16 ? 16 * 1024 : 32 * 1024;
}

}  // namespace tbsched::hopper_headroom
