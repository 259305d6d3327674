// Mechanism 4: the shared memory of one SM, in one piece per block, which may wrap around the end
// where it is circular, or pooled, by device.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/sm/contiguous_memory.h"
#include "tbsched/hardware/sm/rare.h"

namespace tbsched {

class SharedMemory {
 public:
  // How many blocks of `bytes` each fit while the SM is configured to `configured` bytes. An idle
  // SM takes whatever configuration comes.
  int32_t capacity(const DeviceSpec& spec, int32_t bytes, int32_t configured) const;

  // So many blocks, which capacity() must have allowed.
  void commit(const DeviceSpec& spec, uint32_t owner, int32_t bytes, int32_t blocks,
              int32_t configured);
  void release(uint32_t owner, int32_t bytes, int32_t blocks);

  int32_t used() const { return used_; }
  // Where the owner's memory lies; nowhere in particular where memory is pooled.
  std::vector<Extent> pieces_of(const DeviceSpec& spec, uint32_t owner) const;

 private:
  bool in_pieces() const { return contiguous_ && !contiguous_->empty(); }

  int32_t used_ = 0;
  uint32_t first_owner_ = 0;
  // Where it is not pooled, from the second owner on: the first one's pieces begin at the origin.
  Rare<ContiguousMemory> contiguous_;
};

// How many pieces of so many bytes surely fit, wherever the free memory is in so many gaps, of
// whole units each: each may be too small for one more by one unit.
int32_t sure_pieces(int32_t bytes, int64_t free, int64_t gaps, int32_t unit);

}  // namespace tbsched
