// What launches take of one SM, or of one TPC, and what is left for another one: in every way in
// which blocks of outsiders may have left before.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tbsched/engine/together/gpcs/one_sm.h"
#include "tbsched/engine/together/gpcs/places.h"

namespace tbsched {

constexpr size_t kMostComing = 4;  // launches before the last one
using BlocksOfEach = std::array<int16_t, kMostComing>;
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

// Launches that come and find room, one after the other, and one that comes last.
struct Asked {
  std::vector<int32_t> coming;
  std::vector<PlaceRange> places;  // where the last place of each is
  int32_t last = -1;
  // Of the coming launches that of which the places at the last level are looked at one by one; or
  // none.
  int32_t exact = -1;
  std::vector<int32_t> leaving;    // launches that are there, of which any blocks may leave
  bool leave_before_last = false;  // else that only gives the last one room

  // Then it is known what each launch takes of each SM, and more looks are worth it.
  bool is_one_place() const {
    return std::ranges::all_of(places,
                               [](const PlaceRange& range) { return range.first == range.last; });
  }
};

// A block that left.
struct Gone {
  int16_t before;  // which of the launches that come
  int16_t sm;      // of the share
  int16_t launch;
  int16_t number;  // among those of the launch on that SM
};

struct Share {
  BlocksOfEach blocks = {};  // of each that comes
  // Of clusters: places before its last level that it did not take; of whole TPCs, 1 if any.
  BlocksOfEach missing = {};
  int16_t room = 0;  // for the last
  // Of the exact launch: places before the last level, at that level, and those that it took.
  int16_t before = 0;
  int16_t at = 0;
  int16_t taken = 0;

  auto operator<=>(const Share&) const = default;
};

// Each with one way to get there.
using Shares = std::map<Share, std::vector<Gone>>;

// Of an SM of a share: whether it takes blocks of each that comes, and of the last.
struct ShareOfSm {
  int32_t sm;
  const OneSm* state;
  std::vector<bool> takes;
};

// Of one SM, or of those of a TPC. Throws TooManyWays, GapsMatter.
Shares shares(const LaunchPlaces& places, const Asked& asked, std::span<const ShareOfSm> sms,
              Effort& effort);

}  // namespace tbsched
