// One SM, whoever came and went: what it can hold, and with which blocks it may be full. Where that
// depends on the order of arrival or on who has left, the worst counts.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "tbsched/engine/together/packing.h"
#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

class AnySm {
 public:
  // Of each launch its demand, and whether its blocks may leave. All outlive it.
  AnySm(const DeviceSpec& spec, const std::vector<Demand>& demands,
        const std::vector<bool>& may_leave);

  // Whether so many blocks of each launch can be on one SM, alone or beside others of these
  // launches: one of those may have configured it. So with fewer blocks it is true, too.
  bool can_hold(const Multiset& blocks) const;
  // Whether an SM with these blocks can be without room for one more of a launch, if it had so many
  // of each at most. An idle one has room: whatever comes configures it.
  bool may_be_full(const Multiset& blocks, const Multiset& had, size_t launch) const;

 private:
  // What one block takes of one processing block at most, whatever the turns of warps.
  struct Share {
    int32_t warps;
    int32_t registers;
  };

  template <typename Value>
  int64_t total(const Multiset& blocks, const Value& value) const;
  bool slots_may_be_full(const Multiset& blocks, const Demand& demand) const;
  bool warps_may_be_full(const Multiset& blocks, size_t launch) const;
  int64_t gaps(const Multiset& blocks, const Multiset& had) const;
  bool memory_may_be_full(const Demand& demand, int64_t free, int64_t gaps,
                          int32_t configured) const;
  template <typename Holds>
  bool exists_configuration(const Multiset& blocks, const Holds& holds) const;
  bool may_be_set(const Multiset& blocks, int32_t configured) const;
  bool can_enter(const Multiset& blocks, int32_t configured) const;

  const DeviceSpec& spec_;
  const std::vector<Demand>& demands_;
  const std::vector<bool>& may_leave_;
  std::vector<Share> shares_;
  std::set<int32_t> configurations_;  // that the launches set
};

}  // namespace tbsched
