// The hardware queues through which launches reach the GPU, and the front ends that look at them.
//
// Each queue is first in, first out: only the launch at its head may go on, and only once its front
// end sees that it need not wait. Meanwhile it holds up everything behind it.
//
// A front end looks at those of its queues whose head waits. If several of them wait, it polls them
// in turn, and sees later that a head is ready. Source: traces ways/waiting;
// docs/explanation/time-on-an-h200.md.
//
// The driver chooses the queue of a launch at the launch call. A stream keeps its queue while it
// was the last one to use it. Else it takes the least recently used queue: of the queues that are
// empty, or, if there is none, of all. Among queues that were never used, and always for a graph,
// the driver prefers the front end that did not get the last launch. Source: traces
// h200-timed/queues, ways/waiting; docs/explanation/time-on-an-h200.md says how often this is
// right.
//
// The GPU backs off between the turns of its process, and shortly before other processes come: it
// ignores launches that come to an empty queue, and launches that waited for a copy engine. They
// are deferred.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/sim/clock.h"
#include "tbsched/sim/op_graph.h"

namespace tbsched {

class HardwareQueues {
 public:
  // The arguments outlive it.
  HardwareQueues(const DeviceSpec& spec, const Clock& clock, OpGraph& graph);

  // Chooses the queue of a stream's next launch, and returns its number.
  int32_t use(int32_t stream);
  // Puts a launch into the queue of its stream.
  void enqueue(int32_t launch);
  // Returns the queue that a launch took, or -1.
  int32_t queue_of_launch(const int32_t launch) const { return queued(launch).queue; }
  // Returns when the GPU sees that a launch is ready.
  int64_t seen_ns(const int32_t launch) const { return queued(launch).seen_ns; }
  // Returns when an issued launch reaches the GPU.
  int64_t reaches_gpu_ns(const int32_t launch) const {
    const Operation& found = graph_[launch];
    return found.issued_ns + (found.graph < 0 ? spec_.launch_latency_ns : spec_.graph_latency_ns);
  }

  // Returns whether the launch at a head has reached the GPU, which has seen that it waits for
  // nothing.
  bool is_ready(const int32_t launch) const {
    return graph_.waits_for_nothing(launch) && queued_[launch].seen_ns <= clock_.now() &&
           reaches_gpu_ns(launch) <= clock_.now();
  }
  int32_t count() const { return static_cast<int32_t>(queues_.size()); }
  // Returns the launch at the head of a queue, or -1.
  int32_t head(const int32_t queue) const {
    return queues_[queue].empty() ? -1 : queues_[queue].first();
  }
  // Pops the head of a queue. Waits of hosts for its place are added to `over`.
  void pass(int32_t queue, std::vector<int32_t>& over);
  // Delays the begin of a launch by this time after it is ready.
  void delay(int32_t launch, int64_t delay_ns) { queued(launch).delay_ns = delay_ns; }
  // Starts the delay of a ready launch, if it has one that has not been started. Returns whether it
  // did.
  bool start_delay(int32_t launch);

  // Sets when its front end sees that a launch has nothing left to wait for: at once, or later if
  // the front end polls other queues.
  void delay_detection(int32_t launch);
  // Sets when the GPU sees that a launch which waited for a copy engine is ready: it watches a copy
  // only for a while. Returns false if the launch is deferred. `idle_since_ns`: since when no
  // launch runs, if none does.
  bool notice_after_copy(int32_t launch, std::optional<int64_t> idle_since_ns);

  // Returns the queue that the next launch of a stream takes.
  int32_t queue_of(int32_t stream) const;
  // Returns the queue that a stream used last; -1: none.
  int32_t last_queue(const int32_t stream) const {
    return std::cmp_less(stream, queue_of_stream_.size()) ? queue_of_stream_[stream] : -1;
  }
  // Returns whether the stream has the queue that it used last.
  bool has_queue(const int32_t stream) const {
    const int32_t own = last_queue(stream);
    return own >= 0 && queues_[own].last_stream == stream;
  }
  // Returns whether the queue of a stream's next launch is full.
  bool is_full_for(const int32_t stream) const {
    return queues_[queue_of(stream)].places >= spec_.queue_places;
  }
  // Lets a host wait for a place in that queue, by the operation `wait`.
  void await_place(int32_t stream, int32_t wait);
  // Returns whether hosts wait for places.
  bool any_awaits_place() const { return !places_awaited_.empty(); }

  // Begins to back off: launches that come to empty queues are deferred.
  void back_off() { backs_off_ = true; }
  bool backs_off() const { return backs_off_; }
  // Ends the back-off: deferred launches join their queues.
  void end_back_off();
  // Returns whether the GPU defers records that are issued behind this operation, or behind none
  // (-1).
  bool defers_behind(int32_t operation) const;
  // Returns whether another launch than this one waits in a queue that the GPU looks at.
  bool any_waits_but(int32_t launch) const;
  // Adds to the number of copies and records that wait behind launches.
  void note_behind_launch(const int32_t change) { behind_launches_ += change; }
  size_t deferred() const { return deferred_.size(); }
  // Returns when the first pending launch reaches the GPU; kNever: there is none.
  int64_t first_arrival_ns() const;
  // Returns when the first launch is ready, or may be if `enabling` events are coming; kNever:
  // none.
  int64_t first_ready_ns(bool with_deferred, bool enabling) const;

 private:
  struct Queued {
    int32_t queue = -1;
    int64_t seen_ns = 0;  // when the GPU sees that it is ready
    int64_t delay_ns = 0;
  };
  struct Queue {
    std::vector<int32_t> launches;
    size_t head = 0;
    int32_t places = 0;        // that are taken
    int64_t last_use = 0;      // value of uses_ at the last use
    int32_t last_stream = -1;  // number of the stream
    bool is_deferred = false;

    bool empty() const { return head == launches.size(); }
    int32_t first() const { return launches[head]; }
  };
  // A part of the GPU that looks at some of the queues.
  struct FrontEnd {
    int32_t filled = 0;        // queues that are not empty
    int32_t waiting = 0;       // queues whose head waits
    int64_t last_seen_ns = 0;  // when it last saw that one of several heads is ready
  };

  Queued& queued(const int32_t launch) {
    if (std::cmp_greater_equal(launch, queued_.size())) queued_.resize(graph_.size());
    return queued_[launch];
  }
  const Queued& queued(const int32_t launch) const {
    static constexpr Queued kNotQueued;
    return std::cmp_less(launch, queued_.size()) ? queued_[launch] : kNotQueued;
  }
  int32_t front_end(const int32_t queue) const { return queue % spec_.front_ends; }
  // Returns the queue that a stream without one takes.
  int32_t choose() const;
  // Appends a launch to its queue. The GPU sees it at `seen_ns` at the earliest.
  void join(int32_t launch, int64_t seen_ns);
  // Returns whether the queue will be empty once the launch at its head, if it is ready, has been
  // taken.
  bool runs_empty(const Queue& queue) const {
    return queue.empty() ||
           (queue.head + 1 == queue.launches.size() && graph_[queue.launches.back()].pending == 0);
  }

  const DeviceSpec& spec_;
  const Clock& clock_;
  OpGraph& graph_;
  std::vector<Queued> queued_;  // by operation
  std::vector<Queue> queues_;
  std::vector<int32_t> queue_of_stream_;  // the queue that each stream used last, or -1
  std::vector<FrontEnd> front_ends_;
  int64_t uses_ = 0;
  int32_t last_queue_ = -1;  // used last
  bool backs_off_ = false;
  int32_t behind_launches_ = 0;        // copies and records behind launches
  std::vector<int32_t> deferred_;      // launches that have not joined a queue yet
  std::vector<int32_t> after_copies_;  // launches that waited for an engine and are ignored for now
  // Waits of hosts for a place, by the launch whose exit from its queue gives it.
  std::unordered_multimap<int32_t, int32_t> places_awaited_;
};

}  // namespace tbsched
