#include "tbsched/engine/held/recorded.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tbsched/program/trace.h"

namespace tbsched {

// Returns a random number below the limit; 0 for seed 0.
size_t Recorded::below(const size_t limit, const int32_t sm) {
  used_seeds_ = used_seeds_ || limit > 1;
  return seeds_[sm] == 0 ? 0 : random_of_sm_[sm]() / 64 % limit;
}

void Recorded::release_blocks(const std::span<const LeavingBlock> leavers, bool) {
  if (leavers.empty()) return;
  leavers_.insert(leavers_.end(), leavers.begin(), leavers.end());
  moved_ = true;
  over_ = false;
}

// Returns all blocks that may leave, if nothing that was recorded can happen before.
std::vector<LeavingBlock> Recorded::next() {
  const bool moved = std::exchange(moved_, false);
  const auto stays = [&](const LeavingBlock& leaver) {
    return moved && !below(2, leaver.footprint.sm);
  };
  const auto leaving = std::ranges::stable_partition(leavers_, stays);
  over_ = !moved && leaving.empty();
  std::vector<LeavingBlock> found(leaving.begin(), leaving.end());
  moved_ = !found.empty();
  leavers_.erase(leaving.begin(), leaving.end());
  return found;
}

std::optional<std::span<const int32_t>> Recorded::where(const int32_t launch,
                                                        const int32_t first_block,
                                                        const int32_t blocks) {
  if (over()) return std::nullopt;
  const auto seen = final_smid_[launch].subspan(first_block, blocks);
  const bool waits = std::ranges::find(seen, kNotPlaced) != seen.end();
  return waits ? seen.first(0) : seen;
}

std::optional<LeavingBlock> Recorded::take(const int32_t sm) {
  const auto is_there = [&](const LeavingBlock& leaver) { return leaver.footprint.sm == sm; };
  const auto there = static_cast<size_t>(std::ranges::count_if(leavers_, is_there));
  if (there == 0) return std::nullopt;
  auto found = std::ranges::find_if(leavers_, is_there);
  for (size_t skip = below(there, sm); skip > 0; --skip) {
    found = std::find_if(std::next(found), leavers_.end(), is_there);
  }
  const LeavingBlock leaver = *found;
  leavers_.erase(found);
  return leaver;
}

}  // namespace tbsched
