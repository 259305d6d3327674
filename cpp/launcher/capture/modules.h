// What the kernels of loaded modules use, of which CUPTI's records do not tell: local memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "launcher/probe/cubin.h"

namespace tbsched::capture {

// For any number of threads.
class Modules {
 public:
  // `all`: every module of the process is going to be added.
  explicit Modules(const bool all) : knows_all_(all) {}

  void add(std::span<const std::byte> cubin);

  // Bytes per thread. A name may be of several kernels: CUPTI's numbers tell which. None: unknown.
  std::optional<int32_t> local_memory(const std::string& name, int32_t registers,
                                      int32_t static_shared_memory) const;

 private:
  mutable std::mutex mutex_;
  // Those with local memory only: programs have many thousands without.
  std::unordered_map<std::string, std::vector<cuda::KernelUsage>> kernels_;
  const bool knows_all_;
};

}  // namespace tbsched::capture
