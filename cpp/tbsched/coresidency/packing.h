// Fractional packing of multisets into a stock.
#pragma once

#include <cstdint>
#include <vector>

namespace tbsched {

using Multiset = std::vector<int32_t>;  // number of elements of each kind

// Returns the most multisets that fit: the maximum of the sum of x[k] for x >= 0 with the sum of
// x[k] * multisets[k] within the stock. 0 without multisets, infinite if one is empty.
double most_packed(const std::vector<Multiset>& multisets, const Multiset& stock);

// Returns whether fewer whole multisets than a number fit, where `most` do as fractions.
bool packs_fewer(double most, int32_t number);

}  // namespace tbsched
