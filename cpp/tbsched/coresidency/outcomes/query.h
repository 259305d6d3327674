// A query: whether a last launch finds room after other launches have arrived.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tbsched {

// The most launches whose blocks an outcome counts: those that arrive before the last one, and
// those that wait from the beginning.
constexpr size_t kMaxCounted = 5;
using BlocksOfEach = std::array<int16_t, kMaxCounted>;

// A launch arrives and finds room for all of its blocks. With `waits`, it takes all room that there
// is, and the rest of its blocks enters when others leave.
struct Arrival {
  int32_t launch;
  bool waits = false;

  auto operator<=>(const Arrival&) const = default;
};

// A launch with waiting blocks, which may enter when others leave.
struct WaitingLaunch {
  int32_t launch;
  int32_t blocks;      // that wait
  int32_t cluster;     // blocks of a cluster
  int32_t on_tpc;      // blocks on a TPC, if clusters take whole TPCs; else 1
  size_t first_stage;  // at which it waits
  size_t index;        // in BlocksOfEach

  // Returns whether its clusters take whole TPCs.
  bool in_tpcs() const { return on_tpc > 1; }
  // Returns how many of its blocks can enter an SM at most: a cluster of whole TPCs has at most one
  // block on an SM.
  int32_t max_on_sm() const { return in_tpcs() ? blocks / cluster : blocks; }
};

// A stage is an arrival; the last stage is the arrival of the last launch.
struct Query {
  std::vector<Arrival> coming;
  int32_t last = -1;
  std::vector<int32_t> leaving;    // launches whose blocks may leave
  bool leave_before_last = false;  // false: blocks that leave then only give the last launch room
  std::vector<WaitingLaunch> entering;

  bool is_last(const size_t stage) const { return stage == coming.size(); }
  int32_t launch_at(const size_t stage) const {
    return is_last(stage) ? last : coming[stage].launch;
  }
};

}  // namespace tbsched
