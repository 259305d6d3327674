#include "tbsched/engine/bulk/outcomes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "tbsched/engine/held/chance.h"
#include "tbsched/engine/predict.h"
#include "tbsched/sim/interruption.h"

namespace tbsched {
namespace {

// Returns, for each launch, the number of its blocks on each SM before the next event.
std::vector<int32_t> occupancy(const std::vector<LaunchTrace>& launches, const int32_t sms) {
  std::vector<int32_t> blocks(launches.size() * sms);
  auto row = blocks.begin();
  for (const LaunchTrace& launch : launches) {
    for (const int32_t sm : launch.smid) {
      if (sm != kNotPlaced) ++row[sm];
    }
    row += sms;
  }
  return blocks;
}

// Thrown where the deadline ends a race.
struct Cut {};

// Simulates a race, which the deadline ends; nothing: it did.
std::optional<std::vector<LaunchTrace>> before(const Deadline& deadline, const Model& model,
                                               const Sequence& sequence, const InitialState state,
                                               Chance& race) {
  if (deadline.is_over()) return std::nullopt;
  const Interruptible polls([&deadline, check = Interruptible::check()] {
    if (check) check();
    if (deadline.is_over()) throw Cut{};
  });
  try {
    return predict(model, sequence, state, race);
  } catch (const Cut&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<Outcome> outcomes(const Model& model, const Sequence& sequence,
                              const InitialState state, const int32_t races,
                              const Deadline& deadline) {
  std::vector<Outcome> found;
  std::map<std::vector<int32_t>, size_t> known;
  for (int32_t seed = 0; seed < races; ++seed) {
    Chance race(model.device(), seed);
    std::optional<std::vector<LaunchTrace>> launches =
        before(seed == 0 ? Deadline() : deadline, model, sequence, state, race);
    if (!launches) {
      for (Outcome& outcome : found) outcome.cut = true;
      break;
    }
    const auto [which, is_new] =
        known.try_emplace(occupancy(*launches, model.device().spec.sms), found.size());
    if (is_new) found.push_back({std::move(*launches)});
    ++found[which->second].races;
    if (!race.mattered()) break;
  }
  std::ranges::stable_sort(found, std::greater{}, &Outcome::races);
  return found;
}

}  // namespace tbsched
