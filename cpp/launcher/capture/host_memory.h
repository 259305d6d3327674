// Memory of the host to which unfinished kernels have addresses: whether it changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tbsched::capture {

// Compares what is there between two looks. Not thread-safe.
class HostMemory {
 public:
  HostMemory();
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // The next look is at this address, too; of very many, at the first ones.
  void watch(uint64_t address);

  // Returns the addresses behind which something has changed since the look before. It forgets
  // those that were not watched since.
  std::vector<int64_t> look();

 private:
  // Returns a number that tells what is there from something else; 0: it cannot be read.
  size_t content(uint64_t address, size_t bytes_until_next) const;

  std::map<uint64_t, size_t> before_;
  std::map<uint64_t, size_t> watched_;
  // The kernel copies memory through this pipe, and fails where a read of ours would crash.
  int reads_ = -1;
  int writes_ = -1;
};

}  // namespace tbsched::capture
