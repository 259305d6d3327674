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

constexpr size_t kMaxTextBytes = 1024;

// Calls `action`. Returns 1; or, if it throws, 0, and writes at most `size` characters of the
// reason to `why`.
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

constexpr char kInjectionVariable[] = "CUDA_INJECTION64_PATH";

// Hands a debugger's injection on to the debugger's library. A debugger that attaches is loaded by
// the driver as this library was: the driver takes the path of the variable, if it is set, and so
// calls this library once more. Unsets the variable for the next one. Returns what the debugger
// returns; 1 if it cannot be loaded.
int load_debugger() {
  unsetenv(kInjectionVariable);
  void* const debugger = dlopen("libcudadebugger.so.1", RTLD_NOW);
  if (debugger == nullptr) return 1;
  using Initialize = int (*)();
  const auto initialize = reinterpret_cast<Initialize>(dlsym(debugger, "InitializeInjection"));
  return initialize != nullptr ? initialize() : 1;
}

}  // namespace

extern "C" {

// Starts a capture into `path`. Returns 1 and writes the path of the file to `text`; or 0 and the
// reason.
[[gnu::visibility("default")]] int tbsched_capture_start(const char* const path, char* const text,
                                                         const size_t size) {
  return attempt(text, size, [&] { std::snprintf(text, size, "%s", start(path, false).c_str()); });
}

// Waits for the GPU and ends the capture. Returns 1; or 0 and writes the reason to `text`.
[[gnu::visibility("default")]] int tbsched_capture_stop(char* const text, const size_t size) {
  return attempt(text, size, [] { stop(true); });
}

// Starts a capture into the file that TBSCHED_CAPTURE names, which ends with the process. Never
// fails: the program must run on, captured or not.
[[gnu::visibility("default")]] int InitializeInjection() {
  static std::atomic<int> calls = 0;
  if (calls++ > 0) return load_debugger();
  const char* const path = std::getenv("TBSCHED_CAPTURE");
  if (path == nullptr || *path == '\0') return 1;
  char why[kMaxTextBytes];
  if (attempt(why, sizeof why, [&] { start(path, true); }) == 0) {
    std::fprintf(stderr, "tbsched capture: %s; the program runs uncaptured\n", why);
    return 1;
  }
  std::atexit([] {
    char late[kMaxTextBytes];
    if (attempt(late, sizeof late, [] { stop(false); }) == 0) {
      std::fprintf(stderr, "tbsched capture: %s; its end is not captured\n", late);
    }
  });
  return 1;
}
}
