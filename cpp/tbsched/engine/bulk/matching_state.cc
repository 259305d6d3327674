#include "tbsched/engine/bulk/matching_state.h"

#include <algorithm>
#include <variant>

#include "tbsched/engine/bulk/places.h"
#include "tbsched/engine/held/held_engine.h"

namespace tbsched {
namespace {

bool explains(const Model& model, const Sequence& sequence, const InitialState state,
              std::span<const int32_t> seen) {
  Places places;
  Engine engine(model, state, {&places});
  for (const Event& event : sequence) {
    engine.step(event);
    if (!std::holds_alternative<Launch>(event)) continue;
    const std::span<const int32_t> placed = places.newest();
    if (seen.size() < placed.size() || !std::ranges::equal(placed, seen.first(placed.size()))) {
      return false;
    }
    seen = seen.subspan(placed.size());
  }
  return true;
}

}  // namespace

std::optional<size_t> explaining_state(const Model& model, const Sequence& sequence,
                                       const std::span<const InitialState> states,
                                       const std::span<const int32_t> seen) {
  const auto found = std::ranges::find_if(
      states, [&](const InitialState& state) { return explains(model, sequence, state, seen); });
  if (found == states.end()) return std::nullopt;
  return static_cast<size_t>(found - states.begin());
}

}  // namespace tbsched
