#include "tbsched/sm_sim/network.h"

#include <algorithm>

namespace tbsched::sm_sim {
namespace {

// A node has a link in, a link out and one to each side.
enum Link : int32_t { kIn, kOut, kEast, kWest, kSouth, kNorth, kLinks };

// Adds the links of the XY route between two nodes of a mesh.
void add_route(std::vector<int32_t>& links, const int32_t from, const int32_t to,
               const int32_t width) {
  int32_t node = from;
  const auto step = [&](const Link link, const int32_t by) {
    links.push_back(node * kLinks + link);
    node += by;
  };
  step(kIn, 0);
  while (node % width < to % width) step(kEast, 1);
  while (node % width > to % width) step(kWest, -1);
  while (node / width < to / width) step(kSouth, width);
  while (node / width > to / width) step(kNorth, -width);
  step(kOut, 0);
}

// Nodes by core and by slice.
struct Nodes {
  std::vector<int32_t> cores;
  std::vector<int32_t> slices;
};

// Returns the node of each core and of each slice.
Nodes nodes_of(const Config& config) {
  Nodes nodes{{}, controller_nodes(config)};
  for (int32_t node = 0; static_cast<int32_t>(nodes.cores.size()) < config.cores; ++node) {
    if (std::ranges::find(nodes.slices, node) == nodes.slices.end()) nodes.cores.push_back(node);
  }
  return nodes;
}

}  // namespace

std::vector<int32_t> controller_nodes(const Config& config) {
  std::vector<int32_t> nodes;
  for (int32_t controller = 0; controller < config.controllers; ++controller) {
    if (config.crossbar != 0) {
      nodes.push_back(config.cores + controller);
    } else if (config.controllers_at_edges != 0) {
      const int32_t in_first_row = (config.controllers + 1) / 2;
      const bool is_in_last_row = controller >= in_first_row;
      const int32_t in_row = is_in_last_row ? config.controllers - in_first_row : in_first_row;
      const int32_t column =
          (controller - (is_in_last_row ? in_first_row : 0)) * config.mesh_width / in_row;
      nodes.push_back(column + (is_in_last_row ? config.mesh_width * (config.mesh_height - 1) : 0));
    } else {
      const int32_t all = config.mesh_width * config.mesh_height;
      nodes.push_back((2 * controller + 1) * all / (2 * config.controllers));
    }
  }
  return nodes;
}

Network::Network(const Config& config, const Clocks& clocks, const bool to_cores)
    : slices_(config.controllers),
      cycle_(clocks.network),
      hop_(clocks.network * config.router_cycles) {
  const Nodes nodes = nodes_of(config);
  for (const int32_t core : nodes.cores) {
    for (const int32_t slice : nodes.slices) {
      routes_.push_back(static_cast<int32_t>(links_.size()));
      const int32_t from = to_cores ? slice : core, to = to_cores ? core : slice;
      if (config.crossbar != 0) {
        links_.push_back(from * kLinks + kIn);
        links_.push_back(to * kLinks + kOut);
      } else {
        add_route(links_, from, to, config.mesh_width);
      }
    }
  }
  routes_.push_back(static_cast<int32_t>(links_.size()));
  free_.assign(static_cast<size_t>(std::ranges::max(links_)) + 1, 0);
}

}  // namespace tbsched::sm_sim
