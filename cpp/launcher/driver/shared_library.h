// A library that is loaded when it is needed, so that a machine without it can still import us.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>

namespace tbsched::cuda {

// A library that is loaded at run time; false: it could not be loaded.
class SharedLibrary {
 public:
  explicit SharedLibrary(const char* const name)
      // Never unloaded: a driver keeps threads of its own.
      : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
    if (!handle_) error_ = last_error();
  }

  explicit operator bool() const { return handle_ != nullptr; }
  // Returns why the library could not be loaded; empty: it is loaded.
  const std::string& error() const { return error_; }

  // Returns a function of the library; nullptr: there is none of that name.
  template <typename Function>
  Function find(const char* const symbol) const {
    return handle_ ? reinterpret_cast<Function>(dlsym(handle_.get(), symbol)) : nullptr;
  }

 private:
  struct Close {
    void operator()(void* const handle) const { dlclose(handle); }
  };

  // Returns the loader's text for why it has failed.
  static std::string last_error() {
    const char* const text = dlerror();
    return text != nullptr ? text : "unknown error";
  }

  std::unique_ptr<void, Close> handle_;
  std::string error_;
};

}  // namespace tbsched::cuda
