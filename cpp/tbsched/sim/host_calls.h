// The host threads: which call is made next, and when.
//
// An example: thread 0 launches a kernel of 1 ms and synchronizes. Thread 1 launches another kernel
// after 0.5 ms. That one does not wait: only thread 0 does.
//
// The rules:
//   1. Each thread makes its calls in the order of the sequence, the next one when the last has
//      returned.
//   2. A call that synchronizes returns when the work that it names is over. Work that is issued
//      later does not count.
//   3. A launch call that uses a kernel first loads the kernel, then launches it. Until the kernel
//      is loaded, launch calls of other threads wait. Streams::load says what loading does on the
//      GPU.
//   4. A copy that blocks returns when it is over. In the legacy stream, launch calls of other
//      threads wait until then.
//   5. A launch call waits while its hardware queue has no place.
//   6. A launch call that needs more local memory than any before waits until all work is over,
//      and sets the memory up. Until then, launch calls of other threads wait.
//   7. A call that launches, copies or sets has the driver for a while. Such calls of other threads
//      wait for that, in the order in which they are made.
// Where the times of calls are given, whoever gave them has waited already: rules 2 and 4 to 7 do
// not count. At intervals, 5 to 7 do not.
//
// Source: traces hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"
#include "tbsched/sim/event_queue.h"

namespace tbsched {

// A time for each launch, ascending in each thread. Without `called_ns`, what is between two
// launches of a thread is called together with the first.
struct CallTimes {
  std::vector<int64_t> issue_ns;
  std::vector<int64_t> called_ns = {};  // of each event; that of one that launches is not used
};
// For each event the time since the last call of its thread returned, of a first call since 0.
struct CallGaps {
  std::vector<int64_t> gap_ns;
};
// A thread makes a launch call so long after its last one, or when that has returned. Calls take no
// time but where they wait, and what is no launch is called at once.
struct CallIntervals {
  int64_t interval_ns = 0;
};
using HostCalls = std::variant<CallTimes, CallGaps, CallIntervals>;

class Hosts {
 public:
  // What a thread has called.
  enum class Kind : uint8_t { launch, copy_within, copy_to, copy_from, set, record, wait };
  struct Practice {
    int32_t works = 0;   // launches, copies and memsets
    int32_t waits = 0;   // for work
    uint32_t kinds = 0;  // a bit for each
  };
  // What a call has done to load its kernel.
  enum class Load : uint8_t { none, asked, loaded };
  struct Call {
    int64_t due_ns;
    size_t event;
    int64_t began_ns;  // when it was due first
    // When the thread's last launch call was due, this one included; -1: there was none.
    int64_t launched_ns;
    Load load = Load::none;
    bool wants_place = false;  // in a hardware queue
    bool has_waited = false;
    bool has_turn = false;  // in the driver, at due_ns
    bool is_fresh = true;   // it has not yet taken what calls take longer at first
    Practice practice = {};
  };

  // The device and the queue outlive it.
  Hosts(const DeviceSpec& spec, HostCalls calls, EventQueue& events);

  // `first_launch`: of each event the number of its first launch, and how many there are.
  // Throws std::invalid_argument for times or gaps that make no sense.
  void start(const Sequence& sequence, std::vector<int32_t> first_launch);

  // The next call that is due by now. Throws std::invalid_argument for one beyond the range of
  // time.
  std::optional<Call> take();
  bool after_gaps() const { return gaps() != nullptr; }
  // Of each launch of an event when it is issued, as far as that is given.
  std::span<const int64_t> issue_ns(size_t event) const;

  // The first of these that is true comes before a call is made.
  bool loads(const Call& call, const Event& event) const;
  bool waits(const Call& call, const Event& event) const;
  bool is_locked_out(const Call& call, const Event& event) const;
  bool is_fresh(const Call& call, const Event& event) const;
  bool wants_driver(const Call& call, const Event& event) const;

  // Whether the call returns when its work is over.
  bool waits_for_end(const Event& event) const;

  // The call loads its kernel, and is due again when it goes on with that, or is done.
  void load(Call call, const Event& event);
  // The call waits for this item of Streams; none: nothing is left to wait for.
  void wait(const Call& call, const Event& event, std::optional<int32_t> item, int64_t now);
  // The call is due again when it has taken what it takes longer than usual.
  void take_longer(Call call, const Event& event);
  // The call is due again when it has the driver.
  void queue_for_driver(Call call);
  // The call waits for a place in a hardware queue.
  void wait_for_place(Call call, int32_t item);
  bool any_waits() const { return !waiting_.empty(); }
  // The item is over.
  void go_on(int32_t item, const Sequence& sequence, int64_t now);
  // The call waits until another thread has loaded its kernel or set up local memory.
  void lock_out(const Call& call) { locked_out_.push_back(call); }
  // Of each event its call; those that were never made begin and end at 0. Empty without gaps.
  std::vector<CallTime> calls() && { return std::move(called_); }
  // The call has been made, and ends, but for its own time, at `end_ns`.
  void made(const Call& call, const Event& event, int64_t end_ns);

 private:
  const CallTimes* times() const { return std::get_if<CallTimes>(&given_); }
  const CallGaps* gaps() const { return std::get_if<CallGaps>(&given_); }
  bool grows(const Event& event) const;
  bool launches(const size_t event) const {
    return first_launch_[event + 1] > first_launch_[event];
  }
  size_t next_of(const size_t event) const { return next_.empty() ? event + 1 : next_[event]; }
  void go_on(Call call, const Event& event, int64_t now);
  int64_t growth_ns(const Launch& launch) const;
  int64_t call_ns(const Event& event) const;
  // Whether its call takes as long as that of a launch.
  bool is_long(const Copy& copy) const;
  bool is_long(const Memset& memset) const;
  int64_t call_ns(const bool is_long) const {
    return is_long ? spec_.launch_call_ns : spec_.copy_call_ns;
  }
  // How much longer a call takes the thread that has made few of them.
  int64_t unpractised_ns(int32_t& made) const { return spec_.first_call_ns / ++made; }
  bool is_new(std::optional<int32_t> stream, Kind kind);
  void check(const Sequence& sequence) const;
  bool times_ascend(const Sequence& sequence) const;
  int64_t first_due_ns(size_t event) const;
  int64_t called_ns(size_t event) const;
  void push(Call next);
  void push_again(Call call, int64_t due_ns);
  void schedule(const Call& call);
  void hold_back(Call& call, int64_t until_ns) const;

  const DeviceSpec& spec_;
  HostCalls given_;
  int32_t local_memory_;
  std::vector<int32_t> first_launch_;
  std::vector<size_t> next_;  // of each event the next one of its thread; empty: there is one
  EventQueue& events_;
  std::unordered_map<int32_t, Call> due_;      // by event
  std::unordered_map<int32_t, Call> waiting_;  // by what they wait for
  std::unordered_set<int32_t> loaded_;         // kernels
  std::optional<size_t> locked_by_;            // the call that loads, or sets up local memory
  std::vector<Call> locked_out_;
  int64_t driver_free_ns_ = 0;
  std::unordered_map<int32_t, uint32_t> called_for_;  // of each stream a bit for each kind
  std::vector<CallTime> called_;
};

}  // namespace tbsched
