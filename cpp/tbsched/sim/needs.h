// What blocks need of the resources that they share, as measured. The kernel's code is not known.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tbsched {

// Resources of each SM.
constexpr std::array<std::string_view, 8> kInsideNames = {
    "issue", "logic", "multiply", "fp64", "special", "tensor", "shared", "requests"};
// Resources that all SMs share.
constexpr std::array<std::string_view, 2> kOutsideNames = {"l2", "dram"};
constexpr size_t kInside = kInsideNames.size();
constexpr size_t kResources = kInside + kOutsideNames.size();

using PerResource = std::array<double, kResources>;

// Needs of one block of a kernel.
struct Needs {
  // The part that the block uses of an SM's resource, or of an SM's even share of a common
  // resource.
  PerResource shares{};
  // The part of the block's time that depends on the resource and grows with its queue. For an SM's
  // resource this is without queues, for a common one with those at the measurement.
  PerResource waits{};
};

// How waits grow with use: at a use of u, to 1 + softness * u / (1 - u) times the wait without use.
struct Sharing {
  double softness = 0.3;
};

}  // namespace tbsched
