// What CUPTI's records do not tell and its callbacks do: attributes of launches, graphs, modules.
#pragma once

#include <functional>

#include "launcher/capture/cupti.h"
#include "launcher/capture/modules.h"
#include "launcher/capture/recorder.h"

namespace tbsched::capture {

// Turns the callbacks on. Throws std::runtime_error: CUPTI refused.
void enable_callbacks(const Cupti& cupti, CUpti_SubscriberHandle subscriber);

// Lends the recorder to one thread at a time.
using WithRecorder = std::function<void(const std::function<void(Recorder&)>&)>;

// Takes one callback.
void take_callback(const Cupti& cupti, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                   const void* data, Modules& modules, const WithRecorder& with_recorder);

}  // namespace tbsched::capture
