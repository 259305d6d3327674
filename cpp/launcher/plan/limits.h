// Refuses sequences that the GPU would refuse or could never run, before anything is launched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "launcher/driver/context.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

// Checks a sequence against the device's attributes. Throws std::invalid_argument naming field,
// value and limit.
void check_limits(const Sequence& sequence, const Context& context);

// Checks a launch against the driver's query for the loaded kernel. `resident`: how many blocks of
// the launch each of the `sms` SMs may hold, or how many clusters all of them. Throws
// std::invalid_argument if the launch never fits.
void check_resident(size_t launch_index, const Launch& launch, int32_t resident, int32_t sms);

}  // namespace tbsched::cuda
