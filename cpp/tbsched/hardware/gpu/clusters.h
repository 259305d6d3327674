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

// Returns whether clusters may have several blocks on an SM: if the launch needs an SM to hold only
// one block, it gains nothing by spreading.
bool is_balanced(const Demand& demand, const DeviceSpec& spec);
// Returns whether an idle domain has the SMs for a cluster. A GPC of few SMs takes a larger cluster
// that is balanced. So does a TPC of no GPC for launches in a partition: launches on the whole GPU
// do not use it (sim/sm_subsets).
bool takes_clusters(const ClusterDomain& domain, const Demand& demand, const DeviceSpec& spec);

// The room of an SM for a block of a cluster. An idle SM comes before any other.
struct ClusterRoom {
  bool idle = false;   // and has room
  int32_t blocks = 0;  // that fit

  auto operator<=>(const ClusterRoom&) const = default;
};

struct ClusterFit {
  ClusterRoom room;          // of the SM with the least room; 0 blocks: the cluster fits nowhere
  std::vector<int32_t> sms;  // in the order of the cluster's blocks
};

// The search for the SMs of a launch's clusters in one domain, one cluster after the other. Keeps
// its memory from one launch to the next.
class ClusterSearch {
 public:
  // Finds the SMs of the first cluster: examines the whole domain. The arguments outlive the
  // search.
  void begin(const ClusterDomain& domain, const Demand& demand, const GpuState& gpu);
  // Finds the SMs of the next cluster, once that of fit() is placed: examines its TPCs again.
  void next();
  // Adds to `by_sm` the number of blocks of all clusters that the domain takes, without placing
  // them. Each block must leave room for exactly one less.
  void fill_without_placing(std::span<int32_t> by_sm);

  // Returns where the domain would take a cluster, if anywhere.
  //
  // A cluster takes whole TPCs, those with the most room on their worse SM first. The odd block of
  // a cluster takes the single SM with the most room, preferably one whose neighbour has less.
  //
  // A launch that needs an SM to hold only one block is balanced instead: each block goes to the SM
  // with the most room, whatever its TPC, and a cluster may have several blocks on an SM.
  const ClusterFit& fit() const { return fit_; }

 private:
  struct Candidate {
    int32_t sm;
    size_t first_of_tpc;  // among the candidates
    size_t end_of_tpc;
    ClusterRoom room = {};
    ClusterRoom least_room_of_tpc = {};  // the least room in its TPC
    int32_t taken = 0;                   // blocks of the cluster that is being chosen
  };
  struct Tpc {
    size_t first;  // index of its first candidate
    size_t end;

    size_t sms() const { return end - first; }
  };

  // Takes one block from the room of each SM of fit(), and finds the SMs of the next cluster.
  void take_without_placing();
  // Returns whether all SMs have lost equally much room since `before`, when none was idle.
  bool has_taken_evenly(std::span<const Candidate> before) const;
  // Asks the GPU for the room of the candidates [first, end): a whole TPC, since its SMs may share
  // a configuration.
  void update_room(size_t first, size_t end);
  // Sets `least_room_of_tpc` of the candidates [first, end) of a TPC.
  void update_least_room(size_t first, size_t end);
  // Sets fit() to the SMs that take the next cluster, and to their least room. Leaves it without
  // SMs if the cluster does not fit.
  void find_sms();
  // Appends to chosen_ the first SMs with room, up to `wanted`.
  void choose_first_free(size_t wanted);
  // Appends to chosen_ the SMs of up to `wanted` blocks, each the SM with the most room then.
  void choose_balanced(size_t wanted);
  // Appends to chosen_ the SMs of `wanted` blocks: of whole TPCs, those with the most room first,
  // then single SMs. Appends fewer if the cluster does not fit.
  void choose_whole_tpcs_first(size_t wanted);

  const Demand* demand_ = nullptr;
  const GpuState* gpu_ = nullptr;
  std::vector<Candidate> candidates_;  // by SM; empty: the domain takes no cluster
  std::vector<Tpc> tpcs_;
  size_t sms_per_tpc_ = 1;
  size_t least_sms_ = 1;            // the fewest SMs of a TPC: the last one may have fewer
  std::vector<Candidate> singles_;  // candidates of the TPCs that a cluster does not take whole
  std::vector<Candidate> chosen_;   // for the next cluster
  ClusterFit fit_;
};

}  // namespace tbsched
