#include "tbsched/engine/together/capacity.h"

#include <stdexcept>
#include <string>

#include "tbsched/engine/block_scheduler.h"
#include "tbsched/engine/observer.h"

namespace tbsched {
namespace {

class LastLaunch final : public Observer {
 public:
  void on_place(const PlacedBlocks& placed) override {
    smid.assign(placed.sms.begin(), placed.sms.end());
  }

  std::vector<int32_t> smid;
};

}  // namespace

FreeRoom capacity(const Model& model, const std::span<const Launch> beside, const Launch& launch,
                  const InitialState state) {
  BlockScheduler scheduler(model, state);
  Observer nobody;
  for (const Launch& other : beside) {
    const int32_t index = scheduler.add(other, BlockScheduler::Leaving::together);
    scheduler.enqueue(index);
    scheduler.place(nobody);
    if (!scheduler.placed_whole(index)) {
      throw std::invalid_argument("beside: launch " + std::to_string(index) +
                                  " is not resident whole beside those before it");
    }
  }
  Launch asked = launch;
  asked.cooperative = false;
  const int32_t index = scheduler.add(asked, BlockScheduler::Leaving::together);
  scheduler.enqueue(index);
  LastLaunch last;
  scheduler.place(last);

  FreeRoom found{.smid = std::move(last.smid), .refusals = {}};
  const Demand& demand = scheduler.demand(index);
  const GpuState& gpu = scheduler.gpu();
  for (int32_t sm = 0; sm < gpu.spec().sms; ++sm) {
    const Room room = gpu.admits(demand) ? gpu.room(sm, demand) : Room{0, Refusal::local_memory};
    found.refusals.push_back(room.blocks > 0 ? Refusal::none : room.limiter);
  }
  return found;
}

}  // namespace tbsched
