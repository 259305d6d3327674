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

// Returns, by launch and SM, the number of blocks before the next event.
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

// Thrown where the deadline ends the simulation of a race.
struct DeadlineOver {};

// Simulates a race. Returns where blocks went; nothing if the deadline came first.
std::optional<std::vector<LaunchTrace>> simulate_before(const Deadline& deadline,
                                                        const Model& model,
                                                        const Sequence& sequence,
                                                        const InitialState state, Chance& race) {
  if (deadline.is_over()) return std::nullopt;
  const Interruptible polls([&deadline, check = Interruptible::check()] {
    if (check) check();
    if (deadline.is_over()) throw DeadlineOver{};
  });
  try {
    return predict(model, sequence, state, race);
  } catch (const DeadlineOver&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<Outcome> outcomes(const Model& model, const Sequence& sequence,
                              const InitialState state, const int32_t races,
                              const Deadline& deadline) {
  std::vector<Outcome> distinct;
  std::map<std::vector<int32_t>, size_t> index_of_occupancy;
  for (int32_t seed = 0; seed < races; ++seed) {
    Chance race(model.device(), seed);
    std::optional<std::vector<LaunchTrace>> launches =
        simulate_before(seed == 0 ? Deadline() : deadline, model, sequence, state, race);
    if (!launches) {
      for (Outcome& outcome : distinct) outcome.cut = true;
      break;
    }
    const auto [entry, is_new] = index_of_occupancy.try_emplace(
        occupancy(*launches, model.device().spec.sms), distinct.size());
    if (is_new) distinct.push_back({std::move(*launches)});
    ++distinct[entry->second].races;
    if (!race.mattered()) break;
  }
  std::ranges::stable_sort(distinct, std::greater{}, &Outcome::races);
  return distinct;
}

}  // namespace tbsched
