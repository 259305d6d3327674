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
  // All registers are free.
  explicit RegisterFiles(const DeviceSpec& spec);

  // Returns for how many more warps of this size the processing block has registers, at most
  // `max_warps`.
  int32_t capacity(const int32_t processing_block, const int32_t registers_per_warp,
                   const int32_t max_warps) const {
    if (contiguous_) return contiguous_capacity(processing_block, registers_per_warp, max_warps);
    // Avoids the division where registers do not limit.
    const int32_t free = free_[processing_block];
    return free >= max_warps * registers_per_warp ? max_warps : free / registers_per_warp;
  }

  // Returns the free registers of the processing block that has the fewest.
  int32_t least_free(const int32_t processing_blocks) const {
    return *std::min_element(free_.begin(), free_.begin() + processing_blocks);
  }
  // Returns the free registers of all processing blocks together.
  int32_t free() const { return std::accumulate(free_.begin(), free_.end(), 0); }

  // Number of warps, by processing block.
  using Warps = std::array<uint8_t, kMaxProcessingBlocks>;
  // Takes the registers of so many warps on each processing block.
  void commit(const uint32_t owner, const int32_t registers_per_warp, const Warps& warps) {
    for (size_t i = 0; i < warps.size(); ++i) free_[i] -= registers_per_warp * warps[i];
    if (contiguous_) allocate_contiguous(owner, registers_per_warp, warps);
  }
  // Frees the registers of so many warps on each processing block.
  void release(const uint32_t owner, const int32_t registers_per_warp, const Warps& warps) {
    for (size_t i = 0; i < warps.size(); ++i) free_[i] += registers_per_warp * warps[i];
    if (contiguous_) release_contiguous(owner);
  }

 private:
  // Returns capacity() where a warp's registers must be contiguous.
  int32_t contiguous_capacity(int32_t processing_block, int32_t registers_per_warp,
                              int32_t max_warps) const;
  // Gives the warps of an owner contiguous registers on each processing block.
  void allocate_contiguous(uint32_t owner, int32_t registers_per_warp, const Warps& warps);
  // Frees the contiguous registers of an owner.
  void release_contiguous(uint32_t owner);

  std::array<int32_t, kMaxProcessingBlocks> free_{};  // registers
  Rare<std::vector<ContiguousMemory>>
      contiguous_;  // one per processing block; none where they are pooled
};

}  // namespace tbsched
