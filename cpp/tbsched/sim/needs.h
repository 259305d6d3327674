// What blocks need of what SMs share: as measured, without knowing any kernel's code.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tbsched {

// Each SM has its own of these.
constexpr std::array<std::string_view, 8> kInsideNames = {
    "issue", "logic", "multiply", "fp64", "special", "tensor", "shared", "requests"};
// All SMs have these together.
constexpr std::array<std::string_view, 2> kOutsideNames = {"l2", "dram"};
constexpr size_t kInside = kInsideNames.size();
constexpr size_t kResources = kInside + kOutsideNames.size();

using PerResource = std::array<double, kResources>;

// Of one block of a kernel.
struct Needs {
  // The part of an SM's, or of an SM's even share of what all have together, that the block takes
  // up.
  PerResource shares{};
  // The part of its time that it has to do with the resource, which queues make longer. Of what an
  // SM has, that is without queues; of what all have together, with those that there were.
  PerResource waits{};
};

// How waits grow with use: where a part u is in use, to 1 + softness * u / (1 - u) of what they are
// without anybody.
struct Sharing {
  double softness = 0.3;
};

}  // namespace tbsched
