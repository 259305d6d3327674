// What one SM can hold, and with which blocks it may be full, whichever launches arrived and left.
// Where that depends on the order of arrival or on which launches have left, the worst case counts.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "tbsched/coresidency/packing.h"
#include "tbsched/coresidency/sm_kinds.h"
#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

class AnySm {
 public:
  // `demands`, `may_leave`, `is_there`: by launch, its demand, whether its blocks may leave, and
  // whether it is resident. All arguments outlive it.
  AnySm(const DeviceSpec& spec, const std::vector<Demand>& demands,
        const std::vector<bool>& may_leave, const std::vector<bool>& is_there);

  // Returns whether this many blocks of each launch can be on one SM, alone or with others of these
  // launches, one of which may have configured it. So it is true for fewer blocks, too. While a
  // resident block stays, the SM keeps its configuration, if that is known.
  bool can_hold(const Multiset& blocks, int32_t configured) const;
  // Returns whether an SM of a kind, with these blocks, can lack room for one more block of a
  // launch. An idle SM has room: the next block configures it.
  bool may_be_full(const Multiset& blocks, const SmKind& kind, size_t launch) const;

 private:
  // Returns whether a block of a resident launch is among these.
  bool some_stayed(const Multiset& blocks) const;
  template <typename Value>
  int64_t total(const Multiset& blocks, const Value& value) const;
  bool slots_may_be_full(const Multiset& blocks, const Demand& demand) const;
  bool warps_may_be_full(const Multiset& blocks, const SmKind& kind, size_t launch) const;
  WarpsAndRegisters most_of_one_processing_block(size_t launch, int32_t blocks) const;
  template <typename Value>
  int64_t total_left(const Multiset& blocks, const Multiset& had, const Value& value) const;
  bool memory_may_be_full(const Multiset& blocks, const Multiset& had, size_t launch,
                          int32_t configured) const;
  template <typename Holds>
  bool exists_configuration(const Multiset& blocks, const SmKind& kind, const Holds& holds) const;
  bool may_be_set(const Multiset& blocks, const Multiset& had, int32_t configured) const;
  bool can_enter_some(const Multiset& blocks, int32_t configured) const;
  bool may_have_configured(size_t gone, const Multiset& blocks, int32_t configured) const;
  bool can_enter(const Multiset& blocks, int32_t configured) const;

  const DeviceSpec& spec_;
  const std::vector<Demand>& demands_;
  const std::vector<bool>& may_leave_;
  const std::vector<bool>& is_resident_;
  int32_t unit_;                      // common divisor of sizes of shared memory
  std::set<int32_t> configurations_;  // configurations that launches set
};

}  // namespace tbsched
