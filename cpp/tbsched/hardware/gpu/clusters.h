// Thread block clusters: the sets of SMs that take one.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "tbsched/hardware/gpu/cluster_domains.h"
#include "tbsched/hardware/gpu/gpu_state.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

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
  // odd cluster the single SM with the most room, rather one whose neighbour has less. Launches of
  // which an idle SM holds a single block take the first free SMs, whatever their TPCs.
  void find(const ClusterDomain& domain, const Demand& demand, const GpuState& gpu,
            ClusterFit& fit);

 private:
  struct Candidate {
    int32_t sm;
    ClusterRoom room;
    ClusterRoom room_beside;  // the least of its TPC
  };
  struct Tpc {
    size_t first;  // of its candidates
    size_t end;

    size_t sms() const { return end - first; }
  };

  void look_at(const ClusterDomain& domain, const Demand& demand, const GpuState& gpu);
  void choose_first_free(size_t wanted);
  void choose_whole_tpcs_first(size_t wanted);

  std::vector<Candidate> candidates_;  // by SM
  std::vector<Tpc> tpcs_;
  std::vector<Candidate> singles_;
  std::vector<Candidate> chosen_;
};

}  // namespace tbsched
