#include "launcher/capture/functions.h"

#include <algorithm>
#include <array>

namespace tbsched::capture {
namespace {

// Beginnings of names: a function may have versions, and one for per-thread default streams.
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
constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_RUNTIME};

// For each function of a domain that is recorded.
template <typename Enable>
void enable_each(const Cupti& cupti, const CUpti_CallbackDomain domain,
                 const CUpti_CallbackId count, const uint8_t on, const Enable enable) {
  for (CUpti_CallbackId function = 1; function < count; ++function) {
    const char* name = nullptr;
    if (cupti.callback_name(domain, function, &name) != CUPTI_SUCCESS || name == nullptr) continue;
    if (is_recorded(name)) cupti.check(enable(function, on), name);
  }
}

void enable_recorded(const Cupti& cupti, const uint8_t on) {
  enable_each(cupti, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE, on,
              cupti.enable_driver_api);
  enable_each(cupti, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE, on,
              cupti.enable_runtime_api);
}

}  // namespace

bool is_recorded(const std::string_view name) {
  const auto begins = [&](const std::string_view each) { return name.starts_with(each); };
  return std::ranges::any_of(kDriverFunctions, begins) ||
         std::ranges::any_of(kRuntimeFunctions, begins);
}

void record_calls(const Cupti& cupti, const bool from_the_beginning) {
  if (from_the_beginning) return enable_recorded(cupti, 1);
  for (const auto kind : kKinds) cupti.check(cupti.enable(kind), "cuptiActivityEnable");
}

void stop_recording_calls(const Cupti& cupti) {
  for (const auto kind : kKinds) cupti.disable(kind);
  enable_recorded(cupti, 0);
}

}  // namespace tbsched::capture
