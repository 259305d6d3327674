// Functions and handles of the driver that this process has loaded. None of them is linked.
#pragma once

#include <dlfcn.h>

#include <cstdint>

namespace tbsched::capture {

// Returns a function of the driver by its name; null: the driver is not loaded, or has none.
template <typename Function>
Function driver_function(const char* const name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver != nullptr ? reinterpret_cast<Function>(dlsym(driver, name)) : nullptr;
}

// Returns the bits of a handle of the driver.
template <typename Handle>
uint64_t handle_value(const Handle handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

}  // namespace tbsched::capture
