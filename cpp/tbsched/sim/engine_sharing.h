// A copy engine that several processes use: they take turns, as on the SMs.
//
// An example: two processes copy 64 MB each to the GPU at once. After 1.05 ms the engine stops the
// copy of the first one, which stands still, and goes on with that of the second one.
//
// The rules:
//   1. A process has the engine from the begin of a copy until none of its copies follows, for a
//      slice at most, if another process wants it.
//   2. Processes take turns in the order in which they began to want the engine.
//   3. A copy that is not stopped takes as long as without sharing.
// Source: traces processes; docs/explanation/processes.md.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/device_spec.h"

namespace tbsched {

// Returns the end of a slice that is extended by whole slices until it reaches `until_ns`.
int64_t extended_slice_end_ns(int64_t slice_ends_ns, int64_t until_ns, int64_t slice_ns);

class EngineTurns {
 public:
  explicit EngineTurns(const DeviceSpec& spec)
      : slice_ns_(spec.engine_slice_ns),
        switch_ns_(spec.engine_switch_ns),
        pause_ns_(spec.host_copy_latency_ns + spec.host_copy_gap_ns) {}

  // Lets a process move bytes for `bytes_ns` from `start_ns` on, as known at `now`.
  void begin(int32_t process, int64_t now, int64_t start_ns, int64_t bytes_ns);
  // Returns when the process's copy ends, as far as is known: another process may still stop it.
  int64_t ends_ns(int32_t process) const;

 private:
  // A copy that wants the engine.
  struct Claim {
    int32_t process;
    int64_t start_ns;  // it moves no bytes before
    int64_t rest_ns;   // how long it still moves bytes
  };

  static constexpr int32_t kNobody = -1;

  // Simulates the engine until `until_ns`, or until a copy of `process` ends if that is earlier.
  // Returns the time.
  int64_t advance(int64_t until_ns, int32_t process);

  int64_t slice_ns_;
  int64_t switch_ns_;
  int64_t
      pause_ns_;  // a copy within this time after another one of its process continues the slice
  // The copy that ended last.
  struct EndedCopy {
    int32_t process;
    int64_t ended_ns;
    int64_t slice_ends_ns;
  };

  std::vector<Claim> claims_;  // the first has the engine
  int64_t now_ = 0;
  int32_t owner_ = kNobody;    // the process whose slice it is
  int64_t slice_ends_ns_ = 0;  // of the owner
  EndedCopy last_copy_{.process = kNobody, .ended_ns = 0, .slice_ends_ns = 0};
};

}  // namespace tbsched
