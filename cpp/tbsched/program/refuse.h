// Refusals of a caller's input. All functions throw std::invalid_argument.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tbsched {

[[noreturn]] inline void refuse(const std::string& message) {
  throw std::invalid_argument(message);
}
[[noreturn]] inline void refuse(const int32_t launch_index, const std::string& what) {
  refuse("launch " + std::to_string(launch_index) + ": " + what);
}

// The value of an input's field, and the least and the greatest that it may have.
struct Bounded {
  const char* field;
  int64_t value;
  int64_t low;
  int64_t high;

  bool is_within() const { return low <= value && value <= high; }
  // Returns the message that the value is outside of its limits.
  std::string outside_words() const {
    return std::string(field) + ": " + std::to_string(value) + " is outside " +
           std::to_string(low) + ".." + std::to_string(high);
  }
};

}  // namespace tbsched
