// A whole sequence at once: where every block goes.
#pragma once

#include <vector>

#include "model/device_spec.h"
#include "model/sequence.h"
#include "model/trace.h"
#include "policy/policy.h"

namespace tbsched {

std::vector<LaunchTrace> predict(const DeviceSpec& spec, const Sequence& sequence,
                                 const PolicyRow& policy, InitialState state);

// For each launch and SM, the room for its blocks when it came; rows as launches, indexed by SMID.
std::vector<std::vector<Room>> capacities(const DeviceSpec& spec, const Sequence& sequence,
                                          const PolicyRow& policy, InitialState state);

}  // namespace tbsched
