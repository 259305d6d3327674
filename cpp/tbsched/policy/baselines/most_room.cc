// Takes the SM with room for most blocks of the launch; the preferred one among equals.
#include <algorithm>
#include <numeric>
#include <vector>

#include "tbsched/policy/levels.h"

namespace tbsched {
namespace {

// Returns whether every candidate gets exactly one block. Has no early exit, so that it can be
// vectorised.
bool all_are_one(const std::span<const uint8_t> level) {
  uint8_t differences = 0;
  for (const uint8_t blocks : level) differences |= blocks ^ 1;
  return differences == 0;
}

class MostRoom final : public Policy {
 public:
  MostRoom(const std::span<const int32_t> preference, const std::span<const int32_t> ranks)
      : preference_(preference), levels_(ranks) {}

  size_t place(const Demand& demand, const GpuState& gpu, Rooms& rooms, const Commit& commit,
               const std::span<int32_t> sms) override {
    levels_.fill(demand, static_cast<int32_t>(sms.size()), gpu, rooms, commit);
    candidates_.clear();
    for (const int32_t rank : levels_.positions()) candidates_.push_back(preference_[rank]);
    auto next = sms.begin();
    for (size_t k = 0; k < levels_.count(); ++k) {
      const std::span<const uint8_t> level = levels_.level(k);
      if (all_are_one(level)) {
        next = std::ranges::copy(candidates_, next).out;
        continue;
      }
      for (size_t i = 0; i < level.size(); ++i) next = std::fill_n(next, level[i], candidates_[i]);
    }
    return static_cast<size_t>(levels_.blocks());
  }

 private:
  std::span<const int32_t> preference_;
  Levels levels_;
  std::vector<int32_t> candidates_;  // SMs, as the levels have them
};

}  // namespace

StartPolicy make_algorithm1(const Device& device);

// Returns a policy that makes the choices of Algorithm 1, level by level where that is possible.
StartPolicy make_most_room(const Device& device) {
  // There are no levels of rooms where not all shared memory counts.
  if (device.spec.shared_memory_threshold > 0) return make_algorithm1(device);
  std::vector<int32_t> ranks(device.rank_of_sm.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return [&device, ranks = std::move(ranks)](InitialState) {
    return std::make_unique<MostRoom>(device.spec.sm_preference, ranks);
  };
}

}  // namespace tbsched
