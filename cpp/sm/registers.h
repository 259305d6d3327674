// Mechanism 4: the register file of one processing block. Where it is pooled, a warp's registers
// need not be contiguous, as register renaming allows.
#pragma once

#include <cstdint>
#include <optional>

#include "model/device_spec.h"
#include "sm/arena.h"

namespace tbsched {

class RegisterFile {
 public:
  RegisterFile(int32_t registers, Layout layout);

  // How many warps of this size fit beside those that are there.
  int32_t capacity(int32_t registers_per_warp) const;

  void commit(uint32_t owner, int32_t registers_per_warp, int32_t warps);
  void release(uint32_t owner, int32_t registers_per_warp, int32_t warps);

 private:
  int32_t free_;
  std::optional<Arena> contiguous_;
};

}  // namespace tbsched
