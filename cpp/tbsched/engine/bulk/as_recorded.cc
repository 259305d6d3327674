#include "tbsched/engine/bulk/as_recorded.h"

#include <algorithm>

#include "tbsched/engine/held/recorded.h"
#include "tbsched/engine/predict.h"

namespace tbsched {
namespace {

constexpr int kMaxAttempts = 64;

// Returns whether a prediction puts every block where it was recorded.
bool equals_recording(const LaunchTrace& launch, const SeenLaunch& seen) {
  const std::vector<int32_t>& last = launch.final_smid.empty() ? launch.smid : launch.final_smid;
  return std::ranges::equal(launch.smid, seen.smid) && std::ranges::equal(last, seen.final_smid);
}

// Returns the SMs on which the first launch that differs from the recording has another number of
// blocks than was recorded; empty if no launch differs.
std::vector<int32_t> differing_sms(const std::vector<LaunchTrace>& launches,
                                   const std::span<const SeenLaunch> seen, const int32_t sms) {
  std::vector<int32_t> surplus(sms);  // blocks, by SM
  std::vector<int32_t> differing;
  for (size_t launch = 0; launch < launches.size() && differing.empty(); ++launch) {
    for (const int32_t sm : launches[launch].smid) surplus[std::max(sm, 0)] += sm >= 0;
    for (const int32_t sm : seen[launch].smid) surplus[std::max(sm, 0)] -= sm >= 0;
    for (int32_t sm = 0; sm < sms; ++sm) {
      if (surplus[sm] != 0) differing.push_back(sm);
    }
  }
  return differing;
}

}  // namespace

std::vector<LaunchTrace> predict_as_recorded(const Model& model, const Sequence& sequence,
                                             const InitialState state,
                                             const std::span<const SeenLaunch> seen) {
  std::vector<LaunchTrace> together = predict(model, sequence, state);
  if (std::ranges::equal(together, seen, equals_recording)) return together;

  const int32_t sms = model.device().spec.sms;
  std::vector<std::span<const int32_t>> final_smid;
  for (const SeenLaunch& launch : seen) final_smid.push_back(launch.final_smid);
  std::vector<uint32_t> seed_of_sm(sms);
  std::vector<LaunchTrace> first;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Recorded race(final_smid, seed_of_sm);
    std::vector<LaunchTrace> launches = predict(model, sequence, state, race);
    const std::vector<int32_t> wrong = differing_sms(launches, seen, sms);
    if (wrong.empty() || !race.used_seeds()) return launches;
    for (const int32_t sm : wrong) ++seed_of_sm[sm];
    if (attempt == 0) first = std::move(launches);
  }
  return first;
}

}  // namespace tbsched
