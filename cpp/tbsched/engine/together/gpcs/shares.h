// What launches take of one SM, or of one TPC, and what is left for another one: in every way in
// which blocks of outsiders may have left before.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "tbsched/engine/together/gpcs/effort.h"
#include "tbsched/engine/together/gpcs/places.h"
#include "tbsched/engine/together/gpcs/sm_states.h"

namespace tbsched {

constexpr size_t kMostComing = 4;  // launches before the last one, the one that waits included
using BlocksOfEach = std::array<int16_t, kMostComing>;

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
  // A launch that is there, and of which so many blocks wait: they come where others have left. Or
  // none. It is counted behind those that come.
  int32_t waiting = -1;
  int32_t most_enter = 0;
  int32_t enter_together = 1;  // a cluster

  // Then it is known what each launch takes of each SM, and more looks are worth it.
  bool is_one_place() const {
    return std::ranges::all_of(places,
                               [](const PlaceRange& range) { return range.first == range.last; });
  }
};

// What happened on an SM: a block left; one that waited came; or blocks of a launch did.
struct Act {
  enum class What : uint8_t { leaves, enters, comes };
  What what;
  int16_t before;  // which of the launches that come
  int16_t sm;      // of the share
  int16_t launch;
  int16_t which;  // see Move; of blocks that come, how many
};

// Levels.
constexpr int16_t kNoneLeft = std::numeric_limits<int16_t>::max();
constexpr int16_t kNoneTaken = -1;

struct Share {
  BlocksOfEach blocks = {};  // of each that comes
  // Of clusters: places before its last level that it did not take; of whole TPCs, 1 if any.
  BlocksOfEach missing = {};
  // Of the exact launch: places before the last level, at that level, and those that it took.
  int16_t before = 0;
  int16_t at = 0;
  int16_t taken = 0;
  // The levels of the first place that was left, and of the last one that was taken; whether a
  // TPC was idle and is taken, and whether it has the room of an idle one and is not.
  int16_t first_left = kNoneLeft;
  int16_t last_taken = kNoneTaken;
  bool takes_idle = false;
  bool is_like_idle = false;

  auto operator<=>(const Share&) const = default;
};

// The least room for the last launch, and a way to get there.
struct LeastRoom {
  int32_t room;
  std::vector<Act> acts;
};
using Shares = std::map<Share, LeastRoom>;

// Of an SM of a share: whether it takes blocks of each that comes, of the last, and of the one that
// waits.
struct ShareOfSm {
  int32_t sm;
  int32_t state;
  bool is_quiet;  // nothing enters before something comes
  std::vector<bool> takes;
};

// Of one SM, or of those of a TPC. Throws TooManyWays, GapsMatter.
Shares shares(const LaunchPlaces& places, const Asked& asked, std::span<const ShareOfSm> sms,
              SmStates& known, Effort& effort);

}  // namespace tbsched
