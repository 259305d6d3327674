#include "tbsched/engine/bulk/matching_state.h"

#include <algorithm>

#include "tbsched/engine/bulk/places.h"
#include "tbsched/engine/held/held_engine.h"

namespace tbsched {
namespace {

// Returns whether an idle GPU in `state` would have placed every block where it was seen before the
// next event.
bool matches(const Model& model, const Sequence& sequence, const InitialState state,
             std::span<const int32_t> seen) {
  Places places;
  HeldEngine engine(model, state, {&places});
  for (const Event& event : sequence) {
    const size_t before = places.smid().size();
    engine.step(event);
    const std::span<const int32_t> placed = std::span(places.smid()).subspan(before);
    if (seen.size() < placed.size() || !std::ranges::equal(placed, seen.first(placed.size()))) {
      return false;
    }
    seen = seen.subspan(placed.size());
  }
  return true;
}

}  // namespace

std::optional<size_t> matching_state(const Model& model, const Sequence& sequence,
                                     const std::span<const InitialState> states,
                                     const std::span<const int32_t> seen) {
  const auto match = std::ranges::find_if(
      states, [&](const InitialState& state) { return matches(model, sequence, state, seen); });
  if (match == states.end()) return std::nullopt;
  return static_cast<size_t>(match - states.begin());
}

}  // namespace tbsched
