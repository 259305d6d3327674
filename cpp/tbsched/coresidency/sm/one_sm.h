// A single SM: blocks arrive and leave, and it has room for some number more.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tbsched/coresidency/sm/memory_gaps.h"
#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/hardware/sm/footprint.h"
#include "tbsched/hardware/sm/sm_state.h"

namespace tbsched {

// Where blocks have left, gaps in shared memory may have to be located: then it matters which of
// two otherwise equal blocks leaves. That is rare, and takes long.
enum class Gaps : uint8_t { counted, located };

// Bounds on the number of blocks for which there is room. They differ only if gaps are counted and
// matter.
struct RoomRange {
  int32_t min;
  int32_t max;
};

class OneSm {
 public:
  // An idle SM. `demands`: of all launches; `gaps`: how gaps in shared memory are treated. The
  // arguments outlive it.
  OneSm(const Device& device, const std::vector<Demand>& demands, Gaps gaps);

  size_t launches() const { return demands_->size(); }
  bool idle() const { return blocks_.empty(); }
  // Returns whether a block of the launch is there or may enter.
  bool admits(int32_t launch) const;
  // Returns whether only blocks of these launches are there.
  bool has_only(const std::vector<int32_t>& launches) const;
  // Returns a key: SMs with equal keys stay equal, whatever arrives and leaves.
  std::vector<int32_t> key() const;
  // Returns for how many more blocks of a launch there is room.
  RoomRange rooms(int32_t launch) const;
  // Returns the configurations, in bytes, with which a block of a launch may enter; empty: it may
  // not. If gaps are counted, its memory may fit into none of them. An SM that is taken just after
  // blocks left keeps its configuration.
  std::vector<int32_t> entry_configurations(int32_t launch) const;
  // Announces that this number of a launch's blocks may enter.
  void reserve(int32_t launch, int32_t blocks);
  // Places one block of an arriving launch, for which there may be room.
  void commit(int32_t launch);
  // Places one block that was reserved, with one of the entry_configurations().
  void enter(int32_t launch, int32_t configured);
  // Returns one block of each group of equal blocks of a launch, by its number: it makes no
  // difference which block of a group leaves. Blocks of a launch are numbered from 0 in the order
  // of arrival.
  std::vector<int32_t> distinct_blocks(int32_t launch) const;
  // Removes the block of this number of a launch.
  void leave(int32_t launch, int32_t number);

 private:
  struct Block {
    int32_t launch;
    int32_t number;
    Footprint footprint;
  };
  // Returns the block's first processing block, counted from the next turn, or 0 if it takes
  // equally much of all; and the position of its shared memory, or 0 if gaps are counted. Blocks of
  // a launch at equal positions are equal.
  std::array<int32_t, 2> position_of(const Block& block) const;
  // Returns to how many bytes of shared memory the SM would be configured with one more block of
  // this demand; nothing: the block may not enter.
  std::optional<int32_t> configured_for(const Demand& demand) const;
  // Returns how many of `wanted` blocks fit into shared memory.
  RoomRange rooms_in_memory(const Demand& demand, int32_t configured, int32_t wanted) const;
  // Adds a block of a launch to the state of the SM, except to memory_.
  void add(int32_t launch, int32_t configured);
  // Returns a demand as state_ has it: without shared memory if gaps are counted, in memory_.
  Demand without_counted_memory(const Demand& demand) const;

  const Device* device_;
  const std::vector<Demand>* demands_;
  Gaps gaps_;
  bool is_pooled_;  // whether shared memory is pooled
  int32_t unit_;    // unit of shared memory
  SmState state_;   // without shared memory where gaps are counted
  std::vector<Block> blocks_;
  std::vector<int32_t> arrived_;       // number of blocks of each launch that have arrived
  std::optional<int32_t> configured_;  // nullopt: it has always been idle
  MemoryGaps memory_;
  bool has_reserved_ = false;  // whether blocks of waiting launches may enter
  uint32_t next_owner_ = 0;
};

}  // namespace tbsched
