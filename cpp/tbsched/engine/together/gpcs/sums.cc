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
  Blocks before = 0;
  const Column* column = nullptr;
};
using Sums = std::map<Blocks, Sum>;

// What the GPCs behind one may add.
struct Rest {
  std::array<int32_t, kMostComing> most_blocks = {};
  int32_t least_room = 0;
};

Rest with(const Rest& rest, const Columns& columns) {
  Rest own = {.most_blocks = {}, .least_room = std::numeric_limits<int32_t>::max()};
  for (const auto& [blocks, column] : columns) {
    for (size_t k = 0; k < kMostComing; ++k) {
      own.most_blocks[k] = std::max(own.most_blocks[k], blocks_of(blocks, k));
    }
    own.least_room = std::min(own.least_room, column.room);
  }
  Rest sum = rest;
  for (size_t k = 0; k < kMostComing; ++k) sum.most_blocks[k] += own.most_blocks[k];
  sum.least_room += columns.empty() ? 0 : own.least_room;
  return sum;
}

bool may_be_whole(const Blocks blocks, const Rest& rest, const Total& total) {
  for (size_t k = 0; k < total.exact; ++k) {
    if (blocks_of(blocks, k) + rest.most_blocks[k] < total.blocks[k]) return false;
  }
  return true;
}

Sums added(const Sums& sums, const Columns& columns, const Rest& rest, const Total& total,
           const int32_t wanted, Effort& effort) {
  Sums found;
  for (const auto& [before, sum] : sums) {
    effort.spend(1 + std::ssize(columns) / kColumnsOfLook);
    for (const auto& [own, column] : columns) {
      const Blocks then = before + own;
      const int32_t room = sum.room + column.room;
      if (room + rest.least_room >= wanted || !is_within(then, total.blocks)) continue;
      if (!may_be_whole(then, rest, total)) continue;
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
                                                          Effort& effort) {
  std::vector<Rest> rest(gpcs.size() + 1);
  for (size_t k = gpcs.size(); k-- > 0;) rest[k] = with(rest[k + 1], *gpcs[k]);
  std::vector<Sums> sums = {{{Blocks{0}, Sum{}}}};
  for (size_t k = 0; k < gpcs.size(); ++k) {
    sums.push_back(added(sums.back(), *gpcs[k], rest[k + 1], total, wanted, effort));
  }
  if (sums.back().empty()) return std::nullopt;
  Blocks at = sums.back().begin()->first;
  std::vector<const Column*> found(gpcs.size());
  for (size_t k = gpcs.size(); k-- > 0;) {
    const Sum& sum = sums[k + 1].at(at);
    found[k] = sum.column;
    at = sum.before;
  }
  return found;
}

}  // namespace tbsched
