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
  searches_.resize(domains.size());
  for (size_t i = 0; i < domains.size(); ++i) searches_[i].begin(domains[i], demand, gpu);

  const auto room = [](const ClusterSearch& search) { return search.fit().room; };
  ClusterRoom level{true, gpu.spec().cluster_blocks_per_sm};
  for (int32_t remaining = clusters; remaining > 0;) {
    level = std::min(level, room(*std::ranges::max_element(searches_, {}, room)));
    if (level.blocks == 0) break;
    for (size_t i = 0; i < domains.size() && remaining > 0; ++i) {
      if (room(searches_[i]) < level) continue;
      const std::vector<int32_t>& sms = searches_[i].fit().sms;
      for (const int32_t sm : sms) commit(sm, 1);
      clusters_.push_back({i, sms_.size()});
      sms_.insert(sms_.end(), sms.begin(), sms.end());
      searches_[i].next();
      --remaining;
    }
    ends_.push_back(clusters_.size());
  }
}

}  // namespace tbsched
