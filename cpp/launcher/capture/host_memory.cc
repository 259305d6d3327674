#include "launcher/capture/host_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

namespace tbsched::capture {
namespace {

constexpr size_t kMaxAddresses = 1024;  // that are watched
constexpr size_t kMaxBytes = 1024;  // compared from each address on, but not beyond the next one

// A pipe. The operating system copies memory into it, and fails where a read of ours would crash.
struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) ends = {-1, -1};
  }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  std::array<int, 2> ends{-1, -1};
};

// Copies at most `wanted` bytes at an address into a pipe. Returns how many could be read; 0 or
// less: none.
ssize_t copy_into_pipe(const Pipe& pipe, const uint64_t address, const size_t wanted) {
  // The program may free the memory at any time, so nothing here may dereference the address.
  const auto* const from = reinterpret_cast<const void*>(address);
  const ssize_t written = write(pipe.ends[1], from, wanted);
  if (written >= 0 || errno != EFAULT) return written;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return write(pipe.ends[1], from, std::min(wanted, page - address % page));
}

}  // namespace

void HostMemory::watch(const uint64_t address) {
  if (watched_.size() < kMaxAddresses) watched_.try_emplace(address);
}

std::vector<int64_t> HostMemory::compare() {
  std::vector<int64_t> changed;
  if (!watched_.empty()) {
    // No longer than this call: a program may close descriptors that it does not know.
    const Pipe pipe;
    for (auto each = watched_.begin(); each != watched_.end(); ++each) {
      auto& [address, now] = *each;
      const auto next = std::next(each);
      const size_t until_next = next == watched_.end() ? kMaxBytes : next->first - address;
      std::array<char, kMaxBytes> bytes;
      if (copy_into_pipe(pipe, address, std::min(kMaxBytes, until_next)) <= 0) continue;
      const ssize_t size = read(pipe.ends[0], bytes.data(), bytes.size());
      if (size <= 0) continue;
      now.bytes = static_cast<size_t>(size);
      now.hash = std::hash<std::string_view>()({bytes.data(), now.bytes});
      const auto earlier = before_.find(address);
      if (earlier != before_.end() && earlier->second.bytes == now.bytes &&
          earlier->second.hash != now.hash) {
        changed.push_back(static_cast<int64_t>(address));
      }
    }
  }
  before_ = std::exchange(watched_, {});
  return changed;
}

}  // namespace tbsched::capture
