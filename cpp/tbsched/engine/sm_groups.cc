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
  const auto found = known_.find(sms);
  if (found != known_.end()) return found->second;
  const int32_t group = launch.partition ? add(*launch.partition) : add_gpcs(device.topology);
  known_.emplace(sms, group);
  return group;
}

int32_t SmGroups::add(const Partition& partition) {
  SmSet sms;
  for (const int32_t sm : partition.sms) sms.add(sm);
  groups_.push_back(std::make_unique<const SmGroup>(SmGroup{.sms = sms, .is_partition = true}));
  return static_cast<int32_t>(groups_.size()) - 1;
}

int32_t SmGroups::add_gpcs(const Topology& topology) {
  SmSet sms;
  for (size_t sm = 0; sm < topology.gpc_of_sm.size(); ++sm) {
    if (topology.gpc_of_sm[sm] >= 0) sms.add(static_cast<int32_t>(sm));
  }
  groups_.push_back(std::make_unique<const SmGroup>(SmGroup{.sms = sms, .is_partition = false}));
  return static_cast<int32_t>(groups_.size()) - 1;
}

}  // namespace tbsched
