// Choosing the SMs of clusters level by level: all domains whose best place has the most room get a
// cluster each, then all of those that still have as much, and so on down.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/policy.h"
#include "sm/clusters.h"

namespace tbsched {

struct PlacedCluster {
  size_t domain;
  std::vector<int32_t> sms;
};

// One pass over the domains each.
using ClusterPasses = std::vector<std::vector<PlacedCluster>>;

ClusterPasses fill_cluster_levels(const std::vector<ClusterDomain>& domains, const Demand& demand,
                                  int32_t clusters, const GpuState& gpu, const Commit& commit);

}  // namespace tbsched
