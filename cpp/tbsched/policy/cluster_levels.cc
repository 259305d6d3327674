#include "tbsched/policy/cluster_levels.h"

#include <algorithm>

namespace tbsched {

void ClusterLevels::fill(const Demand& demand, const int32_t clusters, const GpuState& gpu,
                         const Commit& commit) {
  const std::vector<ClusterDomain>& domains = gpu.device().cluster_domains;
  cluster_size_ = static_cast<size_t>(demand.cluster);
  clusters_.clear();
  ends_.clear();
  sms_.clear();
  fits_.resize(domains.size());
  for (size_t i = 0; i < domains.size(); ++i) search_.find(domains[i], demand, gpu, fits_[i]);

  ClusterRoom level{true, gpu.spec().cluster_blocks_per_sm};
  for (int32_t left = clusters; left > 0;) {
    level = std::min(level, std::ranges::max_element(fits_, {}, &ClusterFit::room)->room);
    if (level.blocks == 0) break;
    for (size_t i = 0; i < domains.size() && left > 0; ++i) {
      if (fits_[i].room < level) continue;
      for (const int32_t sm : fits_[i].sms) commit(sm, 1);
      clusters_.push_back({i, sms_.size()});
      sms_.insert(sms_.end(), fits_[i].sms.begin(), fits_[i].sms.end());
      search_.find(domains[i], demand, gpu, fits_[i]);
      --left;
    }
    ends_.push_back(clusters_.size());
  }
}

}  // namespace tbsched
