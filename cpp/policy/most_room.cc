// The SM with room for most blocks of the launch; the preferred one among equals.
#include "policy/levels.h"

namespace tbsched {
namespace {

class MostRoom final : public Policy {
 public:
  std::vector<int32_t> place(const Demand& demand, const int32_t blocks, const GpuState& gpu,
                             const Commit& commit) override {
    return fill_levels(demand, blocks, gpu, commit).sms;
  }
};

}  // namespace

std::unique_ptr<Policy> make_most_room(const DeviceSpec&, InitialState) {
  return std::make_unique<MostRoom>();
}

}  // namespace tbsched
