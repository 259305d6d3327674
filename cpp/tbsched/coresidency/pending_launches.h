// Launches that arrive after the resident ones, and where their blocks can be.
//
// Under a policy that takes the SM with the most room first, a launch leaves all SMs with about the
// same room: its level. It took no SM with less room than that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/coresidency/any_sm.h"
#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/packing.h"
#include "tbsched/coresidency/sm_kinds.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// Lower bounds of the number of a launch's blocks for which each SM has room.
struct LeastRooms {
  Multiset untouched;    // by SM; holds for all but `touching` SMs
  int64_t touching = 0;  // blocks of others that may have come, to an SM each
  Multiset always = {};  // by SM; holds for all; empty: there is no such bound
};

// The level of a launch whose blocks all found room when it arrived.
struct Level {
  bool known = false;
  // Range of the room of the SM that its last block took, including that block. After it no SM has
  // more.
  int32_t min = 0;
  int32_t max = 0;
  Multiset least_on = {};         // by SM, the least room that it had when it took its last block
  Multiset rooms = {};            // by SM, the least room before the launch
  std::vector<bool> before = {};  // launches whose resident blocks were there before it
  bool first = false;             // no launch arrived between it and the resident ones

  // Returns for how many blocks an SM had room at least when it took its last block.
  int32_t least_room(const size_t sm) const { return std::max(min, least_on[sm]); }
};

struct PendingLaunches {
  Multiset blocks;            // by launch
  std::vector<Level> levels;  // by launch

  // Returns false if an SM cannot have this number of blocks of each launch, `on_sm`, at once. When
  // it took the last block of a launch, level.least_room(sm) blocks fitted: so even with the others
  // of these in addition, what it holds must be within the limits of an SM, `any`.
  bool can_be_on(size_t sm, const Multiset& on_sm, const AnySm& any,
                 const Resident& resident) const;
  // Returns, for each SM, everything on which can_be_on() depends.
  std::vector<Multiset> notes(const Resident& resident) const;
};

// Returns the level of a launch of this many blocks, before which the SMs have at least these
// rooms. Level::known is false if it does not leave all SMs with about the same room.
Level level_of(const Model& model, const Demand& demand, int32_t blocks, const LeastRooms& rooms);
// Returns how many blocks a launch has placed at least, from its level: each SM takes what it had
// room for above level.max. Of clusters less: in each domain some room above the level may remain,
// on too few SMs or TPCs for a cluster.
int64_t taken_evenly(const Device& device, const Demand& demand, const Level& level);

// Returns whether the clusters of a launch have equally many blocks on each SM of a TPC.
bool takes_whole_tpcs(const Demand& demand, const DeviceSpec& spec);
// Returns how many blocks of a launch fit the GPU, in whole clusters, if SM k has room for
// rooms[k].
int64_t blocks_that_fit(const Device& device, const Demand& demand, const Multiset& rooms);

}  // namespace tbsched
