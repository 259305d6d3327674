#include "tbsched/coresidency/capacity.h"

#include <numeric>
#include <stdexcept>
#include <string>

#include "tbsched/hardware/gpu/filled.h"
#include "tbsched/hardware/gpu/rooms.h"
#include "tbsched/sim/block_scheduler.h"
#include "tbsched/sim/observer.h"

namespace tbsched {
namespace {

// Counts the blocks that are placed on each SM.
class CountBySm final : public Observer {
 public:
  explicit CountBySm(std::vector<int32_t>& by_sm) : by_sm_(by_sm) {}

  void on_place(const PlacedBlocks& placed) override {
    for (const int32_t sm : placed.sms) ++by_sm_[sm];
  }

 private:
  std::vector<int32_t>& by_sm_;
};

// Returns the room of an SM for blocks of the demand, none while the GPU lacks local memory.
Room room_on(const int32_t sm, const GpuState& gpu, const Demand& demand) {
  return gpu.admits(demand) ? gpu.room(sm, demand) : Room{0, Refusal::local_memory};
}

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
  const DeviceSpec& spec = model.device().spec;
  Launch probe = launch;
  probe.cooperative = false;
  probe.blocks = spec.sms * spec.blocks_per_sm;
  if (launch.cluster > 0) probe.blocks -= probe.blocks % launch.cluster;
  const int32_t index = scheduler.add(probe, BlockScheduler::Leaving::together);
  FreeRoom free{.blocks = 0, .by_sm = {}, .refusals = {}, .all = {}};
  const GpuState& gpu = scheduler.gpu();
  const Demand& demand = scheduler.demand(index);
  // Whether the number of blocks follows from the rooms, so that none need be placed.
  const bool is_known = room_falls_by_one(spec) && gpu.admits(demand);
  if (is_known) {
    free.by_sm = blocks_that_fit_by_sm(gpu, demand);
  } else {
    free.by_sm.resize(spec.sms);
    scheduler.enqueue(index);
    CountBySm count(free.by_sm);
    scheduler.place(count);
  }
  for (int32_t sm = 0; sm < spec.sms; ++sm) {
    const Room room = room_on(sm, gpu, demand);
    // Blocks that were not placed still count as room.
    const int32_t remaining = is_known ? room.blocks - free.by_sm[sm] : room.blocks;
    const bool is_full = remaining == 0;
    free.refusals.push_back(is_full ? room.limiter : Refusal::none);
    free.all.push_back(set_of(free.refusals.back()) |
                       (is_full && gpu.admits(demand) ? gpu.limiters(sm, demand) : 0));
  }
  free.blocks = std::accumulate(free.by_sm.begin(), free.by_sm.end(), int64_t{0});
  return free;
}

}  // namespace tbsched
