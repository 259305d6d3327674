#include "launcher/capture/modules.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tbsched::capture {
namespace {

// CUPTI reports this many registers for a kernel that needs fewer.
constexpr int32_t kMinReportedRegisters = 16;
// Code is kept of kernels up to a size, and up to a sum over kernels: it says what a kernel may
// wait for.
constexpr size_t kMaxCodeBytes = 64 << 10;
constexpr size_t kMaxCodeBytesOfAll = 64 << 20;

}  // namespace

bool are_alike(const Kernel& one, const Kernel& other) {
  return one.usage.registers == other.usage.registers &&
         one.usage.static_shared_memory == other.usage.static_shared_memory &&
         one.usage.local_memory == other.usage.local_memory &&
         one.usage.cluster == other.usage.cluster &&
         one.usage.parameters_at == other.usage.parameters_at &&
         one.usage.parameters == other.usage.parameters && one.code == other.code;
}

void Modules::add(const std::span<const std::byte> cubin) {
  try {
    std::vector<cuda::KernelUsage> kernels = cuda::usage(cubin);
    const std::lock_guard lock(mutex_);
    for (cuda::KernelUsage& usage : kernels) {
      const auto code = cubin.subspan(usage.code_at, usage.code_size);
      const bool keeps_code = code.size() <= kMaxCodeBytes;
      add({std::move(usage),
           keeps_code ? std::vector(code.begin(), code.end()) : std::vector<std::byte>()});
    }
  } catch (const std::invalid_argument&) {
    return;  // it has no kernels, or its format is another
  }
}

void Modules::add(Kernel kernel) {
  auto& named = kernels_[kernel.usage.name];
  const auto is_known = [&](const auto& each) { return are_alike(*each, kernel); };
  if (code_bytes_ + kernel.code.size() > kMaxCodeBytesOfAll &&
      std::ranges::none_of(named, is_known)) {
    kernel.code.clear();
  }
  const auto known = std::ranges::find_if(named, is_known);
  if (known != named.end()) {
    std::rotate(known, known + 1, named.end());  // it was loaded last
    return;
  }
  code_bytes_ += kernel.code.size();
  named.push_back(std::make_unique<const Kernel>(std::move(kernel)));
}

std::vector<const Kernel*> Modules::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<const Kernel*> all;
  const auto named = kernels_.find(name);
  if (named == kernels_.end()) return all;
  for (const auto& each : named->second) all.push_back(each.get());
  return all;
}

const Kernel* Modules::only(const std::string& name) const {
  const std::vector<const Kernel*> named = find(name);
  const auto is_alike = [&](const Kernel* const each) { return are_alike(*each, *named.back()); };
  return !named.empty() && std::ranges::all_of(named, is_alike) ? named.back() : nullptr;
}

std::optional<int32_t> Modules::local_memory(const std::string& name, const int32_t registers,
                                             const int32_t static_shared_memory) const {
  for (const Kernel* const each : find(name)) {
    const cuda::KernelUsage& usage = each->usage;
    if (std::max(usage.registers, kMinReportedRegisters) == registers &&
        usage.static_shared_memory == static_shared_memory) {
      return usage.local_memory;
    }
  }
  return knows_all_ ? std::optional(0) : std::nullopt;
}

}  // namespace tbsched::capture
