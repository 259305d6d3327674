// What can be on the SMs of a GPU: those of which the same can be said are one kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/packing.h"
#include "tbsched/hardware/gpu/device.h"

namespace tbsched {

// The launches that are resident, how many blocks of each are on each SM, and for how many more of
// each an SM has room: nothing yet, or what a prediction says. Blocks that wait are a launch of
// their own.
struct Resident {
  Resident(const Device& device, const Demands& demands);

  std::vector<bool> is_there;
  std::vector<bool> waits;  // it has come, and has no room
  std::vector<Multiset> on_sm;
  std::vector<Multiset> room_on_sm;
  std::vector<WarpsAndRegisters> taken_on_sm;  // the most of one processing block
  std::vector<int32_t> configured_on_sm;       // bytes of shared memory; 0: not known
};

struct SmKind {
  Multiset least;  // blocks of each launch on an SM
  Multiset most;
  Multiset in_all;               // that may have come, those that have left included
  int32_t room = 0;              // for blocks of `asking`, where none have come since
  WarpsAndRegisters taken = {};  // of one processing block at most, where none have come since
  int32_t configured = 0;        // as long as a block stays that is resident; 0: not known
  std::vector<int32_t> sms;
  int32_t tpcs = 0;  // with such an SM
};

// Returns kinds of the SMs that `asking` may use, when so many blocks of the launches may have come
// that are not there yet, and blocks of those that may leave may have left. SMs with different
// notes are not of one kind.
std::vector<SmKind> sm_kinds(const Device& device, const Demands& demands, const Resident& resident,
                             const std::vector<bool>& may_leave, const Multiset& coming,
                             const std::vector<Multiset>& notes, size_t asking);

}  // namespace tbsched
