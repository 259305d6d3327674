// A command of a controller to its banks.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tbsched::sm_sim {

enum class CommandKind : uint8_t { activate, read, write, precharge };
inline constexpr std::array<std::string_view, 4> kCommandNames = {"activate", "read", "write",
                                                                  "precharge"};

struct Command {
  int64_t cycle;  // of the DRAM clock
  int64_t row;
  int32_t controller;
  int32_t bank;
  int32_t column;  // of a read or write
  CommandKind kind;
  bool prefetch;
};

}  // namespace tbsched::sm_sim
