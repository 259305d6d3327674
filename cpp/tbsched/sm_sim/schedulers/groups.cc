#include "tbsched/sm_sim/schedulers/groups.h"

#include <algorithm>

namespace tbsched::sm_sim {

std::vector<Warps> groups_of_blocks(const Config& config, const CoreShape& shape) {
  const int32_t blocks = std::min(
      (config.group_warps + shape.warps_per_block - 1) / shape.warps_per_block, shape.places);
  std::vector<Warps> groups(static_cast<size_t>(shape.places / blocks));
  for (int32_t place = 0; place < shape.places; ++place) {
    const size_t group = std::min(static_cast<size_t>(place / blocks), groups.size() - 1);
    groups[group] |= shape.warps_at(place);
  }
  return groups;
}

std::vector<Warps> groups_of_warps(const Config& config, const CoreShape& shape) {
  std::vector<Warps> groups;
  const int32_t warps = shape.places * shape.warps_per_block;
  for (int32_t first = 0; first < warps; first += config.group_warps) {
    groups.push_back(warps_from(first, std::min(config.group_warps, warps - first)));
  }
  return groups;
}

}  // namespace tbsched::sm_sim
