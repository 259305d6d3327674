#include "launcher/capture/functions.h"

#include <algorithm>
#include <array>

namespace tbsched::capture {
namespace {

// Prefixes of names: a function may have versions, and one for per-thread default streams.
constexpr std::array<std::string_view, 12> kDriverFunctions = {
    "cuLaunchKernel",     "cuLaunchCooperativeKernel", "cuGraphLaunch",
    "cuEventRecord",      "cuStreamWaitEvent",         "cuStreamSynchronize",
    "cuEventSynchronize", "cuCtxSynchronize",          "cuMemcpy",
    "cuMemset",           "cuStreamBeginCapture",      "cuStreamEndCapture"};
constexpr std::array<std::string_view, 12> kRuntimeFunctions = {
    "cudaLaunchKernel",     "cudaLaunchCooperativeKernel", "cudaGraphLaunch",
    "cudaEventRecord",      "cudaStreamWaitEvent",         "cudaStreamSynchronize",
    "cudaEventSynchronize", "cudaDeviceSynchronize",       "cudaMemcpy",
    "cudaMemset",           "cudaStreamBeginCapture",      "cudaStreamEndCapture"};
constexpr std::array kCallActivities = {CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_RUNTIME};

// Calls action(enable, function, name) for each function of the driver and the runtime; `enable`
// switches its records on or off.
template <typename Action>
void for_each_function(const Cupti& cupti, const Action& action) {
  const auto for_each_of_domain = [&](const CUpti_CallbackDomain domain,
                                      const CUpti_CallbackId count, const auto enable) {
    for (CUpti_CallbackId function = 1; function < count; ++function) {
      const char* name = nullptr;
      const bool is_known = cupti.callback_name(domain, function, &name) == CUPTI_SUCCESS;
      if (is_known && name != nullptr) action(enable, function, name);
    }
  };
  for_each_of_domain(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE,
                     cupti.enable_driver_api);
  for_each_of_domain(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE,
                     cupti.enable_runtime_api);
}

// Enables the records of the functions that are recorded, or disables them if `on` is 0.
void switch_recorded(const Cupti& cupti, const uint8_t on) {
  for_each_function(
      cupti, [&](const auto enable, const CUpti_CallbackId function, const char* const name) {
        if (is_recorded(name)) cupti.check(enable(function, on), name);
      });
}

// Disables the records of all other functions. CUPTI may ignore it: the recorder drops their calls,
// too.
void disable_unrecorded(const Cupti& cupti) {
  for_each_function(cupti,
                    [](const auto enable, const CUpti_CallbackId function, const char* const name) {
                      if (!is_recorded(name)) enable(function, 0);
                    });
}

}  // namespace

bool is_recorded(const std::string_view name) {
  const auto begins = [&](const std::string_view each) { return name.starts_with(each); };
  return std::ranges::any_of(kDriverFunctions, begins) ||
         std::ranges::any_of(kRuntimeFunctions, begins);
}

void record_calls(const Cupti& cupti, const bool from_the_beginning) {
  if (from_the_beginning) return switch_recorded(cupti, 1);
  for (const auto kind : kCallActivities) cupti.check(cupti.enable(kind), "cuptiActivityEnable");
  disable_unrecorded(cupti);
}

void stop_recording_calls(const Cupti& cupti) {
  for (const auto kind : kCallActivities) cupti.disable(kind);
  switch_recorded(cupti, 0);
}

}  // namespace tbsched::capture
