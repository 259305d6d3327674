#include "tbsched/hardware/gpu/filled.h"

#include "tbsched/hardware/gpu/clusters.h"

namespace tbsched {

std::vector<int32_t> blocks_that_fit_by_sm(const GpuState& gpu, const Demand& demand) {
  std::vector<int32_t> by_sm(gpu.spec().sms);
  if (demand.cluster == 1) {
    for (int32_t sm = 0; sm < gpu.spec().sms; ++sm) by_sm[sm] = gpu.room(sm, demand).blocks;
    return by_sm;
  }
  // Domains share no SM, so each is filled separately.
  ClusterSearch search;
  for (const ClusterDomain& domain : gpu.device().cluster_domains) {
    search.begin(domain, demand, gpu);
    search.fill_without_placing(by_sm);
  }
  return by_sm;
}

}  // namespace tbsched
