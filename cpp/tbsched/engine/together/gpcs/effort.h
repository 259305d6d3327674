// How much may be looked at before a proof gives up.
#pragma once

#include <cstdint>

namespace tbsched {

// There are too many ways to look at all.
struct TooManyWays {};

// How much may still be looked at, in about 100 ns each.
struct Effort {
  int64_t left;

  void spend(const int64_t looks) {
    left -= looks;
    if (left < 0) throw TooManyWays{};
  }
};

}  // namespace tbsched
