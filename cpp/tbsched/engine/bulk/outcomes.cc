#include "tbsched/engine/bulk/outcomes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "tbsched/engine/held/chance.h"
#include "tbsched/engine/predict.h"

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

}  // namespace

std::vector<Outcome> outcomes(const Model& model, const Sequence& sequence,
                              const InitialState state, const int32_t races) {
  std::vector<Outcome> found;
  std::map<std::vector<int32_t>, size_t> known;
  for (int32_t seed = 0; seed < races; ++seed) {
    Chance race(model.device(), seed);
    std::vector<LaunchTrace> launches = predict(model, sequence, state, race);
    const auto [which, is_new] =
        known.try_emplace(occupancy(launches, model.device().spec.sms), found.size());
    if (is_new) found.push_back({std::move(launches)});
    ++found[which->second].races;
    if (!race.mattered()) break;
  }
  std::ranges::stable_sort(found, std::greater{}, &Outcome::races);
  return found;
}

}  // namespace tbsched
