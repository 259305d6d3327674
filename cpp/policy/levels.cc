#include "policy/levels.h"

#include <algorithm>

namespace tbsched {

Levels fill_levels(const Demand& demand, const int32_t blocks, const GpuState& gpu,
                   const Commit& commit) {
  const auto& order = gpu.spec().topology.sm_preference;
  std::vector<int32_t> room(order.size());
  std::ranges::transform(order, room.begin(),
                         [&](const int32_t sm) { return gpu.room(sm, demand).blocks; });

  Levels levels;
  const auto left = [&] { return blocks - static_cast<int32_t>(levels.sms.size()); };
  for (int32_t level = *std::ranges::max_element(room); level > 0 && left() > 0; --level) {
    for (size_t i = 0; i < order.size() && left() > 0; ++i) {
      // In a gap of contiguous memory a block can leave the SM as much room as before.
      while (room[i] == level && left() > 0) {
        commit(order[i]);
        levels.sms.push_back(order[i]);
        room[i] = gpu.room(order[i], demand).blocks;
      }
    }
    levels.ends.push_back(levels.sms.size());
    levels.last_is_whole = std::ranges::find(room, level) == room.end();
  }
  return levels;
}

}  // namespace tbsched
