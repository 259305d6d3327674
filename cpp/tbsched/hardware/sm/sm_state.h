// The free resources of one SM. Only commit() and release() change them.
//
// All SMs of a device share the spec, which is passed to each call, so that the state of an SM is
// small: a device has many.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/hardware/sm/footprint.h"
#include "tbsched/hardware/sm/processing_blocks.h"
#include "tbsched/hardware/sm/shared_memory.h"
#include "tbsched/program/refusal.h"

namespace tbsched {

class SmState {
 public:
  // The SM is idle.
  explicit SmState(const DeviceSpec& spec);

  // Returns how many blocks of this demand fit while the SM is configured to `configured` bytes.
  Room room(const DeviceSpec& spec, const Demand& demand, int32_t configured) const;
  // Returns every resource that alone allows no more than `blocks` blocks.
  Refusals limiters(const DeviceSpec& spec, const Demand& demand, int32_t configured,
                    int32_t blocks) const;

  // Adds footprint.blocks blocks, which room() must have allowed.
  void commit(const DeviceSpec& spec, const Demand& demand, int32_t configured,
              Footprint& footprint);
  // Frees what the blocks of a footprint hold.
  void release(const Demand& demand, const Footprint& footprint);

  bool idle() const { return processing_blocks_.idle(); }
  // Returns the bytes of registers and shared memory that are taken.
  int64_t bytes_taken(const DeviceSpec& spec) const {
    const int64_t registers = spec.registers_per_sm - processing_blocks_.free_registers();
    return registers * int64_t{sizeof(uint32_t)} + shared_memory_.used();
  }
  // Returns the bytes of shared memory that are taken.
  int32_t shared_memory_taken() const { return shared_memory_.used(); }
  // Returns what ProcessingBlocks::most_taken() returns; so do the two functions below.
  WarpsAndRegisters most_taken(const DeviceSpec& spec) const {
    return processing_blocks_.most_taken(spec);
  }
  int32_t turn() const { return processing_blocks_.turn(); }
  std::vector<Extent> shared_memory_of(const DeviceSpec& spec, const uint32_t owner) const {
    return shared_memory_.pieces_of(spec, owner);
  }

 private:
  ProcessingBlocks processing_blocks_;
  SharedMemory shared_memory_;
  uint8_t free_slots_;  // at most as many as warps, since each block has a warp
  uint8_t free_cluster_slots_;
};

}  // namespace tbsched
