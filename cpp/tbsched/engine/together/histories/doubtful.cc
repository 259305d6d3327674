#include "tbsched/engine/together/histories/doubtful.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tbsched/engine/held/held_engine.h"
#include "tbsched/engine/together/histories/standing.h"

namespace tbsched {
namespace {

std::optional<int32_t> block_of(const std::vector<int32_t>& sms, const BlockOnSm& wanted) {
  int32_t before = wanted.number;
  for (size_t block = 0; block < sms.size(); ++block) {
    if (sms[block] == wanted.sm && before-- == 0) return static_cast<int32_t>(block);
  }
  return {};
}

}  // namespace

size_t Doubtful::length() const {
  size_t steps = order.size() + then.size();
  for (const Arrival& arrival : then) {
    std::set<int32_t> launches;
    for (const BlockOnSm& block : arrival.leaving) launches.insert(block.launch);
    steps += launches.size();
  }
  return steps;
}

std::vector<Step> steps_of(const Model& model, const std::vector<Event>& events,
                           const Doubtful& doubtful) {
  Standing standing;
  HeldEngine engine(model, doubtful.state, {&standing},
                    {.leaving = BlockScheduler::Leaving::one_by_one});
  std::vector<Step> steps;
  std::map<int32_t, int32_t> number;  // of each launch that came, among those
  const auto arrive = [&](const int32_t launch) {
    number.emplace(launch, static_cast<int32_t>(number.size()));
    engine.step(events[launch]);
    steps.push_back({launch});
  };
  std::ranges::for_each(doubtful.order, arrive);
  for (const Arrival& arrival : doubtful.then) {
    std::map<int32_t, std::set<int32_t>> leaving;
    for (const BlockOnSm& wanted : arrival.leaving) {
      const auto block = block_of(standing.launches()[number.at(wanted.launch)].sms, wanted);
      if (block) leaving[wanted.launch].insert(*block);
    }
    for (const auto& [launch, blocks] : leaving) {
      for (const int32_t block : blocks) engine.let_leave(number.at(launch), block);
      steps.push_back({launch, {blocks.begin(), blocks.end()}});
    }
    arrive(arrival.launch);
  }
  return steps;
}

}  // namespace tbsched
