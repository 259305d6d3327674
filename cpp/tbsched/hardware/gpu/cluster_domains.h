// Where a thread block cluster can be: all its blocks start together, on different SMs of one GPC,
// or on the two SMs of one TPC that belongs to no GPC.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tbsched/hardware/topology.h"

namespace tbsched {

// SMs that a cluster can spread over, by TPC.
struct ClusterDomain {
  int32_t gpc;  // -1: a TPC of no GPC
  std::vector<std::vector<int32_t>> tpcs;

  int32_t sms() const;
};

// TPCs of no GPC first, then the GPCs: the order of preference among equals.
std::vector<ClusterDomain> cluster_domains(const Topology& topology);

// The blocks of the largest cluster that fits SMs of which `may_use` is true, while they are idle.
template <typename MayUse>
int32_t largest_cluster(const std::span<const ClusterDomain> domains, const MayUse& may_use) {
  int32_t largest = 0;
  for (const ClusterDomain& domain : domains) {
    int32_t sms = 0;
    for (const auto& tpc : domain.tpcs) {
      sms += static_cast<int32_t>(std::ranges::count_if(tpc, may_use));
    }
    largest = std::max(largest, sms);
  }
  return largest;
}

// Whether a TPC of no GPC takes a cluster of this size.
bool fits_a_singleton(std::span<const ClusterDomain> domains, int32_t cluster);

}  // namespace tbsched
