#include "tbsched/engine/held/recorded.h"

#include <algorithm>
#include <utility>

#include "tbsched/program/trace.h"

namespace tbsched {

// All that are left, if nothing that was recorded can happen before.
std::vector<Leaver> Recorded::next() {
  if (std::exchange(moved_, false)) return {};
  over_ = leavers_.empty();
  moved_ = !over_;
  return std::exchange(leavers_, {});
}

std::optional<std::span<const int32_t>> Recorded::where(const int32_t launch,
                                                        const int32_t first_block,
                                                        const int32_t blocks) {
  if (over()) return std::nullopt;
  const auto seen = final_smid_[launch].subspan(first_block, blocks);
  const bool waits = std::ranges::find(seen, kNotPlaced) != seen.end();
  return waits ? seen.first(0) : seen;
}

std::optional<Leaver> Recorded::take(const int32_t sm) {
  const auto found =
      std::ranges::find(leavers_, sm, [](const Leaver& leaver) { return leaver.footprint.sm; });
  if (found == leavers_.end()) return std::nullopt;
  const Leaver leaver = *found;
  leavers_.erase(found);
  return leaver;
}

}  // namespace tbsched
