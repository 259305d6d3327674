// An SM by itself: what blocks come and go, and for how many more it has room.
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

// Where blocks have left, gaps in shared memory may have to be looked at one by one: then it
// matters which of two blocks leaves that are alike in all else. That is rare, and takes long.
enum class Gaps : uint8_t { counted, looked_at };

// For how many more blocks there is room: at least, and at most. It is known, but where gaps are
// counted and matter.
struct RoomRange {
  int32_t least;
  int32_t most;
};

class OneSm {
 public:
  // The demands of all launches. Both outlive it.
  OneSm(const Device& device, const std::vector<Demand>& demands, Gaps gaps);

  size_t launches() const { return demands_->size(); }
  bool idle() const { return blocks_.empty(); }
  // Whether a block of the launch is there, or may enter.
  bool admits(int32_t launch) const;
  // No blocks of other launches are there.
  bool has_only(const std::vector<int32_t>& launches) const;
  // What matters of it: SMs with the same key stay alike, whatever comes and goes.
  std::vector<int32_t> key() const;
  RoomRange rooms(int32_t launch) const;
  // How the SM may be configured for a block that enters, where there may be room: where gaps are
  // counted it may fit none of them. An SM that is taken as it is left stays as it was.
  std::vector<int32_t> may_enter(int32_t launch) const;
  // So many blocks of a launch may enter.
  void reserve(int32_t launch, int32_t blocks);
  // One block, for which there may be room.
  void commit(int32_t launch);
  void enter(int32_t launch, int32_t configured);
  // Returns one of each kind of blocks of a launch that are alike. They are numbered as they came,
  // from 0.
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
  Demand seen(const Demand& demand) const;

  const Device* device_;
  const std::vector<Demand>* demands_;
  Gaps gaps_;
  bool is_pooled_;  // shared memory
  int32_t unit_;    // of it
  SmState state_;   // where gaps are counted, without shared memory
  std::vector<Block> blocks_;
  std::vector<int32_t> came_;          // blocks of each launch
  std::optional<int32_t> configured_;  // none: it has always been idle
  MemoryGaps memory_;
  bool is_entered_ = false;
  uint32_t next_owner_ = 0;
};

}  // namespace tbsched
