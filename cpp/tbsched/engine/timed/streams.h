// Streams, CUDA events and hardware queues: what the host has issued, and which launch may go on to
// the thread block scheduler.
//
// Launches reach the GPU through a few queues, each first in, first out: the launch at its head
// waits for all work before it in its stream, for the events that its stream waits for and for the
// legacy stream, and meanwhile holds up everything behind it. Recording an event and waiting for
// one take no place in a queue; a wait takes effect with the next launch of its stream.
//
// Which queue a launch takes is the driver's choice, made at the launch call. A stream goes on with
// its queue as long as it was the last one to use it. Else it takes the queue that was used longest
// ago: of those from which the GPU has taken everything, or, where there is none, of all.
// Source: traces h200-timed/queues; docs/explanation/time-on-an-h200.md says how often it is right.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/policy/launch_order.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"

namespace tbsched {

class Streams {
 public:
  explicit Streams(const DeviceSpec& spec);

  // The host issues it. Launches are numbered as they come.
  void issue(const Event& event, int64_t now);
  // Takes, if there is room for a grid, the launch that may start: of several the first in the
  // order of launches.
  std::optional<int32_t> take(bool room_for_grid, int64_t now);
  // The last block of a launch has left.
  void end(int32_t launch, int64_t now);
  // When something changes here by itself after `now`; kNever: it does not.
  int64_t next_change(int64_t now) const;

  int32_t hardware_queue(int32_t launch) const { return items_[item_of_launch_[launch]].queue; }
  // What a launch that is taken now has waited for since it reached the GPU.
  void append_waits(int32_t launch, int64_t now, std::vector<Wait>& waits) const;

 private:
  enum class Kind : uint8_t { launch, record, wait };
  // Everything that the host issues, in order. Indices are into items_, -1 for none.
  struct Item {
    Kind kind;
    int32_t launch = -1;  // itself; of an event: the launch before its record in the stream
    int32_t priority = 0;
    int32_t queue = -1;  // of a launch
    bool legacy = false;
    int32_t unmet = 0;             // what it still waits for, but for the legacy stream's own items
    int32_t first_dependent = -1;  // into dependents_
    int32_t ahead = -1;            // before it in its queue
    int32_t record = -1;           // what a wait waits for
    int32_t last_launch = -1;      // the last launch before it in its stream
    int32_t last_wait = -1;        // the last wait before it in its stream, after last_launch
    int32_t last_legacy = -1;      // the last item of the legacy stream before it
    int32_t legacy_behind = -1;    // of the legacy stream: the last launch that it waited for,
    int64_t legacy_until_ns = 0;   // and until when
    int64_t issued_ns = 0;
    int64_t at_head_ns = 0;
    int64_t done_ns = -1;

    bool done() const { return done_ns >= 0; }
  };
  struct Dependent {
    int32_t item;
    int32_t next;
  };
  struct StreamState {
    int32_t queue = -1;
    int32_t last = -1;
    int32_t last_launch = -1;
    int32_t last_wait = -1;
  };
  struct Queue {
    std::vector<int32_t> items;
    size_t head = 0;
    int64_t last_use = 0;      // counts launch calls
    int32_t last_stream = -1;  // counts streams

    bool empty() const { return head == items.size(); }
  };
  // When an item counts as done, a while after it happened.
  struct Ending {
    int64_t time_ns;
    int32_t item;
    bool is_signal = false;  // not itself: the event that it, a wait, waits for

    // The first is at the top of a heap.
    bool operator<(const Ending& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : item > other.item;
    }
  };

  void issue(const Launch& launch, int64_t now);
  void issue(const RecordEvent& record, int64_t now);
  void issue(const WaitEvent& wait, int64_t now);
  int32_t stream_named(std::optional<int32_t> name);         // into streams_
  int32_t add(Item item, StreamState& stream, int64_t now);  // returns its index
  void depend(int32_t item, int32_t on);
  void enqueue(int32_t item, StreamState& stream, int32_t stream_number);
  int32_t choose_queue(const StreamState& stream, int32_t stream_number) const;
  bool ready(int32_t item, int64_t now) const;
  bool before(int32_t a, int32_t b) const;
  int64_t reaches_gpu_ns(const int32_t item) const {
    return items_[item].issued_ns + launch_latency_ns_;
  }
  void settle(int64_t now);
  void finish(int32_t item, int64_t now);
  int64_t known_ns_of(int32_t done, int32_t dependent) const;
  void met(int32_t item);  // one of what it waits for

  int64_t launch_latency_ns_;
  int64_t completion_latency_ns_;
  int64_t event_latency_ns_;
  int64_t legacy_latency_ns_;
  LaunchOrder order_;
  std::vector<Item> items_;
  std::vector<Dependent> dependents_;
  std::vector<int32_t> item_of_launch_;
  std::unordered_map<int32_t, int32_t> number_of_stream_;
  std::vector<StreamState> streams_;
  std::unordered_map<int32_t, int32_t> last_record_;  // by event
  std::vector<Queue> queues_;
  std::priority_queue<Ending> endings_;
  std::vector<int32_t> finished_;  // whose dependents are to be told
  size_t reached_ = 0;             // launches that have reached the GPU
  int32_t last_legacy_ = -1;
  int64_t other_done_ns_ = 0;  // when the last item outside the legacy stream was
  int32_t first_undone_ = 0;
};

}  // namespace tbsched
