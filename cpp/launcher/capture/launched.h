// Functions that the program launches, and their kernels.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "launcher/capture/modules.h"

namespace tbsched::capture {

// A function that is launched.
struct Function {
  std::string name;                           // as the linker has it
  const Kernel* kernel = nullptr;             // null: it is not loaded yet, or unknown
  std::atomic<uint64_t>* launches = nullptr;  // launches of the name so far

  auto operator<=>(const Function&) const = default;
};

// Functions by the driver's handles. A Function lives for ever. Thread-safe.
class LaunchedFunctions {
 public:
  explicit LaunchedFunctions(const Modules& modules) : modules_(modules) {}

  // Returns the function of a driver's handle. `symbol`: its name; null: none. `is_loaded`: the
  // driver may be asked which of several kernels of the same name it is.
  const Function& find(uint64_t handle, const char* symbol, bool is_loaded);

  // Forgets the handles, as modules were loaded or unloaded.
  void forget();
  // Returns how often handles were forgotten: what find() has returned holds for one generation.
  uint64_t generation() const { return generation_.load(std::memory_order_relaxed); }

 private:
  // Returns the kernel of a function; null: none has its name, or it is not known which of several.
  const Kernel* kernel_of(uint64_t handle, const std::string& name, bool is_loaded);

  const Modules& modules_;
  std::atomic<uint64_t> generation_ = 1;
  std::mutex mutex_;
  struct Found {
    const Function* function;
    bool was_loaded;
  };
  std::unordered_map<uint64_t, Found> found_;  // by handle
  std::set<Function> all_;                     // each once, however often handles are forgotten
  std::unordered_map<std::string, std::atomic<uint64_t>> launches_;  // by name
};

}  // namespace tbsched::capture
