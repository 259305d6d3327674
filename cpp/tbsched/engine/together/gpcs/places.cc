#include "tbsched/engine/together/gpcs/places.h"

#include <algorithm>
#include <numeric>
#include <ranges>
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

// How many clusters a domain places at one level at most. Each takes a place there at least, and an
// SM, or TPC, has one. Of whole TPCs so many must be left that are at no later level. Balanced ones
// take all places before the level first, and then have all of theirs there.
int32_t most_passes(const Device& device, const Way way, const int32_t parts) {
  int32_t most = 1;
  for (const ClusterDomain& domain : device.cluster_domains) {
    const auto tpcs = static_cast<int32_t>(domain.tpcs.size());
    const int32_t own = way == Way::whole_tpcs ? tpcs - parts + 1 : domain.sms() / parts + 1;
    most = std::max(most, own);
  }
  return most;
}

}  // namespace

LaunchPlaces::LaunchPlaces(const Model& model, const Demands& demands)
    : device_(model.device()), demands_(demands) {
  for (size_t launch = 0; launch < demands.all().size(); ++launch) {
    const Demand& demand = demands[launch];
    ways_.push_back(model.policy().most_room_first ? way_of(demand, device_) : Way::other);
    std::vector<int32_t>& numbers = number_of_domain_.emplace_back();
    int32_t domains = 0;
    for (const ClusterDomain& domain : device_.cluster_domains) {
      const bool takes = std::ranges::any_of(domain.tpcs | std::views::join, [&](const int32_t sm) {
        return demands.may_be_on(launch, sm);
      });
      numbers.push_back(domains);
      domains += takes ? 1 : 0;
    }
    domains_.push_back(std::max(1, domains));
    const int32_t passes = most_passes(device_, ways_.back(), parts(static_cast<int32_t>(launch)));
    width_.push_back(demand.cluster == 1 ? device_.spec.sms : domains_.back() * passes);
  }
}

PlaceRange LaunchPlaces::all(const int32_t launch) const {
  const int32_t levels =
      demands_[launch].blocks_per_sm + (ways_[launch] == Way::whole_tpcs ? 1 : 0);
  return {0, levels * width_[launch] - 1};
}

bool LaunchPlaces::is_one_level(const int32_t launch, const PlaceRange& range) const {
  return level(range.first, launch) == level(range.last, launch);
}

int32_t LaunchPlaces::middle(const int32_t launch, const PlaceRange& range) const {
  if (is_one_level(launch, range)) return std::midpoint(range.first, range.last);
  const int32_t before = std::midpoint(level(range.first, launch), level(range.last, launch) - 1);
  return (before + 1) * width_[launch] - 1;
}

int32_t LaunchPlaces::parts(const int32_t launch) const {
  const int32_t cluster = demands_[launch].cluster;
  return ways_[launch] == Way::whole_tpcs ? cluster / device_.spec.sms_per_tpc : cluster;
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
  const int32_t in_level = place % width_[launch];
  const int32_t number = number_of_domain_[launch][domain];
  return in_level / domains_[launch] + (number <= in_level % domains_[launch] ? 1 : 0);
}

}  // namespace tbsched
