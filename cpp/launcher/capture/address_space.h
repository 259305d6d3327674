// Which addresses of this process are memory of the host.
#pragma once

#include <cstdint>
#include <vector>

namespace tbsched::capture {

// Reads the memory map of this process when it is asked first, and keeps it until forget(). Memory
// of a GPU has addresses that the host cannot read.
class AddressSpace {
 public:
  // kOther: no memory that the host can read; kManaged: cudaMallocManaged.
  enum class Kind : uint8_t { kOther, kHost, kManaged };

  // Returns the kind of memory that an address is in.
  Kind kind_of(uint64_t address);

  // Forgets the memory map, so that the next kind_of() reads it again.
  void forget() { ranges_.clear(); }

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
    Kind kind;
  };

  // Reads the readable ranges from /proc/self/maps.
  void read_ranges();

  std::vector<Range> ranges_;  // by ascending address; empty: not read
};

}  // namespace tbsched::capture
