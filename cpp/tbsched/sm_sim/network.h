// The network between cores and slices of L2: a mesh with XY routes, or a crossbar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/sm_sim/caches/cache.h"
#include "tbsched/sm_sim/clocks.h"
#include "tbsched/sm_sim/config.h"

namespace tbsched::sm_sim {

// Returns the node of each controller. Cores have the other nodes, in order.
std::vector<int32_t> controller_nodes(const Config& config);

// Returns how many flits carry these sectors of a line.
inline int32_t flits_of(const Config& config, const uint8_t sectors) {
  return 1 + (sectors_in(sectors) * config.sector_bytes() - 1) / config.channel_bytes;
}

// A network in one direction: requests and replies have one each, so that neither blocks the other.
// A packet takes the links of its route one after the other, each for a cycle per flit. In the
// routers, whose buffers are large enough, it waits behind packets that were sent before it.
class Network {
 public:
  // `to_cores`: replies from slices to cores; else requests from cores to slices.
  Network(const Config& config, const Clocks& clocks, bool to_cores);

  // Sends a packet between a core and a slice. Returns the tick in which its last flit arrives.
  // Must be called in the order of ticks.
  int64_t send(const int64_t tick, const int32_t core, const int32_t slice, const int32_t flits) {
    const size_t route = static_cast<size_t>(core * slices_ + slice);
    int64_t head = next_multiple(tick, cycle_);
    for (int32_t at = routes_[route]; at < routes_[route + 1]; ++at) {
      int64_t& free = free_[links_[at]];
      if (free > head) head = free;
      free = head + flits * cycle_;
      head += hop_;
    }
    return head + (flits - 1) * cycle_;
  }

 private:
  int32_t slices_;
  int64_t cycle_;                // ticks of a network cycle
  int64_t hop_;                  // ticks from router to router
  std::vector<int32_t> routes_;  // index of the first link, by core and slice; then the end
  std::vector<int32_t> links_;   // of all routes
  std::vector<int64_t> free_;    // tick from which on a link is free
};

}  // namespace tbsched::sm_sim
