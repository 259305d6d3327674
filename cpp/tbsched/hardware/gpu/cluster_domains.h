// Where a thread block cluster can be placed: all its blocks start together, on different SMs of
// one GPC, or on the two SMs of one TPC that belongs to no GPC.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/topology.h"

namespace tbsched {

// SMs over which a cluster can spread, by TPC.
struct ClusterDomain {
  int32_t gpc;                             // -1: a TPC of no GPC
  std::vector<std::vector<int32_t>> tpcs;  // the SMs of each

  // Returns the number of SMs of all its TPCs.
  int32_t sms() const;
};

// Returns the domains in the order of preference among equals: TPCs of no GPC first, then the GPCs.
std::vector<ClusterDomain> cluster_domains(const Topology& topology);

// Returns the size of the largest cluster that fits the SMs for which `may_use` is true, while they
// are idle.
template <typename MayUse>
int32_t largest_cluster(const std::span<const ClusterDomain> domains, const Mechanisms& mechanisms,
                        const MayUse& may_use) {
  int32_t largest = 1;
  for (const ClusterDomain& domain : domains) {
    const bool is_unused = domain.gpc < 0 && !mechanisms.clusters_use_singletons;
    if (is_unused || domain.tpcs.empty()) continue;
    ptrdiff_t whole = 0;  // SMs of TPCs that may be used whole
    ptrdiff_t parts = 0;  // usable SMs of the other TPCs
    for (const auto& tpc : domain.tpcs) {
      const ptrdiff_t sms = std::ranges::count_if(tpc, may_use);
      (sms == std::ssize(tpc) ? whole : parts) += sms;
    }
    // Clusters use less than a TPC of these.
    if (mechanisms.clusters_take_whole_tpcs) {
      parts = std::min(parts, std::ssize(domain.tpcs.front()) - 1);
    }
    largest = std::max(largest, static_cast<int32_t>(whole + parts));
  }
  return largest;
}

// Returns whether a TPC of no GPC ("singleton") has SMs for a cluster of this many blocks.
bool fits_a_singleton(std::span<const ClusterDomain> domains, int32_t cluster);

}  // namespace tbsched
