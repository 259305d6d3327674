// The question whether launches find room: launches come one after the other, and then a last one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tbsched {

// Launches that come before the last one, and launches that wait from the beginning: at most so
// many.
constexpr size_t kMostCounted = 5;
using BlocksOfEach = std::array<int16_t, kMostCounted>;

// A launch comes and finds room for all of its blocks. Or it waits: it takes all room that there
// is, and the rest of its blocks enters where others leave.
struct Arrival {
  int32_t launch;
  bool waits = false;

  auto operator<=>(const Arrival&) const = default;
};

// Blocks that wait, and may enter where others leave.
struct WaitingLaunch {
  int32_t launch;
  int32_t most;      // blocks of it
  int32_t together;  // blocks of a cluster
  int32_t on_tpc;    // blocks on a TPC, of a cluster that takes whole ones; else 1
  size_t from;       // the first stage at which it waits
  size_t place;      // in BlocksOfEach: its own, or that of its arrival

  bool in_tpcs() const { return on_tpc > 1; }
  // A cluster that takes whole TPCs has at most one block on an SM.
  int32_t most_on_sm() const { return in_tpcs() ? most / together : most; }
};

// A stage is an arrival, or after all of them the arrival of the last launch.
struct Query {
  std::vector<Arrival> coming;
  int32_t last = -1;
  std::vector<int32_t> leaving;    // launches of which any blocks may leave
  bool leave_before_last = false;  // false: what leaves then only gives the last one room
  std::vector<WaitingLaunch> entering;

  bool is_last(const size_t stage) const { return stage == coming.size(); }
  int32_t launch_at(const size_t stage) const {
    return is_last(stage) ? last : coming[stage].launch;
  }
};

}  // namespace tbsched
