#include "tbsched/engine/together/gpcs/places.h"

#include <algorithm>
#include <utility>

#include "tbsched/engine/together/coming.h"
#include "tbsched/hardware/gpu/clusters.h"

namespace tbsched {
namespace {

// Whether no SM that the launch may enter has more room for it than an idle one.
bool idle_has_most_room(const Demand& demand, const Device& device) {
  return demand.configuration.maximum == demand.configuration.target ||
         idle_is_best(demand, device);
}

Way way_of(const Demand& demand, const Device& device) {
  const Mechanisms& mechanisms = device.spec.mechanisms;
  // It enters no SM that is configured.
  if (mechanisms.shared_memory_configuration && demand.configuration.target == 0) return Way::other;
  if (demand.cluster == 1) return Way::single;
  if (is_balanced(demand, device.spec)) return Way::balanced;
  // Levels are sorted by room only if idle SMs come first and have the most.
  const bool has_order = mechanisms.clusters_seek_idle_sms && idle_has_most_room(demand, device);
  return has_order && takes_whole_tpcs(demand, device.spec) ? Way::whole_tpcs : Way::other;
}

// At one level a domain has no more passes than SMs.
int32_t most_passes(const Device& device) {
  int32_t most = 1;
  for (const ClusterDomain& domain : device.cluster_domains) most = std::max(most, domain.sms());
  return most;
}

}  // namespace

LaunchPlaces::LaunchPlaces(const Model& model, const Demands& demands)
    : device_(model.device()), demands_(demands) {
  const auto domains = static_cast<int32_t>(device_.cluster_domains.size());
  for (const Demand& demand : demands.all()) {
    ways_.push_back(model.policy().most_room_first ? way_of(demand, device_) : Way::other);
    width_.push_back(demand.cluster == 1 ? device_.spec.sms : domains * most_passes(device_));
  }
}

PlaceRange LaunchPlaces::all(const int32_t launch) const {
  const int32_t levels =
      demands_[launch].blocks_per_sm + (ways_[launch] == Way::whole_tpcs ? 1 : 0);
  return {0, levels * width_[launch] - 1};
}

bool LaunchPlaces::is_one_level(const int32_t launch, const PlaceRange& range) const {
  return range.first / width_[launch] == range.last / width_[launch];
}

int32_t LaunchPlaces::parts(const int32_t launch) const {
  const int32_t cluster = demands_[launch].cluster;
  return ways_[launch] == Way::whole_tpcs ? cluster / device_.spec.sms_per_tpc : cluster;
}

int32_t LaunchPlaces::up_to(const int32_t place, const int32_t launch, const int32_t sm,
                            const int32_t room) const {
  const int32_t level = place / width_[launch];
  return up_to_level(is_preferred(place, launch, sm) ? level : level - 1, launch, room, false);
}

int32_t LaunchPlaces::up_to_level(const int32_t level, const int32_t launch, const int32_t room,
                                  const bool idle) const {
  const bool has_idle = ways_[launch] == Way::whole_tpcs;
  const int32_t least_room = demands_[launch].blocks_per_sm - level + (has_idle ? 1 : 0);
  const int32_t found = level < (has_idle ? 1 : 0) ? 0 : std::clamp(room - least_room + 1, 0, room);
  const bool takes_idle = has_idle && idle && level >= 0;
  return takes_idle ? std::max(found, std::min(room, 1)) : found;
}

int32_t LaunchPlaces::passes(const int32_t place, const int32_t launch, const size_t domain) const {
  const auto domains = static_cast<int32_t>(device_.cluster_domains.size());
  const int32_t in_level = place % width_[launch];
  return in_level / domains + (std::cmp_less_equal(domain, in_level % domains) ? 1 : 0);
}

}  // namespace tbsched
