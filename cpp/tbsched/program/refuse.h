// Refusals of a caller's input. All functions throw std::invalid_argument.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tbsched {

[[noreturn]] inline void refuse(const std::string& message) {
  throw std::invalid_argument(message);
}
[[noreturn]] inline void refuse(const int32_t launch, const std::string& what) {
  refuse("launch " + std::to_string(launch) + ": " + what);
}

// A field of an input, its value, and the least and the greatest that it may have.
struct Bounded {
  const char* field;
  int64_t value;
  int64_t low;
  int64_t high;

  bool holds() const { return low <= value && value <= high; }
  std::string words() const {
    return std::string(field) + ": " + std::to_string(value) + " is outside " +
           std::to_string(low) + ".." + std::to_string(high);
  }
};

}  // namespace tbsched
