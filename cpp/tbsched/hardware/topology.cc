#include "tbsched/hardware/topology.h"

#include "tbsched/hardware/sm/units.h"

namespace tbsched {

Topology::Topology(const DeviceSpec& spec) {
  std::vector<int32_t> gpc_of_tpc(ceil_div(spec.sms, spec.sms_per_tpc), -1);
  for (size_t gpc = 0; gpc < spec.gpcs.size(); ++gpc) {
    for (const int32_t tpc : spec.gpcs[gpc]) gpc_of_tpc[tpc] = static_cast<int32_t>(gpc);
  }
  for (int32_t sm = 0; sm < spec.sms; ++sm) {
    tpc_of_sm.push_back(sm / spec.sms_per_tpc);
    gpc_of_sm.push_back(gpc_of_tpc[tpc_of_sm.back()]);
  }
}

}  // namespace tbsched
