#include "tbsched/coresidency/demands.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "tbsched/hardware/gpu/clusters.h"
#include "tbsched/hardware/gpu/rooms.h"

namespace tbsched {
namespace {

// Returns whether a domain always takes as many clusters as can be divided among its SMs. Taking
// SMs with the most room first does so for distinct SMs; any order does so if a cluster may have
// several blocks on an SM. For clusters of whole TPCs and a rest it is not known.
bool packs_best(const Device& device, const Demand& demand) {
  const DeviceSpec& spec = device.spec;
  if (demand.cluster == 1 || is_balanced(demand, spec)) return true;
  return spec.mechanisms.clusters_take_whole_tpcs && demand.cluster % spec.sms_per_tpc == 0 &&
         spec.sms % spec.sms_per_tpc == 0;
}

// Returns, by SM, whether a block of the demand can be there. `own_sms`: the SMs of its partition;
// nullptr: all.
std::vector<bool> usable(const Demand& demand, const SmSet* const own_sms, const Device& device) {
  std::vector<bool> is_usable(static_cast<size_t>(device.spec.sms));
  for (const ClusterDomain& domain : device.cluster_domains) {
    std::vector<int32_t> sms;
    for (const std::vector<int32_t>& tpc : domain.tpcs) {
      std::ranges::copy_if(tpc, std::back_inserter(sms), [&](const int32_t sm) {
        return own_sms == nullptr || own_sms->has(sm);
      });
    }
    const bool takes_blocks =
        demand.cluster == 1 || (takes_clusters(domain, demand, device.spec) &&
                                std::ssize(sms) * demand.blocks_per_sm >= demand.cluster);
    for (const int32_t sm : sms) is_usable[static_cast<size_t>(sm)] = takes_blocks;
  }
  return is_usable;
}

}  // namespace

Demands::Demands(const Device& device, const std::vector<Launch>& launches) {
  for (const Launch& launch : launches) {
    Demand demand = demand_of(launch, device);
    const int32_t subset = subsets_.of(launch, device);
    if (subset != kWholeGpu) demand.partition = subsets_[subset].partition();
    reserved_.push_back(subset == kWholeGpu ? nullptr : &subsets_[subset].sms);
    may_be_on_.push_back(usable(demand, reserved_.back(), device));
    demands_.push_back(demand);
  }
}

int32_t usable_sms(const Demand& demand, const int32_t sms) {
  return demand.partition == nullptr ? sms : static_cast<int32_t>(demand.partition->size());
}

int32_t memory_unit(const std::vector<Demand>& demands) {
  int32_t unit = 0;
  for (const Demand& demand : demands) unit = std::gcd(unit, demand.shared_memory);
  return unit;
}

int32_t room_when_idle(const Demand& demand, const Device& device) {
  return device.empty_sm.room(device.spec, demand, demand.configuration.target).blocks;
}

bool idle_is_best(const Demand& demand, const Device& device) {
  const int32_t largest = device.spec.shared_memory_configurations.back();
  return room_when_idle(demand, device) ==
         device.empty_sm.room(device.spec, demand, largest).blocks;
}

bool grows_local_memory(const Demand& demand, const DeviceSpec& spec) {
  return spec.mechanisms.local_memory_configuration &&
         demand.local_memory > spec.local_memory_initial;
}

bool gains_by_leaving(const Device& device, const Demand& demand) {
  const Mechanisms& mechanisms = device.spec.mechanisms;
  const bool shares = mechanisms.shared_memory_configuration && mechanisms.configuration_per_tpc &&
                      device.spec.sms_per_tpc > 1;
  return mechanisms.registers == Layout::pooled && room_falls_by_one(device.spec) && !shares &&
         !grows_local_memory(demand, device.spec);
}

bool is_monotone(const Device& device, const Demand& demand) {
  return gains_by_leaving(device, demand) && idle_is_best(demand, device) &&
         packs_best(device, demand);
}

}  // namespace tbsched
