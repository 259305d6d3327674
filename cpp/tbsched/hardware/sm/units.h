// Rounding to units of allocation, and the duration of moving bytes.
#pragma once

#include <cstdint>

namespace tbsched {

// Returns the number of units that hold a value.
constexpr int32_t ceil_div(const int32_t value, const int32_t unit) {
  return (value + unit - 1) / unit;
}
// Returns the least multiple of a unit that is not less than the value.
constexpr int32_t round_up(const int32_t value, const int32_t unit) {
  return ceil_div(value, unit) * unit;
}

// Returns how many nanoseconds it takes to move bytes. `bandwidth`: bytes per microsecond; 0: not
// known, and moving takes no time.
constexpr int64_t move_ns(const int64_t bytes, const int64_t bandwidth) {
  return bandwidth == 0 ? 0 : bytes * 1000 / bandwidth;
}

}  // namespace tbsched
