// Words of 8 bytes of a launch's arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "launcher/capture/launched.h"
#include "launcher/capture/operations.h"

namespace tbsched::capture {

struct Word {
  uint64_t offset;  // among the arguments
  uint64_t value;
};

// Adds those of a launch, if its kernel is known. Returns how many.
size_t add_words(std::vector<Word>& words, const Function& function, const Shape& shape);

}  // namespace tbsched::capture
