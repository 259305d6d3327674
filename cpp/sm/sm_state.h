// What one SM has left. Asking changes nothing; only commit and release do.
#pragma once

#include <cstdint>

#include "model/device_spec.h"
#include "sm/demand.h"
#include "sm/footprint.h"
#include "sm/processing_blocks.h"
#include "sm/shared_memory.h"

namespace tbsched {

class SmState {
 public:
  explicit SmState(const DeviceSpec& spec);

  // How many blocks of this demand fit while the SM is configured to `configured` bytes.
  Room room(const Demand& demand, int32_t configured) const;

  // footprint.blocks blocks, which room() must have allowed.
  void commit(const Demand& demand, int32_t configured, Footprint& footprint);
  void release(const Demand& demand, const Footprint& footprint);

  bool idle() const { return processing_blocks_.idle(); }

 private:
  int32_t free_slots_;
  int32_t free_cluster_slots_;
  ProcessingBlocks processing_blocks_;
  SharedMemory shared_memory_;
};

}  // namespace tbsched
