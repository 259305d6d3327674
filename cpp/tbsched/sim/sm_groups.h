// The sets of SMs that launches use. Each set is made once.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/sm_set.h"
#include "tbsched/program/event.h"

namespace tbsched {

inline constexpr int32_t kWholeGpu = -1;

// A partition, or the GPCs, which clusters use that fit no singleton TPC. Clusters in a partition
// use all of it, singleton TPCs included: other launches do not get those while the clusters wait,
// and balanced clusters share their SMs. Source: traces partition-launches/, ways/clusters.
struct SmGroup {
  SmSet sms;
  bool is_partition;

  const SmSet* partition() const { return is_partition ? &sms : nullptr; }
};

class SmGroups {
 public:
  // Returns the number of the launch's group; kWholeGpu, which is no group, if it uses all SMs.
  int32_t of(const Launch& launch, const Device& device);
  // The reference stays valid.
  const SmGroup& operator[](const int32_t group) const { return *groups_[group]; }

 private:
  // `partition`: nullptr stands for all SMs.
  int32_t add(const Partition* partition, bool uses_singletons, const Topology& topology);

  std::vector<std::unique_ptr<const SmGroup>> groups_;
  // By the SMs of the partition (none stands for all SMs): groups with its singleton TPCs, and
  // groups without.
  std::array<std::map<std::vector<int32_t>, int32_t>, 2> known_;
};

}  // namespace tbsched
