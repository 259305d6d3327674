// Words of 8 bytes of a launch's arguments: those that may be addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "launcher/capture/launched.h"
#include "launcher/capture/operations.h"

namespace tbsched::capture {

struct Word {
  uint64_t offset;  // bytes from the first argument
  uint64_t value;
};

// Adds the aligned words of a launch's arguments, at most 64. Returns how many; 0 also if its
// kernel is unknown.
size_t add_words(std::vector<Word>& words, const Function& function, const Shape& shape);

}  // namespace tbsched::capture
