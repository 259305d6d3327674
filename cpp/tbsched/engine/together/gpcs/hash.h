// A hash of numbers, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tbsched {

class HashOfNumbers {
 public:
  explicit HashOfNumbers(const uint64_t first = 0) : found_(first) {}

  void add(const int32_t number) {
    found_ = (found_ ^ static_cast<uint32_t>(number)) * 0xD6E8FEB86659FD93U;
    found_ ^= found_ >> 32U;
  }
  template <typename Numbers>
  void add_all(const Numbers& numbers) {
    for (const auto number : numbers) add(number);
  }
  size_t value() const { return found_; }

 private:
  uint64_t found_;
};

// Of an array or a vector.
struct HashOfAll {
  template <typename Numbers>
  size_t operator()(const Numbers& numbers) const {
    HashOfNumbers hash;
    hash.add_all(numbers);
    return hash.value();
  }
};

}  // namespace tbsched
