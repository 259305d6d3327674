// What blocks need of what SMs share: as measured, without knowing any kernel's code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tbsched {

// Each SM has its own of these.
constexpr std::array<std::string_view, 8> kInsideNames = {"issue",   "logic",  "multiply", "fp64",
                                                          "special", "tensor", "shared",   "port"};
// All SMs have these together.
constexpr std::array<std::string_view, 2> kOutsideNames = {"l2", "dram"};
constexpr size_t kInside = kInsideNames.size();
constexpr size_t kResources = kInside + kOutsideNames.size();

using PerResource = std::array<double, kResources>;

// Of one block of a kernel.
struct Needs {
  // The part of an SM's, or of an SM's even share of what all have together, that the block takes
  // up while nothing slows it down.
  PerResource shares{};
  // How many of its requests wait at the same time: they all share a wait.
  double depth = 1;
};

// How waiting grows with use.
struct Sharing {
  double softness = 0.05;  // 0: nobody waits until a resource is used up
};

}  // namespace tbsched
