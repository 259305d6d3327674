// CUPTI's callbacks. They have what its records lack: calls when they are made, attributes of
// launches, graphs, modules.
#pragma once

#include <functional>

#include "launcher/capture/call_log.h"
#include "launcher/capture/cupti.h"
#include "launcher/capture/modules.h"
#include "launcher/capture/recorder.h"

namespace tbsched::capture {

// Subscribes to the callbacks of operations, modules, streams and graphs. Throws std::runtime_error
// if CUPTI refuses.
void enable_callbacks(const Cupti& cupti, CUpti_SubscriberHandle subscriber);

// Calls a function with the recorder, for one thread at a time.
using WithRecorder = std::function<void(const std::function<void(Recorder&)>&)>;

// Updates `modules` and `calls` with one callback of CUPTI, and records what it says about launches
// and graphs.
void handle_callback(const Cupti& cupti, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                     const void* data, Modules& modules, CallLog& calls, uint64_t now_ns,
                     const WithRecorder& with_recorder);

}  // namespace tbsched::capture
