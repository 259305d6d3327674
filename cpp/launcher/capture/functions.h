// Which CUDA functions are recorded: those that issue work, and those that wait for it.
#pragma once

#include "launcher/capture/cupti.h"

namespace tbsched::capture {

// Turns the records of their calls on, or off. Throws std::runtime_error: CUPTI refused.
void record_calls(const Cupti& cupti, bool on);

}  // namespace tbsched::capture
