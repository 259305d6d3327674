#include "launcher/capture/modules.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tbsched::capture {
namespace {

// CUPTI reports this many registers for a kernel that needs fewer.
constexpr int32_t kFewestRegisters = 16;

}  // namespace

void Modules::add(const std::span<const std::byte> cubin) {
  try {
    std::vector<cuda::KernelUsage> kernels = cuda::usage(cubin);
    const std::lock_guard lock(mutex_);
    for (const cuda::KernelUsage& kernel : kernels) {
      if (kernel.local_memory != 0) kernels_[kernel.name].push_back(kernel);
    }
    modules_.push_back(std::move(kernels));
  } catch (const std::invalid_argument&) {
    return;  // it has no kernels, or its format is another
  }
}

std::optional<cuda::KernelUsage> Modules::usage(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (auto module = modules_.rbegin(); module != modules_.rend(); ++module) {
    const auto found = std::ranges::find(*module, name, &cuda::KernelUsage::name);
    if (found != module->end()) return *found;
  }
  return std::nullopt;
}

std::optional<int32_t> Modules::local_memory(const std::string& name, const int32_t registers,
                                             const int32_t static_shared_memory) const {
  const std::lock_guard lock(mutex_);
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) return knows_all_ ? std::optional(0) : std::nullopt;
  const auto is_it = [&](const cuda::KernelUsage& each) {
    return std::max(each.registers, kFewestRegisters) == registers &&
           each.static_shared_memory == static_shared_memory;
  };
  const auto it = std::ranges::find_if(found->second, is_it);
  if (it != found->second.end()) return it->local_memory;
  return knows_all_ ? std::optional(0) : std::nullopt;
}

}  // namespace tbsched::capture
