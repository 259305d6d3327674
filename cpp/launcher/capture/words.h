// Words of a launch's arguments: of 8 bytes, which may be addresses, and smaller numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "launcher/capture/launched.h"
#include "launcher/capture/operations.h"

namespace tbsched::capture {

struct Word {
  uint32_t offset;  // bytes from the first argument
  uint32_t size;    // bytes: 8, 4, 2 or 1
  uint64_t value;   // of a smaller number without its sign

  bool may_be_address() const { return size == sizeof value; }
};

// Adds the aligned words of a launch's arguments, the largest possible and at most 64. Returns how
// many; 0 also if its kernel is unknown.
size_t add_words(std::vector<Word>& words, const Function& function, const Shape& shape);

}  // namespace tbsched::capture
