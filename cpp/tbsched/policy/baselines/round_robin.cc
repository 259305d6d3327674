// Takes the next SM with room after the one that took the last block of any launch.
#include "tbsched/policy/policy.h"

namespace tbsched {
namespace {

class RoundRobin final : public Policy {
 public:
  explicit RoundRobin(const std::span<const int32_t> rank_of_sm) : rank_of_sm_(rank_of_sm) {}

  size_t place(const Demand& demand, const GpuState& gpu, Rooms&, const Commit& commit,
               const std::span<int32_t> sms) override {
    const auto& order = gpu.spec().sm_preference;
    return place_one_by_one(sms, commit, [&] {
      for (size_t step = 0; step < order.size(); ++step) {
        const size_t turn = (next_ + step) % order.size();
        if (gpu.room(order[turn], demand).blocks == 0) continue;
        next_ = turn + 1;
        return order[turn];
      }
      return -1;
    });
  }
  void note_placed(const std::span<const int32_t> sms) override {
    if (!sms.empty()) next_ = static_cast<size_t>(rank_of_sm_[sms.back()]) + 1;
  }

 private:
  std::span<const int32_t> rank_of_sm_;
  size_t next_ = 0;  // rank of preference of the SM whose turn it is
};

}  // namespace

StartPolicy make_round_robin(const Device& device) {
  return [&device](InitialState) { return std::make_unique<RoundRobin>(device.rank_of_sm); };
}

}  // namespace tbsched
