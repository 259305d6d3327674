#include "launcher/capture/functions.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tbsched::capture {
namespace {

// Beginnings of names: a function may have versions, and one for per-thread default streams.
constexpr std::array<std::string_view, 10> kDriver = {
    "cuLaunchKernel",     "cuLaunchCooperativeKernel",
    "cuGraphLaunch",      "cuEventRecord",
    "cuStreamWaitEvent",  "cuStreamSynchronize",
    "cuEventSynchronize", "cuCtxSynchronize",
    "cuMemcpy",           "cuMemset"};
constexpr std::array<std::string_view, 10> kRuntime = {
    "cudaLaunchKernel",     "cudaLaunchCooperativeKernel",
    "cudaGraphLaunch",      "cudaEventRecord",
    "cudaStreamWaitEvent",  "cudaStreamSynchronize",
    "cudaEventSynchronize", "cudaDeviceSynchronize",
    "cudaMemcpy",           "cudaMemset"};

template <typename Names, typename Enable>
void record(const Cupti& cupti, const bool on, const CUpti_CallbackDomain domain,
            const CUpti_CallbackId count, const Names& names, const Enable enable) {
  for (CUpti_CallbackId function = 1; function < count; ++function) {
    const char* name = nullptr;
    if (cupti.callback_name(domain, function, &name) != CUPTI_SUCCESS || name == nullptr) continue;
    const auto begins = [&](const std::string_view each) {
      return std::string_view(name).starts_with(each);
    };
    if (std::ranges::any_of(names, begins)) cupti.check(enable(function, on ? 1 : 0), name);
  }
}

}  // namespace

void record_calls(const Cupti& cupti, const bool on) {
  record(cupti, on, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE, kDriver,
         cupti.enable_driver_api);
  record(cupti, on, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE, kRuntime,
         cupti.enable_runtime_api);
}

}  // namespace tbsched::capture
