#include "tbsched/hardware/gpu/cluster_domains.h"

#include <algorithm>
#include <numeric>

namespace tbsched {

int32_t ClusterDomain::sms() const {
  return std::accumulate(tpcs.begin(), tpcs.end(), 0, [](const int32_t sum, const auto& tpc) {
    return sum + static_cast<int32_t>(tpc.size());
  });
}

std::vector<ClusterDomain> cluster_domains(const Topology& topology) {
  std::vector<ClusterDomain> singletons;
  std::vector<ClusterDomain> gpcs(std::ranges::max(topology.gpc_of_sm) + 1);
  for (size_t gpc = 0; gpc < gpcs.size(); ++gpc) gpcs[gpc].gpc = static_cast<int32_t>(gpc);
  int32_t last_tpc = -1;
  for (int32_t sm = 0; sm < topology.sms(); ++sm) {
    const int32_t gpc = topology.gpc_of_sm[sm];
    const bool is_first_of_tpc = topology.tpc_of_sm[sm] != last_tpc;
    last_tpc = topology.tpc_of_sm[sm];
    if (gpc < 0 && is_first_of_tpc) singletons.push_back({.gpc = -1, .tpcs = {}});
    auto& tpcs = gpc < 0 ? singletons.back().tpcs : gpcs[gpc].tpcs;
    if (is_first_of_tpc) tpcs.emplace_back();
    tpcs.back().push_back(sm);
  }
  singletons.insert(singletons.end(), gpcs.begin(), gpcs.end());
  return singletons;
}

bool fits_a_singleton(const std::span<const ClusterDomain> domains, const int32_t cluster) {
  return std::ranges::any_of(domains, [&](const ClusterDomain& domain) {
    return domain.gpc < 0 && domain.sms() >= cluster;
  });
}

}  // namespace tbsched
