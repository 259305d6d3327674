// Mechanism 4: the shared memory of one SM. Depending on the device, a block has one piece, which
// may wrap around the end if memory is circular, or memory is pooled.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/sm/contiguous_memory.h"
#include "tbsched/hardware/sm/rare.h"

namespace tbsched {

class SharedMemory {
 public:
  // Returns how many blocks of `bytes` each fit while the SM is configured to `configured` bytes.
  // An idle SM takes any configuration.
  int32_t capacity(const DeviceSpec& spec, int32_t bytes, int32_t configured) const;

  // Adds blocks, which capacity() must have allowed.
  void commit(const DeviceSpec& spec, uint32_t owner, int32_t bytes, int32_t blocks,
              int32_t configured);
  // Frees the memory of an owner's blocks.
  void release(uint32_t owner, int32_t bytes, int32_t blocks);

  // Returns the bytes that blocks hold.
  int32_t used() const { return used_; }
  // Returns the addresses of the owner's memory; empty if memory is pooled.
  std::vector<Extent> pieces_of(const DeviceSpec& spec, uint32_t owner) const;

 private:
  // Returns whether contiguous_ has the pieces of all owners.
  bool tracks_pieces() const { return contiguous_ && !contiguous_->empty(); }

  int32_t used_ = 0;  // bytes
  uint32_t first_owner_ = 0;
  // Used from the second owner on, unless memory is pooled: the first owner's pieces begin at the
  // origin.
  Rare<ContiguousMemory> contiguous_;
};

// Returns how many blocks of `bytes` bytes each fit, however the `free` bytes are spread over
// `gaps` gaps, all multiples of `unit`: each gap may be one unit too small for another block.
int32_t guaranteed_fits(int32_t bytes, int64_t free, int64_t gaps, int32_t unit);

}  // namespace tbsched
