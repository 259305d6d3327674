// Arguments of launches, as bytes and as words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "launcher/capture/launched.h"
#include "launcher/capture/operations.h"

namespace tbsched::capture {

// A word of a launch's arguments: of 8 bytes, which may be an address, or a smaller number.
struct Word {
  uint32_t offset;  // bytes from the first argument
  uint32_t size;    // bytes: 8, 4, 2 or 1
  uint64_t value;   // of a smaller number without its sign

  bool may_be_address() const { return size == sizeof value; }
};

// Adds the first 512 bytes of a launch's arguments, at their offsets; zeros where none is given.
// Returns how many bytes; 0 if its kernel is unknown. It is called at each launch.
size_t add_arguments(std::vector<std::byte>& bytes, const Function& function, const Shape& shape);

// Returns the aligned words, the largest possible, of what add_arguments() has added.
std::vector<Word> words_of(std::span<const std::byte> arguments, const Function* function);

}  // namespace tbsched::capture
