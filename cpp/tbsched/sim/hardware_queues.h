// The hardware queues through which launches reach the GPU, and the front ends that look at them.
//
// Each queue is first in, first out: only the launch at its head may go on, and only once its front
// end sees that it need not wait. Meanwhile it holds up everything behind it.
//
// Front ends look at the queues of which the head waits, each at its own. Where several of them
// wait, a front end goes round, and sees later that one need not. Source: traces ways/waiting;
// docs/explanation/time-on-an-h200.md.
//
// Which queue a launch takes is the driver's choice, made at the launch call. A stream goes on with
// its queue as long as it was the last one to use it. Else it takes the queue that was used longest
// ago: of those from which the GPU has taken everything, or, where there is none, of all. Among
// queues that were never used, and always for a graph, it prefers the front end that did not get
// the launch before. Source: traces h200-timed/queues, ways/waiting;
// docs/explanation/time-on-an-h200.md says how often it is right.
//
// Between the turns of its process, and shortly before others come, the GPU looks neither at a
// queue that was empty and gets something, nor at a launch that waited for a copy engine.
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
  // They outlive it.
  HardwareQueues(const DeviceSpec& spec, const Clock& clock, OpGraph& graph);

  // Gives the next launch of a stream a queue, and returns its number.
  int32_t use(int32_t stream);
  // Puts a launch into the queue of its stream.
  void enqueue(int32_t launch);
  int32_t queue_of_launch(const int32_t launch) const { return queued(launch).queue; }
  int64_t seen_ns(const int32_t launch) const { return queued(launch).seen_ns; }
  // When the GPU gets a launch that has been issued.
  int64_t reaches_gpu_ns(const int32_t launch) const {
    const Operation& found = graph_[launch];
    return found.issued_ns + (found.graph < 0 ? spec_.launch_latency_ns : spec_.graph_latency_ns);
  }

  // Whether the launch at a head has reached the GPU, which sees that it waits for nothing.
  bool is_ready(const int32_t launch) const {
    return graph_.waits_for_nothing(launch) && queued_[launch].seen_ns <= clock_.now() &&
           reaches_gpu_ns(launch) <= clock_.now();
  }
  int32_t count() const { return static_cast<int32_t>(queues_.size()); }
  // The launch at the head of a queue, or -1.
  int32_t head(const int32_t queue) const {
    return queues_[queue].empty() ? -1 : queues_[queue].first();
  }
  // The head leaves its queue. What a host waits for, a place behind it, is added to `over`.
  void pass(int32_t queue, std::vector<int32_t>& over);
  // Lets a launch begin so long after it could.
  void delay(int32_t launch, int64_t delay_ns) { queued(launch).delay_ns = delay_ns; }
  // Returns whether the delay of a ready launch begins now.
  bool begins_delay(int32_t launch);

  // A launch need not wait any more: its front end sees it at once, or later.
  void notice(int32_t launch);
  // The same of one that waited for a copy engine, which the GPU watches for only a while. Returns
  // whether the GPU looks at it. `idle_since_ns`: since when no launch runs, if none does.
  bool notice_after_copy(int32_t launch, std::optional<int64_t> idle_since_ns);

  // Whether the queue of a stream's next launch has no place; none: of a new stream.
  bool is_full_for(std::optional<int32_t> stream) const;
  // Lets a host wait for a place there, which is the operation `wait`.
  void await_place(std::optional<int32_t> stream, int32_t wait);

  // From now on the GPU does not look at what comes to empty queues.
  void back_off() { backs_off_ = true; }
  bool backs_off() const { return backs_off_; }
  // It looks at all again.
  void look_at_all();
  // Whether the GPU backs off from what is issued behind this operation, or none.
  bool goes_unnoticed_behind(int32_t operation) const;
  // Whether another launch than this one waits in a queue that the GPU looks at.
  bool any_waits_but(int32_t launch) const;
  // A copy or record waits behind a launch, or does so no more.
  void note_behind_launch(const int32_t change) { behind_launches_ += change; }
  size_t unnoticed() const { return unnoticed_.size(); }
  // Returns when the first pending launch has reached the GPU; kNever: there is none.
  int64_t first_arrival_ns() const;
  // Returns when the first launch is ready, or may be if `stirring` ones become so; kNever: none.
  int64_t first_ready_ns(bool looks_at_all, bool stirring) const;

 private:
  struct Queued {
    int32_t queue = -1;
    int64_t seen_ns = 0;  // when the GPU sees that it need not wait any more
    int64_t delay_ns = 0;
  };
  struct Queue {
    std::vector<int32_t> launches;
    size_t head = 0;
    int64_t last_use = 0;      // counts uses of all queues
    int32_t last_stream = -1;  // counts streams
    bool goes_unnoticed = false;

    bool empty() const { return head == launches.size(); }
    int32_t first() const { return launches[head]; }
  };
  // A part of the GPU that looks at some of the queues.
  struct FrontEnd {
    int32_t filled = 0;        // so many of them are not empty
    int32_t waiting = 0;       // so many of them wait
    int64_t last_seen_ns = 0;  // when it last saw that one of several need not
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
  int32_t queue_of(int32_t stream) const;
  int32_t choose() const;
  void join(int32_t launch, int64_t seen_ns);
  // Whether nothing is left in it once a launch has come that is on the way.
  bool runs_empty(const Queue& queue) const {
    return queue.empty() ||
           (queue.head + 1 == queue.launches.size() && graph_[queue.launches.back()].pending == 0);
  }

  const DeviceSpec& spec_;
  const Clock& clock_;
  OpGraph& graph_;
  std::vector<Queued> queued_;  // by operation, as far as any was put into a queue
  std::vector<Queue> queues_;
  std::vector<int32_t> queue_of_stream_;  // that it used last, or -1
  std::vector<FrontEnd> front_ends_;
  int64_t uses_ = 0;
  int32_t last_queue_ = -1;  // that was used
  bool backs_off_ = false;
  int32_t behind_launches_ = 0;        // copies and records
  std::vector<int32_t> unnoticed_;     // launches that are in no queue yet
  std::vector<int32_t> after_copies_;  // launches that waited for an engine, and go unnoticed
  // What hosts wait for, by the launch that must leave its queue.
  std::unordered_multimap<int32_t, int32_t> places_awaited_;
};

}  // namespace tbsched
