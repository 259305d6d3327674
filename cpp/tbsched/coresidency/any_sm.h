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
  // `demands`, `may_leave`, `is_resident`: by launch, its demand, whether its blocks may leave, and
  // whether it is resident already. All arguments outlive it.
  AnySm(const DeviceSpec& spec, const std::vector<Demand>& demands,
        const std::vector<bool>& may_leave, const std::vector<bool>& is_resident);

  // Returns whether this many blocks of each launch can be on one SM, alone or with others of these
  // launches, one of which may have configured it. So it is true for fewer blocks, too. While a
  // resident block stays, the SM keeps its configuration, if that is known.
  bool can_hold(const Multiset& blocks, int32_t configured) const;
  // Returns whether an SM of a kind, with these blocks, can lack room for one more block of a
  // launch. An idle SM has room: the next block configures it.
  bool may_be_full(const Multiset& blocks, const SmKind& kind, size_t launch) const;

 private:
  // In all of these, `blocks` are the blocks of each launch that are on an SM; `ever_resident`
  // includes those that may have ended; `configured` is the shared memory of the SM in bytes.

  // Returns whether a block of a launch that was resident already is among these.
  bool has_resident(const Multiset& blocks) const;
  template <typename Value>
  int64_t total(const Multiset& blocks, const Value& value) const;
  template <typename Value>
  int64_t total_ended(const Multiset& blocks, const Multiset& ever_resident,
                      const Value& value) const;
  // Returns whether the block slots have no room for one more block of this demand.
  bool slots_may_be_full(const Multiset& blocks, const Demand& demand) const;
  // Returns whether one more block of a launch may find too few warps or registers.
  bool warps_may_be_full(const Multiset& blocks, const SmKind& kind, size_t launch) const;
  // Returns the most warps and registers that blocks of a launch can take of one processing block.
  WarpsAndRegisters max_of_one_processing_block(size_t launch, int32_t blocks) const;
  // Returns whether free shared memory may be so split that no block of the launch fits.
  bool may_refuse_for_memory(const Multiset& blocks, const Multiset& ever_resident, size_t launch,
                             int32_t configured) const;
  template <typename Holds>
  bool any_configuration(const Multiset& blocks, const SmKind& kind, const Holds& holds) const;
  // Returns whether a launch on the SM, or one that may have ended, has set this configuration.
  bool may_have_been_set(const Multiset& blocks, const Multiset& ever_resident,
                         int32_t configured) const;
  // Returns whether the launch `ended`, which has ended, may have configured the SM for these
  // blocks.
  bool may_have_configured(size_t ended, const Multiset& blocks, int32_t configured) const;
  // Returns whether these blocks can be resident under this configuration.
  bool suits_configuration(const Multiset& blocks, int32_t configured) const;
  // Returns whether these blocks can be resident under the configuration of the SM, or under one
  // that a launch sets if `configured` is 0 or no resident block keeps it.
  bool suits_some_configuration(const Multiset& blocks, int32_t configured) const;

  const DeviceSpec& spec_;
  const std::vector<Demand>& demands_;
  const std::vector<bool>& may_leave_;
  const std::vector<bool>& is_resident_;
  int32_t unit_;                      // common divisor of sizes of shared memory
  std::set<int32_t> configurations_;  // in bytes, that launches set
};

}  // namespace tbsched
