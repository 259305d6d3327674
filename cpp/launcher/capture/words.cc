#include "launcher/capture/words.h"

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

}  // namespace

size_t add_words(std::vector<Word>& words, const Function& function, const Shape& shape) {
  if (function.kernel == nullptr) return 0;
  const size_t before = words.size();
  size_t index = 0;
  for (const cuda::Parameter& each : function.kernel->usage.parameters) {
    const std::byte* const bytes = argument_of(shape, each, index++);
    if (bytes == nullptr) continue;
    for (uint32_t at = (8 - each.offset % 8) % 8; at + 8 <= each.size; at += 8) {
      if (words.size() - before == kMaxWords) return kMaxWords;
      Word word{each.offset + at, 0};
      std::memcpy(&word.value, bytes + at, sizeof word.value);
      words.push_back(word);
    }
  }
  return words.size() - before;
}

}  // namespace tbsched::capture
