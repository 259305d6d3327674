// The fields of schema/device.toml.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tbsched {

// How a memory is allocated: in one piece, in one piece that may wrap around the end, or in any
// pieces.
enum class Layout : uint8_t { contiguous, circular, pooled };
inline constexpr std::array<std::string_view, 3> kLayoutNames = {"contiguous", "circular",
                                                                 "pooled"};

struct Range {
  int64_t low;
  int64_t high;

  bool holds(const int64_t value) const { return low <= value && value <= high; }
};

struct Field {
  std::string_view section;  // of a device file; empty for fields that are not in it
  std::string_view name;
  Range range = {INT32_MIN, INT32_MAX};  // of a number, or of each in a list
  bool required = true;                  // a device file that extends nothing must name it
  bool as_ranges = false;                // a device file has rows of [start, stop, step]

  // Returns its key in device files, as "limits.warps_per_sm".
  std::string path() const { return std::string(section) + "." + std::string(name); }
  // Returns its name in C++ and Python, as "warps_per_sm" or "mechanisms.warp_skip".
  std::string label() const { return section == "mechanisms" ? path() : std::string(name); }
};

}  // namespace tbsched
