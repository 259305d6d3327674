#include "tbsched/engine/together/gpcs/sums.h"

#include <limits>
#include <map>
#include <utility>

namespace tbsched {
namespace {

constexpr size_t kMostSums = 500'000;
constexpr int32_t kRounds = 100;
constexpr double kMargin = 1e-6;  // what rounding may add

using Prices = std::array<double, kMostComing>;

struct Cheapest {
  double cost = std::numeric_limits<double>::infinity();
  Blocks blocks = 0;
};

// Room and blocks together, where each block has a price.
Cheapest cheapest_of(const Columns& columns, const Prices& prices) {
  Cheapest found;
  for (const auto& [blocks, column] : columns) {
    double cost = column.room;
    for (size_t k = 0; k < kMostComing; ++k) cost += prices[k] * blocks_of(blocks, k);
    if (cost < found.cost) found = {cost, blocks};
  }
  return found;
}

// So many blocks of the GPCs up to one, with the least room.
struct Sum {
  int32_t room = 0;
  Blocks before = 0;
  const Column* column = nullptr;
};
using Sums = std::map<Blocks, Sum>;

Sums added(const Sums& sums, const Columns& columns, const BlocksOfEach& most,
           const int32_t wanted) {
  Sums found;
  for (const auto& [before, sum] : sums) {
    for (const auto& [own, column] : columns) {
      const Blocks then = before + own;
      const int32_t room = sum.room + column.room;
      if (room >= wanted || !is_within(then, most)) continue;
      const auto [at, is_new] = found.try_emplace(then, Sum{room, before, &column});
      if (!is_new && room < at->second.room) at->second = {room, before, &column};
    }
    if (found.size() > kMostSums) throw TooManyWays{};
  }
  return found;
}

}  // namespace

// Lagrangian duality. With any prices, what is cheapest in each GPC by itself costs no more than
// any columns that add up; less the price of all blocks that is a bound of the room. Prices go up
// where too much is bought, with the step of Polyak.
bool surely_fits(const std::vector<const Columns*>& gpcs, const BlocksOfEach& blocks,
                 const int32_t wanted) {
  std::map<const Columns*, int32_t> counts;
  for (const Columns* const columns : gpcs) ++counts[columns];
  Prices prices = {};
  for (int32_t round = 0; round < kRounds; ++round) {
    double bound = 0;
    Prices excess = {};
    for (size_t k = 0; k < kMostComing; ++k) {
      bound -= prices[k] * blocks[k];
      excess[k] = -blocks[k];
    }
    for (const auto& [columns, count] : counts) {
      if (columns->empty()) return true;  // nothing of the kind can happen
      const Cheapest own = cheapest_of(*columns, prices);
      bound += count * own.cost;
      for (size_t k = 0; k < kMostComing; ++k) excess[k] += count * blocks_of(own.blocks, k);
    }
    if (bound > wanted - 1 + kMargin) return true;
    double square = 0;
    for (const double each : excess) square += each * each;
    if (square == 0) return false;
    const double step = (wanted - bound) / square;
    for (size_t k = 0; k < kMostComing; ++k) prices[k] += step * excess[k];
  }
  return false;
}

std::optional<std::vector<const Column*>> too_little_room(const std::vector<const Columns*>& gpcs,
                                                          const BlocksOfEach& blocks,
                                                          const int32_t wanted) {
  std::vector<Sums> sums = {{{Blocks{0}, Sum{}}}};
  for (const Columns* const columns : gpcs) {
    sums.push_back(added(sums.back(), *columns, blocks, wanted));
  }
  Blocks at = packed(blocks);
  if (!sums.back().contains(at)) return std::nullopt;
  std::vector<const Column*> found(gpcs.size());
  for (size_t k = gpcs.size(); k-- > 0;) {
    const Sum& sum = sums[k + 1].at(at);
    found[k] = sum.column;
    at = sum.before;
  }
  return found;
}

}  // namespace tbsched
