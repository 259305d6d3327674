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
  // All warp slots and registers are free.
  explicit ProcessingBlocks(const DeviceSpec& spec);

  // Returns how many blocks the free warps and registers allow, and which of the two limits them.
  Room room(const DeviceSpec& spec, const Demand& demand) const;
  // Returns how many blocks the free warps would allow if registers were plenty.
  int32_t room_of_warps(const DeviceSpec& spec, const Demand& demand) const;
  // Returns how many blocks the free registers would allow if warps were plenty.
  int32_t room_of_registers(const DeviceSpec& spec, const Demand& demand) const;

  // Adds the warps of footprint.blocks blocks, which room() must have allowed. The round robin's
  // pointer moves on, and is never reset.
  void commit(const DeviceSpec& spec, const Demand& demand, Footprint& footprint);
  // Frees the warps and registers of a footprint.
  void release(const Demand& demand, const Footprint& footprint);

  bool idle() const { return taken_ == 0; }
  int32_t free_registers() const { return registers_.free(); }
  // Returns the most warps, and the most registers, that are taken of one processing block.
  WarpsAndRegisters most_taken(const DeviceSpec& spec) const;
  // Returns the processing block of the next warp, if warps go in strict turn.
  int32_t turn() const { return next_; }

 private:
  using PerBlock = std::array<int32_t, kMaxProcessingBlocks>;  // a number per processing block

  // Returns how many warps of the demand each processing block has room for.
  PerBlock warps_that_fit(const DeviceSpec& spec, const Demand& demand) const;
  // Returns how many whole blocks fit, if `fit[i]` warps fit processing block i. `tightest`: the
  // least of these numbers.
  int32_t blocks_of(const DeviceSpec& spec, const Demand& demand, const PerBlock& fit,
                    int32_t tightest) const;
  // Returns the least number of a processing block.
  static int32_t least_of(const DeviceSpec& spec, const PerBlock& fit);
  // Returns how many warps of the blocks each processing block gets in strict turn, and moves the
  // pointer of the round robin on.
  PerBlock take_strict_turns(const DeviceSpec& spec, const Demand& demand, int32_t blocks);
  // Returns how many warps of the blocks each processing block gets, if each warp goes to the one
  // with the most room.
  PerBlock emptiest_first(const DeviceSpec& spec, const Demand& demand, int32_t blocks) const;

  uint64_t taken_ = 0;  // slots
  RegisterFiles registers_;
  std::array<uint8_t, kMaxProcessingBlocks> free_warps_{};
  uint8_t next_ = 0;  // processing block of the next warp
};

// Writes the slot of each warp of a resident block to `slots`, by warp. Warps must go to processing
// blocks in strict turn.
void list_warp_slots(const Footprint& footprint, int32_t processing_blocks,
                     std::span<int32_t> slots);

}  // namespace tbsched
