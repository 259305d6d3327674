// The SM with room for most blocks of the launch; the preferred one among equals.
#include <algorithm>

#include "policy/levels.h"

namespace tbsched {
namespace {

class MostRoom final : public Policy {
 public:
  explicit MostRoom(const Topology& topology)
      : preference_(topology.sm_preference), levels_(topology, preference_) {}

  size_t place(const Demand& demand, const GpuState& gpu, Rooms& rooms, const Commit& commit,
               const std::span<int32_t> sms) override {
    levels_.fill(demand, static_cast<int32_t>(sms.size()), gpu, rooms, commit);
    auto next = sms.begin();
    for (size_t k = 0; k < levels_.count(); ++k) {
      const std::span<const uint8_t> level = levels_.level(k);
      // Whole levels of an idle GPU.
      if (std::ranges::all_of(level, [](const uint8_t blocks) { return blocks == 1; })) {
        next = std::ranges::copy(preference_, next).out;
        continue;
      }
      for (size_t rank = 0; rank < level.size(); ++rank) {
        next = std::fill_n(next, level[rank], preference_[rank]);
      }
    }
    return static_cast<size_t>(levels_.blocks());
  }

 private:
  std::vector<int32_t> preference_;
  Levels levels_;
};

}  // namespace

std::unique_ptr<Policy> make_most_room(const DeviceSpec& spec, InitialState) {
  return std::make_unique<MostRoom>(spec.topology);
}

}  // namespace tbsched
