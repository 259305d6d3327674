// What launches take of all GPCs together: so many blocks of each, and what is left for the last.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "tbsched/engine/together/gpcs/columns.h"

namespace tbsched {

// Whether at least `wanted` blocks, or clusters, of the last launch find room, whatever columns add
// up to so many blocks. Fast; false: not known.
bool surely_fits(const std::vector<const Columns*>& gpcs, const BlocksOfEach& blocks,
                 int32_t wanted);

// Of each GPC a column, so that they add up to so many blocks, and leave less room than `wanted`;
// nothing: there are none. Throws TooManyWays.
std::optional<std::vector<const Column*>> too_little_room(const std::vector<const Columns*>& gpcs,
                                                          const BlocksOfEach& blocks,
                                                          int32_t wanted);

}  // namespace tbsched
