// Which addresses of this process are memory of the host.
#pragma once

#include <cstdint>
#include <vector>

namespace tbsched::capture {

// Read when it is asked first. Memory of a GPU has addresses that the host cannot read.
class AddressSpace {
 public:
  enum class Kind : uint8_t { kOther, kHost, kManaged };

  Kind kind_of(uint64_t address);

  // What is known is old: read again.
  void forget() { ranges_.clear(); }

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
    Kind kind;
  };

  void read();

  std::vector<Range> ranges_;  // ascending
};

}  // namespace tbsched::capture
