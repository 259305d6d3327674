// Which CUDA functions are recorded: those that issue work, and those that wait for it.
#pragma once

#include <string_view>

#include "launcher/capture/cupti.h"

namespace tbsched::capture {

// Returns whether calls of a function of the driver or the runtime are recorded.
bool is_recorded(std::string_view name);

// Enables the records of calls of the recorded functions. If the process has used CUDA before,
// CUPTI ignores such a selection: then all functions are enabled, and the others disabled again.
// Throws std::runtime_error if CUPTI refuses.
void record_calls(const Cupti& cupti, bool from_the_beginning);
// Disables the records of all calls. Throws std::runtime_error if CUPTI refuses.
void stop_recording_calls(const Cupti& cupti);

}  // namespace tbsched::capture
