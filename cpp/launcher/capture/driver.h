// Functions of the driver that this process has loaded; none is linked.
#pragma once

#include <dlfcn.h>

namespace tbsched::capture {

// Returns a function of the driver; null: it has none of that name.
template <typename Function>
Function driver_function(const char* const name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver != nullptr ? reinterpret_cast<Function>(dlsym(driver, name)) : nullptr;
}

}  // namespace tbsched::capture
