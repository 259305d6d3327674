#include "policy/cluster_levels.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tbsched {

ClusterPasses fill_cluster_levels(const std::vector<ClusterDomain>& domains, const Demand& demand,
                                  const int32_t clusters, const GpuState& gpu,
                                  const Commit& commit) {
  std::vector<std::optional<ClusterFit>> fits;
  for (const ClusterDomain& domain : domains) fits.push_back(fit_cluster(domain, demand, gpu));
  const auto room = [](const std::optional<ClusterFit>& fit) {
    return fit ? fit->room : ClusterRoom{};
  };

  ClusterPasses passes;
  ClusterRoom level{true, gpu.spec().cluster_blocks_per_sm};
  for (int32_t left = clusters; left > 0;) {
    level = std::min(level, room(*std::ranges::max_element(fits, {}, room)));
    if (level.blocks == 0) break;
    auto& pass = passes.emplace_back();
    for (size_t i = 0; i < domains.size() && left > 0; ++i) {
      if (room(fits[i]) < level) continue;
      for (const int32_t sm : fits[i]->sms) commit(sm, 1);
      pass.push_back({i, std::move(fits[i]->sms)});
      fits[i] = fit_cluster(domains[i], demand, gpu);
      --left;
    }
  }
  return passes;
}

}  // namespace tbsched
