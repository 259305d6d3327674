// Thread block clusters: the sets of SMs that take one.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "tbsched/hardware/gpu/cluster_domains.h"
#include "tbsched/hardware/gpu/gpu_state.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

// Whether clusters may have several blocks on an SM: where one block is all that the launch needs
// an SM to hold, nothing is gained by spreading.
bool is_balanced(const Demand& demand, const DeviceSpec& spec);
// Whether an idle domain has the SMs for a cluster. A GPC of few SMs takes a larger cluster that is
// balanced. A TPC of no GPC does so for launches in a partition: those on the whole GPU leave it
// out (engine/sm_groups).
bool takes_clusters(const ClusterDomain& domain, const Demand& demand, const DeviceSpec& spec);

// How good an SM is for a block of a cluster. An idle SM comes before any other.
struct ClusterRoom {
  bool idle = false;
  int32_t blocks = 0;

  auto operator<=>(const ClusterRoom&) const = default;
};

struct ClusterFit {
  ClusterRoom room;          // of the SM with the least; no blocks: nowhere
  std::vector<int32_t> sms;  // in the order of the cluster's blocks
};

// Keeps its memory from one question to the next.
class ClusterSearch {
 public:
  // Where the domain would take a cluster, if anywhere.
  //
  // Whole TPCs, those with the most room on their worse SM first, and for what is left over of an
  // odd cluster the single SM with the most room, rather one whose neighbour has less.
  //
  // A launch that needs an SM to hold one block is balanced instead: each block goes to the SM with
  // the most room, whatever its TPC, and a cluster may have several blocks on an SM.
  void find(const ClusterDomain& domain, const Demand& demand, const GpuState& gpu,
            ClusterFit& fit);

 private:
  struct Candidate {
    int32_t sm;
    ClusterRoom room;
    ClusterRoom room_beside;  // the least of its TPC
    int32_t taken = 0;        // blocks of this cluster
  };
  struct Tpc {
    size_t first;  // of its candidates
    size_t end;

    size_t sms() const { return end - first; }
  };

  void look_at(const ClusterDomain& domain, const Demand& demand, const GpuState& gpu);
  void choose_first_free(size_t wanted);
  void choose_balanced(size_t wanted);
  void choose_whole_tpcs_first(size_t wanted);

  std::vector<Candidate> candidates_;  // by SM
  std::vector<Tpc> tpcs_;
  std::vector<Candidate> singles_;
  std::vector<Candidate> chosen_;
};

}  // namespace tbsched
