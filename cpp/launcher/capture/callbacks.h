// Data that CUPTI's callbacks have and its records lack: calls when they are made, attributes of
// launches, graphs, modules.
#pragma once

#include <functional>

#include "launcher/capture/call_log.h"
#include "launcher/capture/cupti.h"
#include "launcher/capture/modules.h"
#include "launcher/capture/recorder.h"

namespace tbsched::capture {

// Enables the callbacks. Throws std::runtime_error if CUPTI refuses.
void enable_callbacks(const Cupti& cupti, CUpti_SubscriberHandle subscriber);

// Gives one thread at a time access to the recorder.
using WithRecorder = std::function<void(const std::function<void(Recorder&)>&)>;

// Handles one callback, at a time.
void take_callback(const Cupti& cupti, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                   const void* data, Modules& modules, CallLog& calls, uint64_t now_ns,
                   const WithRecorder& with_recorder);

}  // namespace tbsched::capture
