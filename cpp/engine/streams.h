// Streams, CUDA events and hardware queues: what the host has issued, and which launch may go on to
// the thread block scheduler.
//
// Streams are mapped to hardware queues in the order of their first use, cyclically. A queue is
// first in, first out: what is at its head waits for all work before it in its stream, for the
// event that it names and for the legacy stream, and meanwhile holds up everything behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/sequence.h"
#include "model/timeline.h"
#include "policy/launch_order.h"

namespace tbsched {

class Streams {
 public:
  Streams(int32_t hardware_queues, const LaunchOrder& order)
      : queues_(hardware_queues), order_(order) {}

  // The host issues it. Launches are numbered as they come.
  void issue(const Event& event, int64_t now);
  // Passes the events that have happened; then takes, if there is room for a grid, the launch that
  // may start: of several the first in the order of launches.
  std::optional<int32_t> take(bool room_for_grid, int64_t now);
  // The last block of a launch has left.
  void end(int32_t launch, int64_t now);

  int32_t hardware_queue(int32_t launch) const { return items_[item_of_launch_[launch]].queue; }
  // What a launch that is taken now has waited for since its issue.
  void append_waits(int32_t launch, int64_t now, std::vector<Wait>& waits) const;

 private:
  enum class Kind : uint8_t { launch, record, wait };
  // Everything that the host issues, in order. Indices are into items_, -1 for none.
  struct Item {
    Kind kind;
    int32_t launch = -1;  // itself; of an event: the launch before its record in the stream
    int32_t priority = 0;
    int32_t queue = 0;
    bool legacy = false;
    int32_t predecessor = -1;     // before it in its stream
    int32_t ahead = -1;           // before it in its queue
    int32_t record = -1;          // what a wait waits for
    int32_t last_launch = -1;     // the last launch before it in its stream
    int32_t last_wait = -1;       // the last wait before it in its stream, after last_launch
    int32_t last_legacy = -1;     // the last item of the legacy stream before it
    int32_t legacy_behind = -1;   // of the legacy stream: the last launch that it waited for,
    int64_t legacy_until_ns = 0;  // and until when
    int64_t issued_ns = 0;
    int64_t at_head_ns = 0;
    int64_t done_ns = -1;

    bool done() const { return done_ns >= 0; }
  };
  struct Stream {
    int32_t queue;
    int32_t last = -1;
    int32_t last_launch = -1;
    int32_t last_wait = -1;
  };
  struct Queue {
    std::vector<int32_t> items;
    size_t head = 0;

    bool empty() const { return head == items.size(); }
  };

  void issue_launch(const Launch& launch, int64_t now);
  Stream& numbered(int32_t number);
  int32_t next_queue();
  int32_t push(Item item, Stream& stream, int64_t now);  // returns its index
  void pop(Queue& queue, int64_t now);
  void pass_events(int64_t now);
  bool ready(int32_t item) const;
  void finish(int32_t item, int64_t now);
  bool before(int32_t a, int32_t b) const;

  std::vector<Item> items_;
  std::vector<int32_t> item_of_launch_;
  std::unordered_map<int32_t, Stream> streams_;
  std::unordered_map<int32_t, int32_t> last_record_;  // by event
  std::vector<Queue> queues_;
  LaunchOrder order_;
  int32_t streams_used_ = 0;
  int32_t last_legacy_ = -1;
  int32_t first_undone_ = 0;
};

}  // namespace tbsched
