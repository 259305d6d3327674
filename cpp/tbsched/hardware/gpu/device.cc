#include "tbsched/hardware/gpu/device.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tbsched/hardware/check.h"

namespace tbsched {
namespace {

// Returns the spec; throws std::invalid_argument if it is invalid.
DeviceSpec checked(DeviceSpec spec) {
  check(spec);
  return spec;
}

}  // namespace

Device::Device(DeviceSpec device_spec)
    : spec(checked(std::move(device_spec))),
      topology(spec),
      empty_sm(spec),
      rank_of_sm(spec.sms),
      configuration_of_sm(topology.tpc_of_sm),
      cluster_domains(tbsched::cluster_domains(topology)) {
  const std::vector<int32_t>& preference = spec.sm_preference;
  for (size_t rank = 0; rank < preference.size(); ++rank) {
    rank_of_sm[preference[rank]] = static_cast<int32_t>(rank);
  }
  if (!spec.mechanisms.configuration_per_tpc) {
    std::iota(configuration_of_sm.begin(), configuration_of_sm.end(), 0);
  }
  sms_of_configuration.resize(std::ranges::max(configuration_of_sm) + 1);
  for (int32_t sm = 0; sm < spec.sms; ++sm) {
    SmRange& sms = sms_of_configuration[configuration_of_sm[sm]];
    if (sms.end == 0) sms.begin = sm;
    sms.end = sm + 1;
  }
}

}  // namespace tbsched
