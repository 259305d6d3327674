// Chooses the SMs of clusters level by level: all domains whose best place has the most room get a
// cluster each, then all domains that still have as much room, and so on down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tbsched/hardware/gpu/clusters.h"
#include "tbsched/policy/policy.h"

namespace tbsched {

// Keeps its memory from one launch to the next.
class ClusterLevels {
 public:
  struct Cluster {
    size_t domain;
    size_t first_sm;  // index of its first SM in sms_
  };

  // Chooses the SMs of up to `clusters` clusters, and commits their blocks.
  void fill(const Demand& demand, int32_t clusters, const GpuState& gpu, const Commit& commit);

  // Returns the number of passes over the domains that fill() made.
  size_t passes() const { return ends_.size(); }
  // Returns the clusters that pass k chose, by domain.
  std::span<const Cluster> pass(const size_t k) const {
    const size_t begin = k == 0 ? 0 : ends_[k - 1];
    return std::span(clusters_).subspan(begin, ends_[k] - begin);
  }
  // Returns the SMs of a cluster, in the order of its blocks.
  std::span<const int32_t> sms(const Cluster& cluster) const {
    return std::span(sms_).subspan(cluster.first_sm, cluster_size_);
  }

 private:
  std::vector<ClusterSearch> searches_;  // by domain
  std::vector<Cluster> clusters_;        // by pass
  std::vector<size_t> ends_;             // end of each pass in clusters_
  std::vector<int32_t> sms_;
  size_t cluster_size_ = 1;
};

}  // namespace tbsched
