// Refusals of a caller's input. Both functions throw std::invalid_argument.
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

}  // namespace tbsched
