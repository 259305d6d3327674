// What launches take of all GPCs together: so many blocks of each, and what is left for the last.
#pragma once

#include <optional>
#include <vector>

#include "tbsched/engine/together/gpcs/columns.h"
#include "tbsched/engine/together/gpcs/prices.h"

namespace tbsched {

// Of each GPC a column, so that they add up to so many blocks, and leave less room than `wanted`;
// nothing: there are none. Throws TooManyWays.
std::optional<std::vector<const Column*>> too_little_room(const std::vector<const Columns*>& gpcs,
                                                          const Total& total, int32_t wanted,
                                                          const Allowance& allowance,
                                                          Effort& effort);

}  // namespace tbsched
