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
#include "tbsched/sim/sm_subsets.h"

namespace tbsched {
namespace {

// Returns the prediction of one sequence, up to the first launch that is not placed whole.
UntilRefused predict_until_refused(const Model& model, const Sequence& sequence,
                                   const InitialState state) {
  UntilRefused prediction;
  Places places;
  HeldEngine engine(model, state, {&places});
  for (const Event& event : sequence) {
    if (!places.smid().empty() && places.smid().back() == kNotPlaced) break;
    engine.step(event);
    ++prediction.events;
  }
  prediction.limiter = places.limiter();
  prediction.smid = std::move(places.smid());
  return prediction;
}

}  // namespace

std::vector<UntilRefused> predict_until_refused(const Model& model, const EventTable& table,
                                                const InitialState state, const int32_t threads) {
  std::vector<UntilRefused> predictions(table.sequence_count());
  for_each_sequence(predictions.size(), threads, [&](const size_t k) {
    predictions[k] = predict_until_refused(model, table.sequence(k), state);
  });
  return predictions;
}

std::vector<int32_t> allowed_at_once(const Model& model, const EventTable& table) {
  std::vector<int32_t> allowed_blocks(table.sequence_count());
  SmSubsets subsets;
  for_each_sequence(allowed_blocks.size(), 1, [&](const size_t k) {
    const Sequence sequence = table.sequence(k);
    const auto& launch = std::get<Launch>(sequence.at(0));
    check(launch, 0, model);
    Demand demand = demand_of(launch, model.device());
    const int32_t subset = subsets.of(launch, model.device());
    if (subset != kWholeGpu) demand.partition = subsets[subset].partition();
    const DeviceSpec& spec = model.device().spec;
    const int32_t max_blocks = spec.sms * spec.blocks_per_sm / launch.cluster * launch.cluster;
    allowed_blocks[k] = allowed_at_once(model, launch, demand, max_blocks);
  });
  return allowed_blocks;
}

std::vector<int32_t> matching_states(const Model& model, const EventTable& table,
                                     const std::span<const InitialState> states,
                                     const std::span<const std::span<const int32_t>> seen,
                                     const int32_t threads) {
  if (seen.size() != table.sequence_count()) {
    throw std::invalid_argument("smid: an array for each of " +
                                std::to_string(table.sequence_count()) +
                                " sequences is needed; got " + std::to_string(seen.size()));
  }
  std::vector<int32_t> state_indices(table.sequence_count(), -1);
  for_each_sequence(state_indices.size(), threads, [&](const size_t k) {
    const auto index = matching_state(model, table.sequence(k), states, seen[k]);
    if (index) state_indices[k] = static_cast<int32_t>(*index);
  });
  return state_indices;
}

}  // namespace tbsched
