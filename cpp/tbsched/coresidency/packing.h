// Fractional packing of multisets into a stock.
#pragma once

#include <cstdint>
#include <vector>

namespace tbsched {

using Multiset = std::vector<int32_t>;  // number of elements of each kind

// Returns how many multisets fit at most, as fractions: the maximum of the sum of x[k] for x >= 0
// with the sum of x[k] * multisets[k] within the stock. 0 without multisets, infinite if one is
// empty.
double max_packed(const std::vector<Multiset>& multisets, const Multiset& stock);

// Returns whether fewer than `count` whole multisets fit, if `max` fit as fractions.
bool packs_fewer(double max, int32_t count);

}  // namespace tbsched
