// Which CUDA functions are recorded: those that issue work, and those that wait for it.
#pragma once

#include <string_view>

#include "launcher/capture/cupti.h"

namespace tbsched::capture {

// Whether calls of a function of the driver or the runtime are recorded.
bool is_recorded(std::string_view name);

// Turns the records of their calls on. If the process has used CUDA before, CUPTI ignores such a
// choice: then those of all functions are turned on, and the others off again. Throws
// std::runtime_error: CUPTI refused.
void record_calls(const Cupti& cupti, bool from_the_beginning);
void stop_recording_calls(const Cupti& cupti);

}  // namespace tbsched::capture
