// How often multisets can be taken out of a stock, fractions allowed.
#pragma once

#include <cstdint>
#include <vector>

namespace tbsched {

using Multiset = std::vector<int32_t>;  // how many of each kind

// The most multisets in all: the maximum of the sum of x[k] where the sum of x[k] * multisets[k] is
// within the stock, for x >= 0. As large as can be where a multiset takes nothing.
double most_packed(const std::vector<Multiset>& multisets, const Multiset& stock);

}  // namespace tbsched
