#include "tbsched/engine/bulk/bulk.h"

#include <stdexcept>
#include <utility>
#include <variant>

#include "tbsched/engine/bulk/matching_state.h"
#include "tbsched/engine/bulk/parallel.h"
#include "tbsched/engine/bulk/places.h"
#include "tbsched/engine/held/held_engine.h"
#include "tbsched/program/trace.h"
#include "tbsched/sim/at_once.h"
#include "tbsched/sim/launch_check.h"
#include "tbsched/sim/sm_groups.h"

namespace tbsched {
namespace {

UntilRefused predict_until_refused(const Model& model, const Sequence& sequence,
                                   const InitialState state) {
  UntilRefused found;
  Places places;
  HeldEngine engine(model, state, {&places});
  for (const Event& event : sequence) {
    if (!places.smid().empty() && places.smid().back() == kNotPlaced) break;
    engine.step(event);
    ++found.events;
  }
  found.limiter = places.limiter();
  found.smid = std::move(places.smid());
  return found;
}

}  // namespace

std::vector<UntilRefused> predict_until_refused(const Model& model, const EventTable& table,
                                                const InitialState state, const int32_t threads) {
  std::vector<UntilRefused> found(table.sequences());
  for_each_sequence(found.size(), threads, [&](const size_t k) {
    found[k] = predict_until_refused(model, table.sequence(k), state);
  });
  return found;
}

std::vector<int32_t> allowed_at_once(const Model& model, const EventTable& table) {
  std::vector<int32_t> found(table.sequences());
  SmGroups groups;
  for_each_sequence(found.size(), 1, [&](const size_t k) {
    const Sequence sequence = table.sequence(k);
    const auto& launch = std::get<Launch>(sequence.at(0));
    check(launch, 0, model);
    Demand demand = demand_of(launch, model.device());
    const int32_t group = groups.of(launch, model.device());
    if (group != kWholeGpu) demand.partition = groups[group].partition();
    const DeviceSpec& spec = model.device().spec;
    const int32_t most = spec.sms * spec.blocks_per_sm / launch.cluster * launch.cluster;
    found[k] = allowed_at_once(model, launch, demand, most);
  });
  return found;
}

std::vector<int32_t> matching_states(const Model& model, const EventTable& table,
                                     const std::span<const InitialState> states,
                                     const std::span<const std::span<const int32_t>> seen,
                                     const int32_t threads) {
  if (seen.size() != table.sequences()) {
    throw std::invalid_argument("smid: an array for each of " + std::to_string(table.sequences()) +
                                " sequences is needed; got " + std::to_string(seen.size()));
  }
  std::vector<int32_t> found(table.sequences(), -1);
  for_each_sequence(found.size(), threads, [&](const size_t k) {
    const auto index = matching_state(model, table.sequence(k), states, seen[k]);
    if (index) found[k] = static_cast<int32_t>(*index);
  });
  return found;
}

}  // namespace tbsched
