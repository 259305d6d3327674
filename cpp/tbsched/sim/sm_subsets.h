// The subsets of a GPU's SMs to which launches are limited. Each subset is made once.
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
struct SmSubset {
  SmSet sms;
  bool is_partition;

  // Returns the partition for Demand::partition; nullptr: the launch has none.
  const SmSet* partition() const { return is_partition ? &sms : nullptr; }
};

class SmSubsets {
 public:
  // Returns the index of the launch's subset; kWholeGpu, which is no subset, if it may use all SMs.
  int32_t of(const Launch& launch, const Device& device);
  // The reference stays valid.
  const SmSubset& operator[](const int32_t subset) const { return *subsets_[subset]; }

 private:
  // Adds the SMs of a partition, or all SMs for nullptr, without singleton TPCs unless it uses
  // them. Returns the index of the subset.
  int32_t add(const Partition* partition, bool uses_singletons, const Topology& topology);

  std::vector<std::unique_ptr<const SmSubset>> subsets_;
  // By the SMs of the partition (none stands for all SMs): subsets with its singleton TPCs, and
  // subsets without.
  std::array<std::map<std::vector<int32_t>, int32_t>, 2> known_;
};

}  // namespace tbsched
