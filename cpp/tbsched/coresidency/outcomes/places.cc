#include "tbsched/coresidency/outcomes/places.h"

#include "tbsched/coresidency/pending_launches.h"
#include "tbsched/hardware/gpu/clusters.h"

namespace tbsched {
namespace {

// Returns whether no SM that the launch may enter has more room for it than an idle one.
bool idle_has_most_room(const Demand& demand, const Device& device) {
  return demand.configuration.maximum == demand.configuration.target ||
         idle_is_best(demand, device);
}

// Returns how blocks of the demand choose SMs under a policy that takes the most room first.
Way way_of(const Demand& demand, const Device& device) {
  const Mechanisms& mechanisms = device.spec.mechanisms;
  // Such a launch enters no SM that is configured.
  if (mechanisms.shared_memory_configuration && demand.configuration.target == 0) return Way::other;
  if (demand.cluster == 1) return Way::single;
  if (is_balanced(demand, device.spec)) return Way::balanced;
  // Levels are sorted by room only if idle SMs come first and have the most.
  const bool has_order = mechanisms.clusters_seek_idle_sms && idle_has_most_room(demand, device);
  return has_order && takes_whole_tpcs(demand, device.spec) ? Way::whole_tpcs : Way::other;
}

}  // namespace

LaunchPlaces::LaunchPlaces(const Model& model, const Demands& demands)
    : device_(model.device()), demands_(demands) {
  for (const Demand& demand : demands.all()) {
    ways_.push_back(model.most_room_first() ? way_of(demand, device_) : Way::other);
  }
}

int32_t LaunchPlaces::parts(const int32_t launch) const {
  const int32_t cluster = demands_[launch].cluster;
  return ways_[launch] == Way::whole_tpcs ? cluster / device_.spec.sms_per_tpc : cluster;
}

}  // namespace tbsched
