// Copies and memsets: when each ends.
//
// An example: two copies of 16 MB from the host to the GPU begin at once. The first ends after
// 0.3 ms, the second after 0.6 ms.
//
// The rules:
//   1. Each takes a latency, and then a time in proportion to its bytes.
//   2. Copies from the host to the GPU move their bytes one after the other, in the order in which
//      they begin. One that follows another in its graph or stream has no latency. The same goes
//      for copies from the GPU to the host.
//   3. Small copies from the host take less time, and neither wait nor are waited for so.
//   4. All others run at once: copies of different directions, copies within the GPU's memory, and
//      memsets. None of them takes room on an SM.
//
// Source: traces ways/copies; docs/explanation/graphs.md.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"

namespace tbsched {

class Transfers {
 public:
  explicit Transfers(const DeviceSpec& spec) : spec_(spec) {}

  // These return its number; numbers count from 0.
  int32_t add(const Copy& copy);
  int32_t add(const Memset& memset);
  bool empty() const { return needs_.empty(); }

  // It need not wait any more for other work. `after`: the last copy or memset that it waited for,
  // or -1 if that was none. Returns when it ends.
  int64_t begin(int32_t transfer, int32_t after, int64_t now);

  const std::vector<TransferTime>& times() const { return times_; }

 private:
  enum class Engine : uint8_t { none, to_gpu, from_gpu };
  struct Need {
    Engine engine;
    int64_t latency_ns;  // before it uses the engine
    int64_t bytes_ns;
  };

  int32_t add(const Need& need);
  Need need_of(const Copy& copy) const;

  const DeviceSpec& spec_;
  std::vector<Need> needs_;
  std::vector<TransferTime> times_;
  std::array<int64_t, 3> free_ns_{};  // of each engine
};

}  // namespace tbsched
