#include "launcher/capture/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace tbsched::capture {
namespace {

// Returns the path for this process where `path` exists: "run.42.jsonl" for "run.jsonl" and process
// 42, or "run.42-2.jsonl" at the second attempt.
std::string path_of_process(const std::string& path, const int attempt) {
  const size_t folder = path.rfind('/') + 1;  // npos + 1 is 0
  size_t ending = path.rfind('.');
  if (ending == std::string::npos || ending <= folder) ending = path.size();
  const std::string number = attempt > 1 ? "-" + std::to_string(attempt) : "";
  return path.substr(0, ending) + "." + std::to_string(getpid()) + number + path.substr(ending);
}

}  // namespace

Output::Output(std::string path, const int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

Output::~Output() {
  if (descriptor_ >= 0) close(descriptor_);
}

Output Output::open(const std::string& path) {
  constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC;
  constexpr int mode = 0666;
  constexpr int max_attempts = 1000;
  std::string candidate = path;
  int descriptor = ::open(candidate.c_str(), flags, mode);
  for (int attempt = 1; descriptor < 0 && errno == EEXIST && attempt < max_attempts; ++attempt) {
    candidate = path_of_process(path, attempt);
    descriptor = ::open(candidate.c_str(), flags, mode);
  }
  if (descriptor < 0) {
    throw std::runtime_error(candidate + ": cannot be written: " + std::strerror(errno));
  }
  return Output(std::move(candidate), descriptor);
}

void Output::write(std::string_view lines) {
  while (descriptor_ >= 0 && !lines.empty()) {
    const ssize_t written = ::write(descriptor_, lines.data(), lines.size());
    if (written >= 0) {
      lines.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      std::fprintf(stderr, "tbsched capture: %s: %s; the rest is not captured\n", path_.c_str(),
                   std::strerror(errno));
      close(std::exchange(descriptor_, -1));
    }
  }
}

}  // namespace tbsched::capture
