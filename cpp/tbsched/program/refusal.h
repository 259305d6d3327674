// Why a thread block waits. Every refusal has one of these causes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tbsched {

enum class Refusal : uint8_t {
  none,
  slots,
  warps,
  registers,
  shared_memory,
  configuration,
  local_memory,
  queue,  // behind another waiting launch
  stream,
  priority,  // behind a more urgent waiting launch
  hardware_queue,
  event,
  legacy_stream,
  grids,
  turn,         // the thread block scheduler has not turned to this launch yet
  cooperative,  // no room for all blocks at once
  trigger,      // a programmatic launch waits for triggers of the launch before it
  node,         // waits for a node of its graph
  first_use,    // a kernel is being loaded
  policy,       // a policy of the caller's own chose no SM, though one has room
  value,        // its stream waits for a value in memory
  host,         // the host never calls; only of a launch that never starts
  partition,    // not an SM of its partition; never why a launch waits
};

inline constexpr std::array<std::string_view, 23> kRefusalNames = {
    "none",          "slots",  "warps",  "registers",   "shared_memory",  "configuration",
    "local_memory",  "queue",  "stream", "priority",    "hardware_queue", "event",
    "legacy_stream", "grids",  "turn",   "cooperative", "trigger",        "node",
    "first_use",     "policy", "value",  "host",        "partition",
};

// Returns the name of a cause in Python and in trace files.
constexpr std::string_view name(const Refusal refusal) {
  return kRefusalNames[static_cast<size_t>(refusal)];
}

// Returns whether a cause is a resource of a single SM that is used up there.
constexpr bool is_resource_of_sm(const Refusal refusal) {
  return refusal >= Refusal::slots && refusal <= Refusal::configuration;
}

// A set of causes, a bit each.
using Refusals = uint32_t;

// Returns the set that has this cause alone.
constexpr Refusals set_of(const Refusal refusal) {
  static_assert(kRefusalNames.size() <= 32);
  return Refusals{1} << static_cast<uint32_t>(refusal);
}

}  // namespace tbsched
