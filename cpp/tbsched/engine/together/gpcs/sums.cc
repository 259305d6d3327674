#include "tbsched/engine/together/gpcs/sums.h"

#include <algorithm>
#include <array>
#include <limits>
#include <ranges>
#include <utility>

#include "tbsched/engine/together/gpcs/flat_map.h"

namespace tbsched {
namespace {

constexpr size_t kMostSums = 500'000;
constexpr int64_t kColumnsOfLook = 10;

// So many blocks of the GPCs up to one, with the least room.
struct Sum {
  int32_t room = 0;
  BlocksOfEach before = {};
  const Column* column = nullptr;
};
using Sums = FlatMap<BlocksOfEach, Sum>;

// What the GPCs behind one may add.
struct Rest {
  std::array<int32_t, kMostCounted> most_blocks = {};
  int32_t least_room = 0;
};

Rest with(const Rest& rest, const Columns& columns) {
  Rest own = {.most_blocks = {}, .least_room = std::numeric_limits<int32_t>::max()};
  for (const auto& [blocks, column] : columns) {
    for (size_t k = 0; k < kMostCounted; ++k) {
      own.most_blocks[k] = std::max(own.most_blocks[k], int32_t{blocks[k]});
    }
    own.least_room = std::min(own.least_room, column.room);
  }
  Rest sum = rest;
  for (size_t k = 0; k < kMostCounted; ++k) sum.most_blocks[k] += own.most_blocks[k];
  sum.least_room += columns.empty() ? 0 : own.least_room;
  return sum;
}

bool may_be_whole(const BlocksOfEach& blocks, const Rest& rest, const Total& total) {
  for (size_t k = 0; k < kMostCounted; ++k) {
    if (!total.is_exact[k]) continue;
    if (int32_t{blocks[k]} + rest.most_blocks[k] < total.blocks[k]) return false;
  }
  return true;
}

struct PricedColumn {
  double cost;
  const Columns::value_type* column;
};

// The cheapest first.
std::vector<PricedColumn> priced(const Columns& columns, const Prices& prices) {
  std::vector<PricedColumn> found;
  for (const auto& each : columns) {
    found.push_back({each.second.room + cost_of(each.first, prices), &each});
  }
  std::ranges::sort(found, {}, &PricedColumn::cost);
  return found;
}

// `most_cost`: of what has been added up.
Sums added(const Sums& sums, const std::vector<PricedColumn>& columns, const Rest& rest,
           const Total& total, const int32_t wanted, const Prices& prices, const double most_cost,
           Effort& effort) {
  Sums found;
  for (const auto& [before, own_sum] : sums) {
    const double left = most_cost - own_sum.room - cost_of(before, prices);
    const auto end = std::ranges::upper_bound(columns, left, {}, &PricedColumn::cost);
    effort.spend(1 + (end - columns.begin()) / kColumnsOfLook);
    for (auto each = columns.begin(); each != end; ++each) {
      const auto& [own, column] = *each->column;
      const BlocksOfEach then = sum(before, own);
      const int32_t room = own_sum.room + column.room;
      if (room + rest.least_room >= wanted || !is_within(then, total.blocks)) continue;
      if (!may_be_whole(then, rest, total)) continue;
      const auto [least, is_new] = found.try_emplace(then, {room, before, &column});
      if (!is_new && room < least.room) least = {room, before, &column};
    }
    if (found.size() > kMostSums) throw TooManyWays{};
  }
  return found;
}

}  // namespace

std::optional<std::vector<const Column*>> too_little_room(const std::vector<const Columns*>& gpcs,
                                                          const Total& total, const int32_t wanted,
                                                          const Allowance& allowance,
                                                          Effort& effort) {
  std::vector<Rest> rest(gpcs.size() + 1);
  for (size_t k = gpcs.size(); k-- > 0;) rest[k] = with(rest[k + 1], *gpcs[k]);
  std::vector<Sums> sums(1);
  sums.front().try_emplace(BlocksOfEach{}, Sum{});
  double most_cost = allowance.excess;
  for (size_t k = 0; k < gpcs.size(); ++k) {
    most_cost += allowance.cheapest[k];
    sums.push_back(added(sums.back(), priced(*gpcs[k], allowance.prices), rest[k + 1], total,
                         wanted, allowance.prices, most_cost, effort));
  }
  if (sums.back().empty()) return std::nullopt;
  BlocksOfEach at = std::ranges::min(sums.back() | std::views::keys);
  std::vector<const Column*> found(gpcs.size());
  for (size_t k = gpcs.size(); k-- > 0;) {
    const Sum& sum = *sums[k + 1].find(at);
    found[k] = sum.column;
    at = sum.before;
  }
  return found;
}

}  // namespace tbsched
