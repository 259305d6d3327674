// Kernels of loaded modules: their resources, as far as CUPTI's records lack them, and their code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "launcher/probe/cubin.h"

namespace tbsched::capture {

// A kernel of a module.
struct Kernel {
  cuda::KernelUsage usage;
  std::vector<std::byte> code;  // empty: too large to be kept
};

// Returns whether two kernels of the same name have the same resources, parameters and code.
bool are_alike(const Kernel& one, const Kernel& other);

// Kernels of all modules that were loaded. They are kept for ever: a launch may be noted long after
// its module was unloaded. Of kernels that are alike one is kept: a program may load a module again
// and again. Thread-safe.
class Modules {
 public:
  // `all`: every module of the process will be added.
  explicit Modules(const bool all) : knows_all_(all) {}

  // Adds the kernels of a module that is loaded; none if its format is unknown.
  void add(std::span<const std::byte> cubin);

  // Returns the kernels of a name in the order in which they were last loaded.
  std::vector<const Kernel*> find(const std::string& name) const;

  // Returns the kernel of a name; null: there is none, or there are several that are not alike.
  const Kernel* only(const std::string& name) const;

  // Returns the bytes of local memory that a thread of a kernel has; none: unknown. CUPTI's numbers
  // of registers and bytes distinguish kernels of the same name.
  std::optional<int32_t> local_memory(const std::string& name, int32_t registers,
                                      int32_t static_shared_memory) const;

 private:
  // Adds a kernel, or notes that one like it was loaded again. mutex_ is held.
  void add(Kernel kernel);

  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::vector<std::unique_ptr<const Kernel>>> kernels_;  // by name
  size_t code_bytes_ = 0;  // of all kernels
  const bool knows_all_;   // a kernel that is not found has no local memory
};

}  // namespace tbsched::capture
