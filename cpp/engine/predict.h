// A whole sequence at once: where every block goes.
#pragma once

#include <cstdint>
#include <vector>

#include "model/device_spec.h"
#include "model/sequence.h"
#include "model/timeline.h"
#include "model/trace.h"
#include "policy/policy.h"

namespace tbsched {

// With `warp_slots`, which needs strict turns (else throws std::invalid_argument), also those of
// the blocks placed before the next event, from processing block 0 of every SM.
std::vector<LaunchTrace> predict(const DeviceSpec& spec, const Sequence& sequence,
                                 const PolicyRow& policy, InitialState state,
                                 bool warp_slots = false);

// Of a sequence whose launches have durations. The host issues a launch every `launch_interval_ns`.
Timeline predict_timeline(const DeviceSpec& spec, const Sequence& sequence, const PolicyRow& policy,
                          InitialState state, int64_t launch_interval_ns);

// For each launch and SM, the room for its blocks when it came; rows as launches, indexed by SMID.
std::vector<std::vector<Room>> capacities(const DeviceSpec& spec, const Sequence& sequence,
                                          const PolicyRow& policy, InitialState state);

}  // namespace tbsched
