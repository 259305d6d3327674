#include "tbsched/engine/held/recorded.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tbsched/program/trace.h"

namespace tbsched {

size_t Recorded::below(const size_t limit, const int32_t sm) {
  used_seeds_ = used_seeds_ || limit > 1;
  return seeds_[sm] == 0 ? 0 : random_of_sm_[sm]() / 64 % limit;
}

// Adds blocks to those that may leave.
void Recorded::release_blocks(const std::span<const LeavingBlock> leavers, bool) {
  if (leavers.empty()) return;
  leavers_.insert(leavers_.end(), leavers.begin(), leavers.end());
  moved_ = true;
  over_ = false;
}

// Removes and returns some of the blocks that may leave, by the seeds; all of them if nothing that
// was recorded can happen before.
std::vector<LeavingBlock> Recorded::take_exits() {
  const bool moved = std::exchange(moved_, false);
  const auto stays = [&](const LeavingBlock& leaver) {
    return moved && !below(2, leaver.footprint.sm);
  };
  const auto leaving = std::ranges::stable_partition(leavers_, stays);
  over_ = !moved && leaving.empty();
  std::vector<LeavingBlock> exits(leaving.begin(), leaving.end());
  moved_ = !exits.empty();
  leavers_.erase(leaving.begin(), leaving.end());
  return exits;
}

// Returns the recorded SMs of blocks; empty: one of them was not placed; nothing: the race is over.
std::optional<std::span<const int32_t>> Recorded::sms_of_next(const int32_t launch,
                                                              const int32_t first_block,
                                                              const int32_t blocks) {
  if (is_over()) return std::nullopt;
  const auto seen = final_smid_[launch].subspan(first_block, blocks);
  const bool waits = std::ranges::find(seen, kNotPlaced) != seen.end();
  return waits ? seen.first(0) : seen;
}

// Removes and returns a block on this SM that may leave, which its seed chooses; nothing: there is
// none.
std::optional<LeavingBlock> Recorded::take_exit_from(const int32_t sm) {
  const auto is_on_sm = [&](const LeavingBlock& leaver) { return leaver.footprint.sm == sm; };
  const auto candidates = static_cast<size_t>(std::ranges::count_if(leavers_, is_on_sm));
  if (candidates == 0) return std::nullopt;
  auto chosen = std::ranges::find_if(leavers_, is_on_sm);
  for (size_t skip = below(candidates, sm); skip > 0; --skip) {
    chosen = std::find_if(std::next(chosen), leavers_.end(), is_on_sm);
  }
  const LeavingBlock leaver = *chosen;
  leavers_.erase(chosen);
  return leaver;
}

}  // namespace tbsched
