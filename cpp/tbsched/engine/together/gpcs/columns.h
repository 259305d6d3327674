// What launches can take of one GPC, and what is left there for another one.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <vector>

#include "tbsched/engine/together/gpcs/flat_map.h"
#include "tbsched/engine/together/gpcs/levels.h"
#include "tbsched/engine/together/gpcs/places.h"
#include "tbsched/engine/together/gpcs/shares.h"

namespace tbsched {

// A GPC, or a TPC of none, which is a domain of clusters by itself.
struct Gpc {
  std::vector<const Shares*> shares;  // of its SMs, or TPCs, in order
  std::vector<LevelOfGpc> levels;     // of each exact launch
  bool exactly = false;               // else fewer ways are told apart, which is faster

  auto operator<=>(const Gpc&) const = default;
};

// Whether there are no more than so many of any.
bool is_within(const BlocksOfEach& blocks, const BlocksOfEach& most);
BlocksOfEach sum(const BlocksOfEach& one, const BlocksOfEach& other);

struct Column {
  int32_t room = 0;                                    // blocks, or clusters, of the last launch
  std::vector<const Shares::value_type*> shares = {};  // one way: of each SM, or TPC
};
using Columns = FlatMap<BlocksOfEach, Column>;

// Of a block of each launch, where one of the last one costs 1.
using Prices = std::array<double, kMostCounted>;
double cost_of(const BlocksOfEach& blocks, const Prices& prices);

// Of all numbers of blocks that can be taken the least room, where that is below `most_room`; what
// does not fit any of these is left out, and so is what costs more than `most_cost`. More may be
// found than can be, but nothing is missed. `most`: blocks of each launch. Throws TooManyWays, also
// after `most_looks`.
struct Wanted {
  BlocksOfEach most = {};
  int32_t most_room = 0;
  Prices prices = {};
  double most_cost = std::numeric_limits<double>::infinity();
  int64_t most_looks = std::numeric_limits<int64_t>::max();
};
Columns columns(const LaunchPlaces& places, const Asked& asked, const Gpc& gpc,
                const Wanted& wanted, Effort& effort);

}  // namespace tbsched
