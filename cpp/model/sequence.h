// What a user asks of the GPU: kernels launched and released, in order. Values only, no behaviour.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tbsched {

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
};

struct Release {
  int32_t launch = 0;  // index among the launches of the sequence
};

using Event = std::variant<Launch, Release>;
using Sequence = std::vector<Event>;

}  // namespace tbsched
