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
  int32_t least;
  int32_t most;
};

class OneSm {
 public:
  // `demands`: of all launches. The arguments outlive it.
  OneSm(const Device& device, const std::vector<Demand>& demands, Gaps gaps);

  size_t launches() const { return demands_->size(); }
  bool idle() const { return blocks_.empty(); }
  // Returns whether a block of the launch is there or may enter.
  bool admits(int32_t launch) const;
  // Returns whether only blocks of these launches are there.
  bool has_only(const std::vector<int32_t>& launches) const;
  // Returns a key: SMs with equal keys stay equal, whatever arrives and leaves.
  std::vector<int32_t> key() const;
  RoomRange rooms(int32_t launch) const;
  // Returns the configurations with which a block may enter. If gaps are counted, none of its
  // memory may fit. An SM that is taken just after blocks left keeps its configuration.
  std::vector<int32_t> may_enter(int32_t launch) const;
  // Announces that this number of a launch's blocks may enter.
  void reserve(int32_t launch, int32_t blocks);
  // Places one block, for which there may be room.
  void commit(int32_t launch);
  void enter(int32_t launch, int32_t configured);
  // Returns one block of each kind of equal blocks of a launch. Blocks are numbered from 0 in the
  // order of arrival.
  std::vector<int32_t> distinct(int32_t launch) const;
  void leave(int32_t launch, int32_t number);

 private:
  struct Block {
    int32_t launch;
    int32_t number;
    Footprint footprint;
  };
  std::array<int32_t, 2> kind_of(const Block& block) const;
  std::optional<int32_t> configured_for(const Demand& demand) const;
  RoomRange rooms_in_memory(const Demand& demand, int32_t configured, int32_t wanted) const;
  void add(int32_t launch, int32_t configured);
  Demand as_counted(const Demand& demand) const;

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
  bool is_entered_ = false;
  uint32_t next_owner_ = 0;
};

}  // namespace tbsched
