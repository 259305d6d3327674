#include "tbsched/engine/together/gpcs/sums.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tbsched {
namespace {

constexpr size_t kMostSums = 500'000;

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

bool is_whole(const Blocks blocks, const Total& total) {
  for (size_t k = 0; k < total.exact; ++k) {
    if (blocks_of(blocks, k) != total.blocks[k]) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<const Column*>> too_little_room(const std::vector<const Columns*>& gpcs,
                                                          const Total& total,
                                                          const int32_t wanted) {
  std::vector<Sums> sums = {{{Blocks{0}, Sum{}}}};
  for (const Columns* const columns : gpcs) {
    sums.push_back(added(sums.back(), *columns, total.blocks, wanted));
  }
  const auto last = std::ranges::find_if(
      sums.back(), [&](const auto& sum) { return is_whole(sum.first, total); });
  if (last == sums.back().end()) return std::nullopt;
  Blocks at = last->first;
  std::vector<const Column*> found(gpcs.size());
  for (size_t k = gpcs.size(); k-- > 0;) {
    const Sum& sum = sums[k + 1].at(at);
    found[k] = sum.column;
    at = sum.before;
  }
  return found;
}

}  // namespace tbsched
