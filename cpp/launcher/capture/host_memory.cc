#include "launcher/capture/host_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

namespace tbsched::capture {
namespace {

constexpr size_t kMost = 1024;   // addresses
constexpr size_t kBytes = 1024;  // from each address on, but not beyond the next one

}  // namespace

HostMemory::HostMemory() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  reads_ = ends[0];
  writes_ = ends[1];
}

HostMemory::~HostMemory() {
  if (reads_ < 0) return;
  close(reads_);
  close(writes_);
}

void HostMemory::watch(const uint64_t address) {
  if (watched_.size() < kMost) watched_.try_emplace(address, 0);
}

std::vector<int64_t> HostMemory::look() {
  std::vector<int64_t> changed;
  for (auto each = watched_.begin(); each != watched_.end(); ++each) {
    auto& [address, now] = *each;
    const auto next = std::next(each);
    now = content(address, next == watched_.end() ? kBytes : next->first - address);
    const auto earlier = before_.find(address);
    if (now != 0 && earlier != before_.end() && earlier->second != 0 && earlier->second != now) {
      changed.push_back(static_cast<int64_t>(address));
    }
  }
  before_ = std::exchange(watched_, {});
  return changed;
}

size_t HostMemory::content(const uint64_t address, const size_t bytes_until_next) const {
  std::array<char, kBytes> bytes;
  const size_t wanted = std::min(kBytes, bytes_until_next);
  // The program may free the memory at any time, so nothing here may dereference the address.
  const ssize_t written = write(writes_, reinterpret_cast<const void*>(address), wanted);
  if (written <= 0) return 0;
  const ssize_t size = read(reads_, bytes.data(), bytes.size());
  if (size <= 0) return 0;
  return std::hash<std::string_view>()({bytes.data(), static_cast<size_t>(size)}) | 1;
}

}  // namespace tbsched::capture
