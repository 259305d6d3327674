// Fractional packing of multisets into a stock.
#pragma once

#include <cstdint>
#include <vector>

namespace tbsched {

using Multiset = std::vector<int32_t>;  // number of elements of each kind

// Returns the most multisets that fit: the maximum of the sum of x[k] for x >= 0 with the sum of
// x[k] * multisets[k] within the stock. Infinite if a multiset is empty.
double most_packed(const std::vector<Multiset>& multisets, const Multiset& stock);

}  // namespace tbsched
