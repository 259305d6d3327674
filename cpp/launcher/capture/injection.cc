// Entry points: the CUDA driver calls one where CUDA_INJECTION64_PATH names this library; Python
// calls the others to capture its own process.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "launcher/capture/session.h"

namespace {

using tbsched::capture::start;
using tbsched::capture::stop;

constexpr size_t kMostText = 1024;

// Returns whether `action` succeeded. If not, writes at most `size` characters of the reason to
// `why`.
template <typename Action>
int attempt(char* const why, const size_t size, const Action& action) {
  try {
    action();
    return 1;
  } catch (const std::exception& error) {
    std::snprintf(why, size, "%s", error.what());
    return 0;
  }
}

constexpr char kInjection[] = "CUDA_INJECTION64_PATH";

// A debugger that attaches is loaded by the driver as this library was: the driver takes the path
// of the variable, if it is set, and so calls this library once more. Hands the call on, and makes
// way for the next one.
int load_debugger() {
  unsetenv(kInjection);
  void* const debugger = dlopen("libcudadebugger.so.1", RTLD_NOW);
  if (debugger == nullptr) return 1;
  using Initialize = int (*)();
  const auto initialize = reinterpret_cast<Initialize>(dlsym(debugger, "InitializeInjection"));
  return initialize != nullptr ? initialize() : 1;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int tbsched_capture_start(const char* const path, char* const text,
                                                         const size_t size) {
  return attempt(text, size, [&] { std::snprintf(text, size, "%s", start(path, false).c_str()); });
}

[[gnu::visibility("default")]] int tbsched_capture_stop(char* const text, const size_t size) {
  return attempt(text, size, [] { stop(true); });
}

// Never fails: the program must run on, captured or not.
[[gnu::visibility("default")]] int InitializeInjection() {
  static std::atomic<int> calls = 0;
  if (calls++ > 0) return load_debugger();
  const char* const path = std::getenv("TBSCHED_CAPTURE");
  if (path == nullptr || *path == '\0') return 1;
  char why[kMostText];
  if (attempt(why, sizeof why, [&] { start(path, true); }) == 0) {
    std::fprintf(stderr, "tbsched capture: %s; the program runs uncaptured\n", why);
    return 1;
  }
  std::atexit([] {
    char late[kMostText];
    if (attempt(late, sizeof late, [] { stop(false); }) == 0) {
      std::fprintf(stderr, "tbsched capture: %s; its end is not captured\n", late);
    }
  });
  return 1;
}
}
