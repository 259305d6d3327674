// Thread block clusters: the sets of SMs that take one.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
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
// out (sim/sm_groups).
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

// Where a domain takes the clusters of a launch, one after the other. Keeps its memory from one
// launch to the next.
class ClusterSearch {
 public:
  // Looks at the whole domain. All outlive the search.
  void begin(const ClusterDomain& domain, const Demand& demand, const GpuState& gpu);
  // After a cluster was placed there: looks at those TPCs again.
  void next();
  // As if all clusters that it takes had been placed there, where each block leaves room for
  // exactly one less. Adds the blocks of each SM.
  void fill_without_placing(std::span<int32_t> by_sm);

  // Where the domain would take a cluster, if anywhere.
  //
  // Whole TPCs, those with the most room on their worse SM first, and for what is left over of an
  // odd cluster the single SM with the most room, rather one whose neighbour has less.
  //
  // A launch that needs an SM to hold one block is balanced instead: each block goes to the SM with
  // the most room, whatever its TPC, and a cluster may have several blocks on an SM.
  const ClusterFit& fit() const { return fit_; }

 private:
  struct Candidate {
    int32_t sm;
    size_t first_of_tpc;  // among the candidates
    size_t end_of_tpc;
    ClusterRoom room = {};
    ClusterRoom room_beside = {};  // the least of its TPC
    int32_t taken = 0;             // blocks of the cluster, while it is chosen
  };
  struct Tpc {
    size_t first;  // of its candidates
    size_t end;

    size_t sms() const { return end - first; }
  };

  void next_without_placing();
  bool has_lost_evenly(std::span<const Candidate> before) const;
  void look_at(size_t first, size_t end);
  void compare_tpc(size_t first, size_t end);
  void find();
  void choose_first_free(size_t wanted);
  void choose_balanced(size_t wanted);
  void choose_whole_tpcs_first(size_t wanted);

  const Demand* demand_ = nullptr;
  const GpuState* gpu_ = nullptr;
  std::vector<Candidate> candidates_;  // by SM; none: it takes no cluster
  std::vector<Tpc> tpcs_;
  size_t sms_per_tpc_ = 1;
  size_t least_sms_ = 1;  // of a TPC: the last one may have fewer
  std::vector<Candidate> singles_;
  std::vector<Candidate> chosen_;
  ClusterFit fit_;
};

}  // namespace tbsched
