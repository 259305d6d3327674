#include "tbsched/coresidency/needed_sms.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tbsched/coresidency/pending_launches.h"
#include "tbsched/hardware/gpu/clusters.h"

namespace tbsched {

int32_t sms_to_fill_in(const ClusterDomain& domain, const Demand& demand, const DeviceSpec& spec) {
  if (!takes_clusters(domain, demand, spec)) return 0;
  int32_t usable = 0;      // SMs
  int32_t whole_tpcs = 0;  // TPCs whose SMs are all usable
  for (const std::vector<int32_t>& tpc : domain.tpcs) {
    const auto sms = static_cast<int32_t>(
        std::ranges::count_if(tpc, [&](const int32_t sm) { return demand.may_use(sm); }));
    usable += sms;
    whole_tpcs += std::cmp_equal(sms, tpc.size()) ? 1 : 0;
  }
  if (is_balanced(demand, spec) || !spec.mechanisms.clusters_take_whole_tpcs) {
    return std::max(0, usable - demand.cluster + 1);
  }
  const auto per_tpc = static_cast<int32_t>(domain.tpcs.front().size());
  // Nothing is proved for a TPC with fewer SMs, the last one of some GPUs.
  if (!std::cmp_equal(domain.tpcs.back().size(), per_tpc)) return 0;
  const int32_t tpcs = demand.cluster / per_tpc;
  const int32_t singles = demand.cluster % per_tpc;
  if (whole_tpcs < tpcs) return 0;
  const int32_t tpcs_to_fill = whole_tpcs - tpcs + 1;  // by an SM each: too few whole ones remain
  if (singles == 0) return tpcs_to_fill;
  const int32_t singles_to_fill = std::max(0, usable - tpcs * per_tpc - singles + 1);
  return tpcs == 0 ? singles_to_fill : std::min(tpcs_to_fill, singles_to_fill);
}

int32_t sms_to_fill(const Demand& demand, const Device& device) {
  if (demand.cluster == 1) return usable_sms(demand, device.spec.sms);
  int32_t sum = 0;
  for (const ClusterDomain& domain : device.cluster_domains) {
    sum += sms_to_fill_in(domain, demand, device.spec);
  }
  return sum;
}

int64_t blocks_to_fill(const Demand& demand, const Device& device, const int32_t per_sm) {
  const DeviceSpec& spec = device.spec;
  if (demand.cluster == 1) return int64_t{per_sm} * usable_sms(demand, spec.sms);
  const int64_t per_unit =
      int64_t{per_sm} * (takes_whole_tpcs(demand, spec) ? spec.sms_per_tpc : 1);
  int64_t sum = 0;
  for (const ClusterDomain& domain : device.cluster_domains) {
    const int64_t blocks = per_unit * sms_to_fill_in(domain, demand, spec);
    sum += (blocks + demand.cluster - 1) / demand.cluster * demand.cluster;
  }
  return sum;
}

Multiset for_one_of_each_tpc(const Demands& demands, const Multiset& coming,
                             const DeviceSpec& spec) {
  Multiset blocks = coming;
  for (size_t launch = 0; launch < coming.size(); ++launch) {
    if (takes_whole_tpcs(demands[launch], spec)) blocks[launch] /= spec.sms_per_tpc;
  }
  return blocks;
}

}  // namespace tbsched
