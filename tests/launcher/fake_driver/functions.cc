// Kernels of the fake GPU, and the functions that contexts have of them.
#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "accounts.h"
#include "calls.h"
#include "contexts.h"
#include "fake_gpu.h"
#include "launcher/probe/probe_abi.h"

namespace {

using fake::Accounts;
using fake::Contexts;
using fake::entered;
using fake::FakeGpu;
using fake::Function;
using fake::Size;
using fake::take_back;
using tbsched::cuda::ProbeArguments;

// A library has one, and is it here. Each context has a function of its own, by the context's
// number. A function outlives its context, so that whoever still uses it is told.
struct Kernel {
  int registers = 0;
  int local = 0;
  std::map<CUfunction_attribute, int> attributes;
  std::map<uint64_t, std::unique_ptr<Function>> functions;
};

// Stricter than a driver: the function's own context has to be current.
CUresult entered_context(const Function& function) {
  const Contexts& contexts = Contexts::get();
  if (!contexts.exists(function.context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const CUcontext current = contexts.current();
  const bool own = current != nullptr && contexts.number_of(current) == function.context;
  return own ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// The value behind an attribute header of .nv.info, found the simple way.
int property(const std::string& image, const char kind) {
  const std::string header{'\x04', kind, '\x08', '\x00'};
  const size_t place = image.find(header);
  int value = 0;
  if (place != std::string::npos) std::memcpy(&value, image.data() + place + 8, sizeof(value));
  return value;
}

std::string image_text(const void* const image) {
  // The size of an ELF image is what its last header table says: enough for a look at .nv.info.
  const auto* const bytes = static_cast<const char*>(image);
  uint64_t section_headers = 0;
  std::memcpy(&section_headers, bytes + 40, sizeof(section_headers));
  return {bytes, section_headers};
}

}  // namespace

fake::Function& fake::function_of(CUkernel handle, CUcontext context) {
  const Contexts& contexts = Contexts::get();
  auto& kernel = *reinterpret_cast<Kernel*>(handle);
  auto& found = kernel.functions[contexts.number_of(context)];
  if (!found) {
    found = std::make_unique<Function>(Function{.registers = kernel.registers,
                                                .local = kernel.local,
                                                .context = contexts.number_of(context),
                                                .sms = contexts.sms_of(context),
                                                .attributes = &kernel.attributes});
    FakeGpu::get().count("functions");
  }
  return *found;
}

extern "C" {

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const std::string text = image_text(image);
  auto kernel = std::make_unique<Kernel>();
  kernel->registers = property(text, '\x2f');
  kernel->local = property(text, '\x11');
  FakeGpu::get().count("libraries");
  *library = reinterpret_cast<CUlibrary>(kernel.release());
  Accounts::get().give("libraries", *library);
  return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary library) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const std::unique_ptr<Kernel> owned(reinterpret_cast<Kernel*>(library));
  return take_back("libraries", library, true);
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  if (std::string(name) != tbsched::cuda::kProbeName) return CUDA_ERROR_NOT_FOUND;
  *kernel = reinterpret_cast<CUkernel>(library);
  return CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction* function, CUkernel handle) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const CUcontext current = Contexts::get().current();
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *function = reinterpret_cast<CUfunction>(&fake::function_of(handle, current));
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction handle) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const auto& function = *reinterpret_cast<Function*>(handle);
  if (const CUresult error = entered_context(function); error != CUDA_SUCCESS) return error;
  if (which == CU_FUNC_ATTRIBUTE_NUM_REGS) *value = function.registers;
  if (which == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) *value = function.local;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute which, int value) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  auto& function = *reinterpret_cast<Function*>(handle);
  if (const CUresult error = entered_context(function); error != CUDA_SUCCESS) return error;
  (*function.attributes)[which] = value;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, CUfunction handle, int threads,
                                                     size_t shared) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const auto& function = *reinterpret_cast<Function*>(handle);
  if (const CUresult error = entered_context(function); error != CUDA_SUCCESS) return error;
  if (!function.allows(shared)) return CUDA_ERROR_INVALID_VALUE;
  const Size block = fake::size_of_block(function, threads, static_cast<int>(shared));
  Size sm;
  for (*count = 0; sm.with_fits(block); ++*count) sm.add(block, 1);
  return CUDA_SUCCESS;
}
// As many as the SMs of the stream.
CUresult cuOccupancyMaxActiveClusters(int* count, CUfunction handle, const CUlaunchConfig* config) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const auto& function = *reinterpret_cast<Function*>(handle);
  if (const CUresult error = entered_context(function); error != CUDA_SUCCESS) return error;
  const CUlaunchAttribute* const cluster =
      fake::attribute_of(*config, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  if (cluster == nullptr || cluster->value.clusterDim.x <= 1) return CUDA_ERROR_INVALID_VALUE;
  *count = FakeGpu::get().sms_of(config->hStream);
  const bool fits = cluster->value.clusterDim.x <= 2U * static_cast<unsigned>(*count);
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction handle, void** arguments,
                          void**) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const auto& function = *reinterpret_cast<Function*>(handle);
  if (const CUresult error = entered_context(function); error != CUDA_SUCCESS) return error;
  return FakeGpu::get().launch(function, *config,
                               *static_cast<const ProbeArguments*>(arguments[0]));
}

}  // extern "C"
