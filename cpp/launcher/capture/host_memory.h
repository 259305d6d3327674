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
  // The next look is at this address, too; of very many, at the first ones.
  void watch(uint64_t address);

  // Returns the addresses behind which something has changed since the look before. It forgets
  // those that were not watched since.
  std::vector<int64_t> look();

  // Nothing is compared with earlier looks.
  void forget() { before_.clear(); }

 private:
  struct Content {
    size_t bytes = 0;  // that are compared; 0: they cannot be read
    size_t hash = 0;
  };

  std::map<uint64_t, Content> before_;
  std::map<uint64_t, Content> watched_;
};

}  // namespace tbsched::capture
