// Entry points: the CUDA driver calls one where CUDA_INJECTION64_PATH names this library; Python
// calls the others to capture its own process.
#include <pthread.h>

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

const std::string& injected_path() {
  static const auto& kept = *new std::string([] {
    const char* const path = std::getenv(kInjection);
    return path != nullptr ? path : "";
  }());
  return kept;
}

// A debugger that attaches is loaded by the driver as this library was, and the driver would load
// this library again instead. Processes that this one forks have the variable again: they are
// captured, too.
void make_way_for_debuggers() {
  if (injected_path().empty()) return;
  unsetenv(kInjection);
  pthread_atfork(nullptr, nullptr, [] { setenv(kInjection, injected_path().c_str(), 1); });
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
  const char* const path = std::getenv("TBSCHED_CAPTURE");
  if (path == nullptr || *path == '\0') return 1;
  char why[kMostText];
  if (attempt(why, sizeof why, [&] { start(path, true); }) == 0) {
    std::fprintf(stderr, "tbsched capture: %s; the program runs uncaptured\n", why);
    return 1;
  }
  make_way_for_debuggers();
  std::atexit([] {
    char late[kMostText];
    if (attempt(late, sizeof late, [] { stop(false); }) == 0) {
      std::fprintf(stderr, "tbsched capture: %s; its end is not captured\n", late);
    }
  });
  return 1;
}
}
