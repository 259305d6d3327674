// Copies and memsets: when each ends.
//
// An example: two copies of 16 MB from the host to the GPU begin at once. The first ends after
// 0.3 ms, the second after 0.6 ms.
//
// The rules:
//   1. Each takes a latency, and then a time in proportion to its bytes.
//   2. Copies from the host to the GPU move their bytes one after the other, in the order in which
//      they begin. One that follows another in its graph has no latency. The same goes for copies
//      from the GPU to the host.
//   3. Small copies from the host take less time, and neither wait nor are waited for so.
//   4. All others run at once: copies of different directions, copies within the GPU's memory, and
//      memsets. None of them takes room on an SM.
//
// Source: traces ways/copies; docs/explanation/graphs.md.
#pragma once

#include <array>
#include <cstdint>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"

namespace tbsched {

class Transfers {
 public:
  explicit Transfers(const DeviceSpec& spec) : spec_(spec) {}

  // A copy or memset need not wait any more for other work. `after`: the last copy or memset that
  // it waited for, or null if that was no such node. Returns when it ends.
  int64_t begin(const Node& node, const Node* after, int64_t now);

 private:
  int64_t begin(const Copy& copy, const Node* after, int64_t now);
  bool is_small(const Copy& copy) const;

  const DeviceSpec& spec_;
  std::array<int64_t, 2> engine_free_ns_{};  // to the GPU, and from it
};

}  // namespace tbsched
