// What launches can take of one GPC, and what is left there for another one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tbsched/engine/together/gpcs/places.h"
#include "tbsched/engine/together/gpcs/shares.h"

namespace tbsched {

// A GPC, or a TPC of none, which is a domain of clusters by itself.
struct Gpc {
  std::vector<const Shares*> shares;  // of its SMs, or TPCs, in order
  // In how many passes of the last level of the exact launch it takes part, if it has room.
  int32_t least_passes = 0;
  int32_t most_passes = 0;

  auto operator<=>(const Gpc&) const = default;
};

// Blocks of each launch that comes, 16 bits each.
using Blocks = uint64_t;
Blocks packed(const BlocksOfEach& blocks);
bool is_within(Blocks blocks, const BlocksOfEach& most);
inline int32_t blocks_of(const Blocks blocks, const size_t launch) {
  return static_cast<int32_t>(blocks >> (16 * launch) & 0xFFFFU);
}

// One way to take so many blocks: the share of each SM, or TPC, from the last one back.
struct Choice {
  int32_t before = -1;
  const Shares::value_type* share = nullptr;
};
struct Column {
  int32_t room = 0;  // blocks, or clusters, of the last launch
  std::shared_ptr<const std::vector<Choice>> choices;
  int32_t choice = -1;
};
using Columns = std::map<Blocks, Column>;

// Of all numbers of blocks that can be taken the least room, where that is below `most_room`; what
// does not fit any of these is left out. More may be found than can be, but nothing is missed.
// `most`: blocks of each launch. Throws TooManyWays.
Columns columns(const LaunchPlaces& places, const Asked& asked, const Gpc& gpc,
                const BlocksOfEach& most, int32_t most_room, Effort& effort);

}  // namespace tbsched
