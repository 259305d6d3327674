// What comes after the launches that are resident, and where it can have gone.
//
// Where the policy takes the SM with the most room, a launch leaves all SMs with about as much: its
// level. It took no SM with less room than that.
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

// The room that a launch finds on each SM at least: on all but `touching` of them, and on any.
struct LeastRooms {
  Multiset untouched;
  int64_t touching = 0;
  Multiset always = {};  // nothing: none is sure
};

// How far a launch came in its order of places, if its blocks all found room when it came.
struct Level {
  bool known = false;
  // The room of the SM that its last block took, with that block: after it no SM has more.
  int32_t least = 0;
  int32_t most = 0;
  Multiset least_on = {};         // of each SM, the room that it had if it took a block
  Multiset rooms = {};            // of each SM, the room at least before the launch
  std::vector<bool> before = {};  // launches of which what is there was there already
  bool first = false;             // nothing came between it and the launches that are resident

  // How much room an SM had when it took its last block.
  int32_t least_room(const size_t sm) const { return std::max(least, least_on[sm]); }
};

struct PendingLaunches {
  Multiset blocks;            // of each launch
  std::vector<Level> levels;  // of each launch

  // Whether so many blocks can have come to an SM.
  bool can_be_on(size_t sm, const Multiset& on_sm, const AnySm& any,
                 const Resident& resident) const;
  // What can_be_on() depends on, for each SM.
  std::vector<Multiset> notes(const Resident& resident) const;
};

Level level_of(const Model& model, const Demand& demand, int32_t blocks, const LeastRooms& rooms);
// How many blocks a launch has on all SMs together at least: on each its room less the level. A
// cluster finds no better place, although some SMs may have more room.
int64_t taken_evenly(const Device& device, const Demand& demand, const Level& level);

// Its clusters have as many blocks on each SM of a TPC.
bool takes_whole_tpcs(const Demand& demand, const DeviceSpec& spec);
// How many blocks of a launch find room where each SM has so much of it; clusters in any order.
int64_t blocks_that_fit(const Device& device, const Demand& demand, const Multiset& rooms);

}  // namespace tbsched
