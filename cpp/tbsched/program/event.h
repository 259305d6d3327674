// What a user asks of the GPU, in the order in which the host issues it. Values only, no behaviour.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tbsched {

// CUDA's default stream: it waits for earlier work of all streams and holds up their later work.
inline constexpr int32_t kLegacyStream = -1;

struct Launch {
  int32_t blocks = 1;
  int32_t threads = 32;       // per block
  int32_t registers = 16;     // per thread, as the driver reports them
  int32_t shared_memory = 0;  // bytes per block, static + dynamic, without the runtime's reserve
  int32_t local_memory = 0;   // bytes per thread
  std::optional<int32_t>
      carveout;                   // percent of the largest configuration; none: the driver chooses
  int32_t cluster = 1;            // blocks per cluster
  std::optional<int32_t> stream;  // none: a stream of its own
  int32_t priority = 0;           // lower is more urgent, as in CUDA
  // How long each block runs: one value per block, or one for all; none: until released.
  std::vector<int64_t> duration_ns = {};
};

struct Release {
  int32_t launch = 0;  // index among the launches of the sequence
};

// All work before it in the stream has ended.
struct RecordEvent {
  int32_t event = 0;
  int32_t stream = 0;
};

// Later work of the stream waits for the most recent record of the event that comes before.
struct WaitEvent {
  int32_t event = 0;
  int32_t stream = 0;
};

using Event = std::variant<Launch, Release, RecordEvent, WaitEvent>;
using Sequence = std::vector<Event>;

}  // namespace tbsched
