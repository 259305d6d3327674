// Takes the first SM with room, in order of preference.
#include <algorithm>

#include "tbsched/policy/policy.h"

namespace tbsched {
namespace {

class FirstFit final : public Policy {
 public:
  size_t place(const Demand& demand, const GpuState& gpu, Rooms&, const Commit& commit,
               const std::span<int32_t> sms) override {
    const auto& order = gpu.spec().sm_preference;
    return place_one_by_one(sms, commit, [&] {
      const auto first = std::ranges::find_if(
          order, [&](const int32_t sm) { return gpu.room(sm, demand).blocks > 0; });
      return first == order.end() ? -1 : *first;
    });
  }
};

}  // namespace

StartPolicy make_first_fit(const Device&) {
  return [](InitialState) { return std::make_unique<FirstFit>(); };
}

}  // namespace tbsched
