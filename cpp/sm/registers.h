// Mechanism 4: the register files of an SM, one per processing block. Where they are pooled, a
// warp's registers need not be contiguous, as register renaming allows.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/device_spec.h"
#include "sm/arena.h"

namespace tbsched {

class RegisterFiles {
 public:
  // `registers`: of each processing block.
  RegisterFiles(int32_t processing_blocks, int32_t registers, Layout layout);

  // How many more warps of this size the processing block holds, if not more than `most`.
  int32_t capacity(int32_t processing_block, int32_t registers_per_warp, int32_t most) const;

  void commit(int32_t processing_block, uint32_t owner, int32_t registers_per_warp, int32_t warps);
  void release(int32_t processing_block, uint32_t owner, int32_t registers_per_warp, int32_t warps);

 private:
  std::array<int32_t, kMaxProcessingBlocks> free_{};
  std::vector<Arena> contiguous_;  // one per processing block; none where they are pooled
};

}  // namespace tbsched
