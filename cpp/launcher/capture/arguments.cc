#include "launcher/capture/arguments.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tbsched::capture {
namespace {

constexpr size_t kMaxArgumentBytes = 512;  // of a launch

// Returns the address of an argument of a launch; null: unknown.
const std::byte* argument_of(const Shape& shape, const cuda::Parameter& parameter,
                             const size_t index) {
  if (shape.arguments != nullptr) return static_cast<const std::byte*>(shape.arguments[index]);
  const bool has = shape.buffer.size() >= size_t{parameter.offset} + parameter.size;
  return has ? shape.buffer.data() + parameter.offset : nullptr;
}

// Copies an argument. A copy of a constant size takes an instruction, others take a call.
void copy(std::byte* const to, const std::byte* const from, const size_t size) {
  if (size == 8) {
    std::memcpy(to, from, 8);
  } else if (size == 4) {
    std::memcpy(to, from, 4);
  } else {
    std::memcpy(to, from, size);
  }
}

// Returns the bytes of the largest aligned word at an offset, of so many bytes that are left.
uint32_t size_of_word(const uint32_t offset, const uint32_t left) {
  constexpr uint32_t kLargest = sizeof(Word::value);
  const uint32_t alignment = uint32_t{1} << std::countr_zero(offset | kLargest);
  return std::min(alignment, std::bit_floor(left));
}

}  // namespace

size_t add_arguments(std::vector<std::byte>& bytes, const Function& function, const Shape& shape) {
  if (function.kernel == nullptr || function.kernel->usage.parameters.empty()) return 0;
  const std::vector<cuda::Parameter>& parameters = function.kernel->usage.parameters;
  const size_t before = bytes.size();
  const size_t size = std::min(kMaxArgumentBytes,
                               size_t{parameters.back().offset} + size_t{parameters.back().size});
  bytes.resize(before + size);
  std::byte* const to = bytes.data() + before;
  size_t index = 0;
  for (const cuda::Parameter& each : parameters) {
    const std::byte* const from = argument_of(shape, each, index++);
    if (each.offset >= size) break;
    if (from != nullptr)
      copy(to + each.offset, from, std::min<size_t>(each.size, size - each.offset));
  }
  return size;
}

std::vector<Word> words_of(const std::span<const std::byte> arguments,
                           const Function* const function) {
  std::vector<Word> words;
  if (function == nullptr || function->kernel == nullptr) return words;
  for (const cuda::Parameter& each : function->kernel->usage.parameters) {
    const size_t end = std::min(arguments.size(), size_t{each.offset} + each.size);
    for (uint32_t at = each.offset; at < end;) {
      Word word{at, size_of_word(at, static_cast<uint32_t>(end) - at), 0};
      std::memcpy(&word.value, arguments.data() + at, word.size);
      words.push_back(word);
      at += word.size;
    }
  }
  return words;
}

}  // namespace tbsched::capture
