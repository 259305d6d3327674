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
  std::vector<std::byte> code;  // empty: it is not kept
};

// Returns whether launches of two kernels of the same name cannot be told apart.
bool are_alike(const Kernel& one, const Kernel& other);

// Keeps kernels for ever: a launch may be noted long after its module was unloaded. Keeps one of
// those that are alike: a program may load a module again and again. Thread-safe.
class Modules {
 public:
  // `all`: every module of the process is going to be added.
  explicit Modules(const bool all) : knows_all_(all) {}

  // Adds the kernels of a module that is loaded; none if its format is unknown.
  void add(std::span<const std::byte> cubin);

  // Returns the kernels of a name, that which was loaded last at the end.
  std::vector<const Kernel*> find(const std::string& name) const;

  // Returns the kernel of a name; null: there is none, or several that are not alike.
  const Kernel* only(const std::string& name) const;

  // Returns bytes per thread. Several kernels may have the name: CUPTI's numbers distinguish them.
  // None: unknown.
  std::optional<int32_t> local_memory(const std::string& name, int32_t registers,
                                      int32_t static_shared_memory) const;

 private:
  void add(Kernel kernel);

  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::vector<std::unique_ptr<const Kernel>>> kernels_;
  size_t code_bytes_ = 0;
  const bool knows_all_;
};

}  // namespace tbsched::capture
