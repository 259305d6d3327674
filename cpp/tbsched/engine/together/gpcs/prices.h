// A bound of the room that is left for the last launch, whatever the others take, from prices.
//
// With any prices for their blocks, what is cheapest in each part by itself, room and blocks
// together, costs no more than any parts that add up. Less the price of all blocks that is a bound
// of the room: Lagrangian duality.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/engine/together/gpcs/columns.h"
#include "tbsched/engine/together/gpcs/places.h"
#include "tbsched/engine/together/gpcs/shares.h"

namespace tbsched {

// So many blocks of the first launches, and at most so many of the others.
struct Total {
  BlocksOfEach blocks = {};
  size_t exact = kMostComing;  // launches
};

// Whether at least `wanted` blocks, or clusters, of the last launch find room, whatever columns add
// up to so many blocks. False: not known.
bool surely_fits(const std::vector<const Columns*>& gpcs, const Total& total, int32_t wanted);
// The same, whatever shares of SMs, or TPCs, do: that is less exact, and needs no columns. Throws
// TooManyWays.
bool surely_fits(const LaunchPlaces& places, int32_t last, const std::vector<Gpc>& gpcs,
                 const Total& total, int32_t wanted, Effort& effort);

}  // namespace tbsched
