// Thread block clusters: the sets of SMs that take one.
//
// All blocks of a cluster start together, on different SMs of one GPC, or on the two SMs of one TPC
// that belongs to no GPC.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/topology.h"
#include "sm/demand.h"
#include "sm/gpu_state.h"

namespace tbsched {

// SMs that a cluster can spread over, by TPC.
struct ClusterDomain {
  int32_t gpc;  // -1: a TPC of no GPC
  std::vector<std::vector<int32_t>> tpcs;

  int32_t sms() const;
};

// TPCs of no GPC first, then the GPCs: the order of preference among equals.
std::vector<ClusterDomain> cluster_domains(const Topology& topology);

// The blocks of the largest cluster that an idle GPU takes.
int32_t largest_cluster(const Topology& topology);

// Whether a TPC of no GPC takes a cluster of this size.
bool fits_a_singleton(const Topology& topology, int32_t cluster);

// How good an SM is for a block of a cluster. An idle SM comes before any other.
struct ClusterRoom {
  bool idle = false;
  int32_t blocks = 0;

  auto operator<=>(const ClusterRoom&) const = default;
};

struct ClusterFit {
  ClusterRoom room;          // of the SM with the least
  std::vector<int32_t> sms;  // in the order of the cluster's blocks
};

// Where the domain would take a cluster, if anywhere.
//
// Whole TPCs, those with the most room on their worse SM first, and for what is left over of an odd
// cluster the single SM with the most room, rather one whose neighbour has less. Launches of which
// an idle SM holds a single block take the first free SMs, whatever their TPCs.
std::optional<ClusterFit> fit_cluster(const ClusterDomain& domain, const Demand& demand,
                                      const GpuState& gpu);

}  // namespace tbsched
