// Refuses, before anything is launched, what the GPU would refuse or could never run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "launcher/driver/context.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

// What the device's attributes say. Throws std::invalid_argument naming field, value and limit.
void check_limits(const Sequence& sequence, const Context& context);

// What only the driver knows, asked of the loaded kernel: `resident` is how many blocks of the
// launch it lets each of the `sms` SMs hold, or how many clusters all of them.
void check_resident(size_t number, const Launch& launch, int32_t resident, int32_t sms);

}  // namespace tbsched::cuda
