// The driver that this process has loaded: its functions, of which none is linked, and handles.
#pragma once

#include <dlfcn.h>

#include <cstdint>

namespace tbsched::capture {

// Returns a function of the driver; null: it has none of that name.
template <typename Function>
Function driver_function(const char* const name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver != nullptr ? reinterpret_cast<Function>(dlsym(driver, name)) : nullptr;
}

template <typename Handle>
uint64_t number(const Handle handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

}  // namespace tbsched::capture
