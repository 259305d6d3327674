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
  queue,  // behind another launch that waits
  stream,
  priority,  // behind a more urgent launch that waits
  hardware_queue,
  event,
  legacy_stream,
  grids,
  turn,  // the thread block scheduler is still with another launch
};

inline constexpr std::array<std::string_view, 15> kRefusalNames = {
    "none",           "slots",        "warps",         "registers", "shared_memory",
    "configuration",  "local_memory", "queue",         "stream",    "priority",
    "hardware_queue", "event",        "legacy_stream", "grids",     "turn",
};

constexpr std::string_view name(const Refusal refusal) {
  return kRefusalNames[static_cast<size_t>(refusal)];
}

}  // namespace tbsched
