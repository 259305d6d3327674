// Mechanism 4: the register files of an SM, one per processing block. Where they are pooled, a
// warp's registers need not be contiguous, as register renaming allows.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/device_spec.h"
#include "sm/arena.h"
#include "sm/rare.h"

namespace tbsched {

class RegisterFiles {
 public:
  explicit RegisterFiles(const DeviceSpec& spec);

  // How many more warps of this size the processing block holds, if not more than `most`.
  int32_t capacity(const int32_t processing_block, const int32_t registers_per_warp,
                   const int32_t most) const {
    if (contiguous_) return pieces(processing_block, registers_per_warp, most);
    // Spares the division where registers do not bind.
    const int32_t free = free_[processing_block];
    return free >= most * registers_per_warp ? most : free / registers_per_warp;
  }

  void commit(const int32_t processing_block, const uint32_t owner,
              const int32_t registers_per_warp, const int32_t warps) {
    free_[processing_block] -= registers_per_warp * warps;
    if (contiguous_) (*contiguous_)[processing_block].allocate(owner, registers_per_warp, warps);
  }
  void release(const int32_t processing_block, const uint32_t owner,
               const int32_t registers_per_warp, const int32_t warps) {
    free_[processing_block] += registers_per_warp * warps;
    if (contiguous_) (*contiguous_)[processing_block].release(owner);
  }

 private:
  int32_t pieces(int32_t processing_block, int32_t registers_per_warp, int32_t most) const;

  std::array<int32_t, kMaxProcessingBlocks> free_{};
  Rare<std::vector<Arena>> contiguous_;  // one per processing block; none where they are pooled
};

}  // namespace tbsched
