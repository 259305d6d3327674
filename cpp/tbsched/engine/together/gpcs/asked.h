// What is asked of the GPCs: launches come, one after the other, and then a last one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tbsched/engine/together/gpcs/places.h"

namespace tbsched {

// Of the launches that come before the last one, and of those of which blocks wait at first.
constexpr size_t kMostCounted = 5;
using BlocksOfEach = std::array<int16_t, kMostCounted>;
constexpr size_t kMostExact = 3;                // launches, see Asked::exact
constexpr int64_t kManyPlaces = 1'000'000'000;  // no more are counted

// A launch comes, and finds room. One that waits finds too little: it takes all that there is, and
// the rest of its blocks comes where others leave.
struct Comer {
  int32_t launch;
  bool waits = false;

  auto operator<=>(const Comer&) const = default;
};

// Blocks that wait, and may enter where others leave.
struct Entering {
  int32_t launch;
  int32_t most;      // blocks of it
  int32_t together;  // of a cluster
  int32_t on_tpc;    // of a cluster that takes whole TPCs, blocks on one; else 1
  size_t from;       // not before this one of those that come is there
  size_t place;      // in BlocksOfEach: its own, or that of the comer

  bool in_tpcs() const { return on_tpc > 1; }
  // Of a cluster that takes whole TPCs no more than one block is on an SM.
  int32_t most_on_sm() const { return in_tpcs() ? most / together : most; }
};

struct Asked {
  std::vector<Comer> coming;
  std::vector<PlaceRange> places;  // where the last place of each is
  int32_t last = -1;
  std::vector<int32_t> leaving;    // launches of which any blocks may leave
  bool leave_before_last = false;  // else that only gives the last one room
  std::vector<Entering> entering;
  // Stages of launches of clusters of which it is looked at how they took the places up to a level.
  std::vector<size_t> exact;

  // Which of the exact launches comes at a stage; or none.
  std::optional<size_t> exact_at(const size_t stage) const {
    const auto found = std::ranges::find(exact, stage);
    if (found == exact.end()) return std::nullopt;
    return static_cast<size_t>(found - exact.begin());
  }
  bool is_last(const size_t stage) const { return stage == coming.size(); }
  int32_t launch_at(const size_t stage) const {
    return is_last(stage) ? last : coming[stage].launch;
  }
  int64_t count_places() const {
    int64_t found = 1;
    for (const auto& [first, last] : places) {
      found = std::min(found * (last - first + 1), kManyPlaces);
    }
    return found;
  }
  // Then it is known what each launch takes of each SM, and more looks are worth it.
  bool is_one_place() const {
    return std::ranges::all_of(places,
                               [](const PlaceRange& range) { return range.first == range.last; });
  }
};

}  // namespace tbsched
