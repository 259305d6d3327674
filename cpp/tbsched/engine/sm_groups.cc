#include "tbsched/engine/sm_groups.h"

#include <utility>

#include "tbsched/hardware/gpu/cluster_domains.h"

namespace tbsched {

int32_t SmGroups::of(const Launch& launch, const Device& device) {
  const bool in_gpcs_only =
      launch.cluster > 1 && !fits_a_singleton(device.cluster_domains, launch.cluster);
  if (!launch.partition && !in_gpcs_only) return kWholeGpu;
  static const std::vector<int32_t> none;
  const std::vector<int32_t>& sms = launch.partition ? launch.partition->sms : none;
  auto& known = known_[in_gpcs_only];
  const auto found = known.find(sms);
  if (found != known.end()) return found->second;
  const int32_t group = add(launch.partition.get(), in_gpcs_only, device);
  known.emplace(sms, group);
  return group;
}

int32_t SmGroups::add(const Partition* const partition, const bool in_gpcs_only,
                      const Device& device) {
  SmGroup group;
  if (partition != nullptr) {
    group.of_partition.emplace();
    for (const int32_t sm : partition->sms) group.of_partition->add(sm);
  }
  for (int32_t sm = 0; sm < device.spec.sms; ++sm) {
    const bool may_use = !group.of_partition || group.of_partition->has(sm);
    if (may_use && (!in_gpcs_only || device.topology.gpc_of_sm[sm] >= 0)) group.sms.add(sm);
  }
  groups_.push_back(std::make_unique<const SmGroup>(std::move(group)));
  return static_cast<int32_t>(groups_.size()) - 1;
}

}  // namespace tbsched
