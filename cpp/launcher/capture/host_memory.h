// Whether the host changes memory to which unfinished kernels have addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tbsched::capture {

// Compares the contents of memory between two calls of compare(). Not thread-safe.
class HostMemory {
 public:
  // Lets the next compare() read the memory at this address; does nothing if very many are watched.
  void watch(uint64_t address);

  // Returns the watched addresses whose memory has changed since the previous compare(), and
  // watches none from now on.
  std::vector<int64_t> compare();

  // Forgets the contents: the next compare() finds no change.
  void forget() { before_.clear(); }

 private:
  struct Content {
    size_t bytes = 0;  // compared; 0: the memory cannot be read
    size_t hash = 0;
  };

  std::map<uint64_t, Content> before_;   // by address, in the previous compare()
  std::map<uint64_t, Content> watched_;  // by address
};

}  // namespace tbsched::capture
