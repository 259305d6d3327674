// Kinds of SMs: SMs with equal contents and limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/packing.h"
#include "tbsched/hardware/gpu/device.h"

namespace tbsched {

// The resident launches, how many blocks of each are on each SM, and for how many more of each an
// SM has room: initially none, or what a prediction says. Waiting blocks count as a launch of their
// own.
struct Resident {
  // No launch is resident: all SMs are idle.
  Resident(const Device& device, const Demands& demands);

  std::vector<bool> is_resident;               // by launch
  std::vector<bool> waits;                     // by launch: it has arrived and finds no room
  std::vector<Multiset> on_sm;                 // blocks, by SM and launch
  std::vector<Multiset> room_on_sm;            // number of blocks that fit, by SM and launch
  std::vector<WarpsAndRegisters> taken_on_sm;  // the most of one processing block
  std::vector<int32_t> configured_on_sm;       // bytes of shared memory; 0: not known
};

struct SmKind {
  Multiset min_blocks;           // blocks of each launch on an SM, at least
  Multiset max_blocks;           // and at most
  Multiset ever_resident;        // blocks that may have arrived, including those that have left
  int32_t room = 0;              // for blocks of `asking`, if none have arrived since
  WarpsAndRegisters taken = {};  // of one processing block at most, if none have arrived since
  int32_t configured = 0;        // while a resident block stays; 0: not known
  std::vector<int32_t> sms;
  int32_t tpcs = 0;  // TPCs with such an SM
};

// Returns the kinds of SMs that launch `asking` may use. Up to coming[k] blocks of launch k, if it
// was not resident, may have arrived, and blocks of launches that may leave may have left. SMs with
// different `notes` are of different kinds.
std::vector<SmKind> sm_kinds(const Device& device, const Demands& demands, const Resident& resident,
                             const std::vector<bool>& may_leave, const Multiset& coming,
                             const std::vector<Multiset>& notes, size_t asking);

}  // namespace tbsched
