// Mechanisms 2.1 and 2.2: the processing block of each warp of a block, and its slot there.
//
// The %warpid of a warp is its processing block, plus the number of lower slots there times the
// number of processing blocks. It takes the lowest free slot. Measured: traces h200/slots.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/hardware/sm/footprint.h"
#include "tbsched/hardware/sm/registers.h"
#include "tbsched/program/refusal.h"

namespace tbsched {

struct Room {
  int32_t blocks = 0;               // of the launch of the demand
  Refusal limiter = Refusal::none;  // what limits that number
};

// An amount of one processing block.
struct WarpsAndRegisters {
  int32_t warps = 0;
  int32_t registers = 0;

  auto operator<=>(const WarpsAndRegisters&) const = default;
};

class ProcessingBlocks {
 public:
  explicit ProcessingBlocks(const DeviceSpec& spec);

  Room room(const DeviceSpec& spec, const Demand& demand) const;
  // Returns how many blocks the free warps would allow if registers were plenty, and how many the
  // free registers if warps were.
  int32_t room_of_warps(const DeviceSpec& spec, const Demand& demand) const;
  int32_t room_of_registers(const DeviceSpec& spec, const Demand& demand) const;

  // Adds the warps of footprint.blocks blocks, which room() must have allowed. The round robin's
  // pointer moves on, and is never reset.
  void commit(const DeviceSpec& spec, const Demand& demand, Footprint& footprint);
  void release(const Demand& demand, const Footprint& footprint);

  bool idle() const { return taken_ == 0; }
  int32_t free_registers() const { return registers_.free(); }
  // Returns the most warps, and the most registers, that are taken of one processing block.
  WarpsAndRegisters most_taken(const DeviceSpec& spec) const;
  // Returns the processing block of the next warp, if warps go in strict turn.
  int32_t turn() const { return next_; }

 private:
  using PerBlock = std::array<int32_t, kMaxProcessingBlocks>;  // a number per processing block

  PerBlock warps_that_fit(const DeviceSpec& spec, const Demand& demand) const;
  // Returns the blocks of so many warps on each processing block, of which `tightest` are the
  // fewest.
  int32_t blocks_of(const DeviceSpec& spec, const Demand& demand, const PerBlock& fit,
                    int32_t tightest) const;
  static int32_t least_of(const DeviceSpec& spec, const PerBlock& fit);
  PerBlock strict_turns(const DeviceSpec& spec, const Demand& demand, int32_t blocks);
  PerBlock emptiest_first(const DeviceSpec& spec, const Demand& demand, int32_t blocks) const;

  uint64_t taken_ = 0;  // slots
  RegisterFiles registers_;
  std::array<uint8_t, kMaxProcessingBlocks> free_warps_{};
  uint8_t next_ = 0;
};

// Writes the slot of each warp of a resident block. Warps must go to processing blocks in strict
// turn.
void list_warp_slots(const Footprint& footprint, int32_t processing_blocks,
                     std::span<int32_t> slots);

}  // namespace tbsched
