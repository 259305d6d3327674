#include "tbsched/engine/together/gpcs/sums.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

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
using Sums = std::map<BlocksOfEach, Sum>;

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

// `most_cost`: of what has been added up.
Sums added(const Sums& sums, const Columns& columns, const Rest& rest, const Total& total,
           const int32_t wanted, const Prices& prices, const double most_cost, Effort& effort) {
  Sums found;
  for (const auto& [before, own_sum] : sums) {
    effort.spend(1 + std::ssize(columns) / kColumnsOfLook);
    for (const auto& [own, column] : columns) {
      const BlocksOfEach then = sum(before, own);
      const int32_t room = own_sum.room + column.room;
      if (room + rest.least_room >= wanted || !is_within(then, total.blocks)) continue;
      if (!may_be_whole(then, rest, total)) continue;
      if (room + cost_of(then, prices) > most_cost) continue;
      const auto [at, is_new] = found.try_emplace(then, Sum{room, before, &column});
      if (!is_new && room < at->second.room) at->second = {room, before, &column};
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
  std::vector<Sums> sums = {{{BlocksOfEach{}, Sum{}}}};
  double most_cost = allowance.excess;
  for (size_t k = 0; k < gpcs.size(); ++k) {
    most_cost += allowance.cheapest[k];
    sums.push_back(added(sums.back(), *gpcs[k], rest[k + 1], total, wanted, allowance.prices,
                         most_cost, effort));
  }
  if (sums.back().empty()) return std::nullopt;
  BlocksOfEach at = sums.back().begin()->first;
  std::vector<const Column*> found(gpcs.size());
  for (size_t k = gpcs.size(); k-- > 0;) {
    const Sum& sum = sums[k + 1].at(at);
    found[k] = sum.column;
    at = sum.before;
  }
  return found;
}

}  // namespace tbsched
