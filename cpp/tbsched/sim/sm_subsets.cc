#include "tbsched/sim/sm_subsets.h"

#include <algorithm>

#include "tbsched/hardware/gpu/cluster_domains.h"

namespace tbsched {

int32_t SmSubsets::of(const Launch& launch, const Device& device) {
  const bool fits_no_singleton =
      launch.cluster > 1 && !fits_a_singleton(device.cluster_domains, launch.cluster);
  if (!launch.partition && !fits_no_singleton) return kWholeGpu;
  const bool uses_singletons =
      launch.partition &&
      (!fits_no_singleton || device.spec.mechanisms.clusters_use_whole_partition);
  static const std::vector<int32_t> none;
  const std::vector<int32_t>& sms = launch.partition ? launch.partition->sms : none;
  std::map<std::vector<int32_t>, int32_t>& known = known_[uses_singletons ? 0 : 1];
  const auto entry = known.find(sms);
  if (entry != known.end()) return entry->second;
  const int32_t subset = add(launch.partition.get(), uses_singletons, device.topology);
  known.emplace(sms, subset);
  return subset;
}

int32_t SmSubsets::add(const Partition* const partition, const bool uses_singletons,
                       const Topology& topology) {
  SmSet sms;
  for (int32_t sm = 0; sm < topology.sms(); ++sm) {
    const bool is_inside = partition == nullptr || std::ranges::binary_search(partition->sms, sm);
    if (is_inside && (uses_singletons || topology.gpc_of_sm[sm] >= 0)) sms.add(sm);
  }
  subsets_.push_back(
      std::make_unique<const SmSubset>(SmSubset{.sms = sms, .is_partition = partition != nullptr}));
  return static_cast<int32_t>(subsets_.size()) - 1;
}

}  // namespace tbsched
