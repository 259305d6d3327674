// Rounding to units of allocation.
#pragma once

#include <cstdint>

namespace tbsched {

constexpr int32_t ceil_div(const int32_t value, const int32_t unit) {
  return (value + unit - 1) / unit;
}
constexpr int32_t round_up(const int32_t value, const int32_t unit) {
  return ceil_div(value, unit) * unit;
}

}  // namespace tbsched
