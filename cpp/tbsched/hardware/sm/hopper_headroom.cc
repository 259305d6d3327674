#include "tbsched/hardware/sm/hopper_headroom.h"

#include <algorithm>

namespace tbsched::hopper_headroom {
namespace {

// Limits of the headroom: twice as many blocks as fit, a number of blocks and warps, and bytes.
constexpr int32_t kFactor = 2;
constexpr int32_t kBlocksAndWarps = 32;  // limit of the number of blocks plus the warps of a block
constexpr int64_t kMostBytes = 132 * 1024;

}  // namespace

int64_t without_carveout(const int32_t shared_memory, const int32_t warps, const int32_t blocks) {
  const int64_t needed = int64_t{shared_memory} * blocks;
  if (blocks == 1) return needed;
  const int32_t more = std::min(kFactor * blocks, kBlocksAndWarps - warps);
  return std::max(needed, std::min(int64_t{shared_memory} * more, kMostBytes));
}

int64_t with_carveout(const int64_t carveout, const int32_t own, const int32_t shared_memory) {
  return carveout / own * shared_memory;
}

int32_t without_shared_memory(const int32_t warps, const int32_t blocks) {
  if (blocks == 1 || warps >= 24) return 8 * 1024;
  return warps >= 16 ? 16 * 1024 : 32 * 1024;
}

}  // namespace tbsched::hopper_headroom
