#include "launcher/capture/words.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tbsched::capture {
namespace {

constexpr size_t kMaxWords = 64;  // of a launch

// Returns the address of an argument of a launch; null: unknown.
const std::byte* argument_of(const Shape& shape, const cuda::Parameter& parameter,
                             const size_t index) {
  if (shape.arguments != nullptr) return static_cast<const std::byte*>(shape.arguments[index]);
  const bool has = shape.buffer.size() >= size_t{parameter.offset} + parameter.size;
  return has ? shape.buffer.data() + parameter.offset : nullptr;
}

// Returns the bytes of the largest aligned word at an offset, of so many bytes that are left.
uint32_t size_of_word(const uint32_t offset, const uint32_t left) {
  constexpr uint32_t kLargest = sizeof(Word::value);
  const uint32_t alignment = uint32_t{1} << std::countr_zero(offset | kLargest);
  return std::min(alignment, std::bit_floor(left));
}

}  // namespace

size_t add_words(std::vector<Word>& words, const Function& function, const Shape& shape) {
  if (function.kernel == nullptr) return 0;
  const size_t before = words.size();
  size_t index = 0;
  for (const cuda::Parameter& each : function.kernel->usage.parameters) {
    const std::byte* const bytes = argument_of(shape, each, index++);
    if (bytes == nullptr) continue;
    for (uint32_t at = 0; at < each.size;) {
      if (words.size() - before == kMaxWords) return kMaxWords;
      Word word{each.offset + at, size_of_word(each.offset + at, each.size - at), 0};
      std::memcpy(&word.value, bytes + at, word.size);
      words.push_back(word);
      at += word.size;
    }
  }
  return words.size() - before;
}

}  // namespace tbsched::capture
