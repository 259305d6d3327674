// Mechanism 4: the register files of an SM, one per processing block. If they are pooled, a warp's
// registers need not be contiguous, as register renaming allows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/sm/contiguous_memory.h"
#include "tbsched/hardware/sm/rare.h"

namespace tbsched {

class RegisterFiles {
 public:
  explicit RegisterFiles(const DeviceSpec& spec);

  // Returns how many more warps of this size the processing block holds, at most `most`.
  int32_t capacity(const int32_t processing_block, const int32_t registers_per_warp,
                   const int32_t most) const {
    if (contiguous_) return pieces(processing_block, registers_per_warp, most);
    // Avoids the division where registers do not limit.
    const int32_t free = free_[processing_block];
    return free >= most * registers_per_warp ? most : free / registers_per_warp;
  }

  // Returns the fewest free registers of a processing block; free() returns those of all together.
  int32_t least_free(const int32_t processing_blocks) const {
    return *std::min_element(free_.begin(), free_.begin() + processing_blocks);
  }
  int32_t free() const { return std::accumulate(free_.begin(), free_.end(), 0); }

  // Number of warps, by processing block.
  using Warps = std::array<uint8_t, kMaxProcessingBlocks>;
  void commit(const uint32_t owner, const int32_t registers_per_warp, const Warps& warps) {
    for (size_t i = 0; i < warps.size(); ++i) free_[i] -= registers_per_warp * warps[i];
    if (contiguous_) allocate(owner, registers_per_warp, warps);
  }
  void release(const uint32_t owner, const int32_t registers_per_warp, const Warps& warps) {
    for (size_t i = 0; i < warps.size(); ++i) free_[i] += registers_per_warp * warps[i];
    if (contiguous_) give_back(owner);
  }

 private:
  int32_t pieces(int32_t processing_block, int32_t registers_per_warp, int32_t most) const;
  void allocate(uint32_t owner, int32_t registers_per_warp, const Warps& warps);
  void give_back(uint32_t owner);

  std::array<int32_t, kMaxProcessingBlocks> free_{};
  Rare<std::vector<ContiguousMemory>>
      contiguous_;  // one per processing block; none where they are pooled
};

}  // namespace tbsched
