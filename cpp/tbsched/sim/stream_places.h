// The work of streams for which a call waits, though their hardware queue has a place.
//
// An example: behind a kernel that runs, a stream has 55 times a host function and a launch. Its
// next function is taken, and the launch call after that waits for the kernel.
//
// The rules:
//   1. Host functions part the launches of a hardware queue into stretches, and the copies of each
//      engine. At most spec.stream_stretches of the launches are pending, and as many of the copies
//      of each engine: a call that would begin another one waits until the first is over. Records
//      of events without timing are in no stretch.
//   2. Waits for events between two functions of a stream are a stretch of a third kind, from the
//      second function on.
//   3. Copies of an engine have spec.queue_places places of their own in each hardware queue.
//   4. A value, or a record with timing, goes where the work before it in the stream went: to
//      launches, or to copies.
//
// Copies use no hardware queue: they count where the stream's last launch went, or, in a stream
// without any, by themselves. That a function parts the work of other streams, but only if its own
// stream had work since the function before, is assumed.
//
// Source: traces hosts/filled-h200; docs/explanation/hosts.md.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/sim/hardware_queues.h"
#include "tbsched/sim/op_graph.h"

namespace tbsched {

class StreamPlaces {
 public:
  enum class Kind : uint8_t { work, value, host_function, wait };
  struct Entry {
    Kind kind;
    int32_t engine = -1;  // of a copy; -1: it goes through a hardware queue
  };

  // The arguments outlive it.
  StreamPlaces(const DeviceSpec& spec, const OpGraph& operations, const HardwareQueues& queues)
      : spec_(spec), operations_(operations), hardware_queues_(queues) {}

  // Notes that an operation was issued to a stream.
  void add(int32_t stream, Entry entry, int32_t operation);
  // Returns what must be over before a call issues such an entry; none: nothing.
  std::optional<int32_t> awaited(int32_t stream, Entry entry);

 private:
  static constexpr int32_t kLaunches = -1;
  static constexpr int32_t kWaits = -2;
  struct Lane {
    std::deque<int32_t> stretches;  // the last operation of each
    std::deque<int32_t> copies;
    bool is_parted = true;  // a function was issued after its last operation
  };
  using OfQueue = std::map<int32_t, Lane>;  // by engine
  struct OfStream {
    int32_t last = kLaunches;            // where the last work went
    std::optional<Kind> last_kind = {};  // of the last work or function
    std::optional<int32_t> wait = {};    // the last one behind a function
  };

  // Returns what is known of a stream, which is added if it is new.
  OfStream& of(int32_t stream);
  // Returns the lanes of the hardware queue that an entry of a stream goes through, or counts for.
  OfQueue& queue(int32_t stream, const Entry& entry);
  // Returns a lane of a queue, after it has forgotten operations that are done.
  Lane& pending(OfQueue& of_queue, int32_t lane) const;

  const DeviceSpec& spec_;
  const OpGraph& operations_;
  const HardwareQueues& hardware_queues_;
  std::vector<OfStream> streams_;
  std::unordered_map<int32_t, OfQueue> queues_;  // ~stream: copies of one that used no queue
};

}  // namespace tbsched
