// The host threads: which call is made next, and when.
//
// An example: thread 0 launches a kernel of 1 ms and synchronizes. Thread 1 launches another kernel
// after 0.5 ms. That one does not wait: only thread 0 does.
//
// The rules:
//   1. Each thread makes its calls in the order of the sequence, the next one when the last has
//      returned.
//   2. A call that synchronizes returns when the work that it names is over. Work that is issued
//      later does not count. A host call that waits does the same, and then takes its duration.
//   3. A launch call that uses a kernel first loads the kernel, then launches it. Until the kernel
//      is loaded, launch calls of other threads wait. GpuWork::load says what loading does on the
//      GPU.
//   4. A copy that blocks returns when it is over. In the legacy stream, launch calls of other
//      threads wait until then.
//   5. A call waits while there is no place for its work. Meanwhile other threads cannot issue host
//      functions or make host calls that hold the driver, unless it is a call for a value. If it is
//      a call for a host function, they cannot issue anything.
//   6. A launch call that needs more local memory than any before waits until all work is over,
//      and sets the memory up. Until then, launch calls of other threads wait.
//   7. A call that launches, copies or sets has the driver for a while. Such calls of other threads
//      wait for that, in the order in which they are made. A host call that holds the driver has it
//      for its duration, after what it waits for. One that holds it throughout has it while it
//      waits, too.
// Several GPUs have the threads, and what keeps a thread from calling, in common: the driver, and a
// kernel that is loaded. Each has local memory of its own. The times of a call are those of its
// GPU's device, which is not measured.
//
// If the times of calls are given, they include these waits: rules 2 and 4 to 7 do not apply. With
// intervals, rules 5 to 7 do not.
//
// Source: traces hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"
#include "tbsched/sim/event_queue.h"
#include "tbsched/sim/operation.h"

namespace tbsched {

// The issue time of each launch, ascending in each thread. Without `called_ns`, other calls between
// two launches of a thread are made together with the first one.
struct CallTimes {
  std::vector<int64_t> issue_ns;
  std::vector<int64_t> called_ns = {};  // of each event; the entries of launches are not used
};
// For each event, the time since the previous call of its thread returned; for a first call, since
// 0.
struct CallGaps {
  std::vector<int64_t> gap_ns;
};
// A thread makes launch calls at this interval, or later if the last call has not returned. Calls
// take no time except where they wait, and all other calls are made at once.
struct CallIntervals {
  int64_t interval_ns = 0;
};
using HostCalls = std::variant<CallTimes, CallGaps, CallIntervals>;

class Hosts {
 public:
  // Kind of a call. The first call of each kind takes longer.
  enum class Kind : uint8_t { launch, copy_within, copy_to, copy_from, set, record, wait };
  struct CallWarmup {
    int32_t works = 0;   // number of calls that launch, copy or set
    int32_t waits = 0;   // number of calls that wait for work
    uint32_t kinds = 0;  // a bit for each kind that was called
  };
  // Progress of a call in loading its kernel.
  enum class Load : uint8_t { none, requested, loaded };
  struct Call {
    int64_t due_ns;
    size_t event;
    int64_t began_ns;  // when it was first due
    // When the thread's last launch call was due, this one included; -1: there was none.
    int64_t launched_ns;
    Load load = Load::none;
    bool wants_place = false;  // for its work, and waits
    bool lacks_place = false;  // has waited for one, and has none yet
    bool has_waited = false;
    bool has_turn = false;     // in the driver, at due_ns
    bool needs_warmup = true;  // the time that early calls take longer has not been added
    CallWarmup warmup = {};
  };

  // `specs`: the device of each GPU; they and the queue outlive it.
  Hosts(std::vector<const DeviceSpec*> specs, HostCalls calls, EventQueue& events);

  // Schedules the first call of each thread. `first_launch`: the index of each event's first
  // launch, then the number of launches. Throws std::invalid_argument for invalid times or gaps.
  void start(const Sequence& sequence, std::vector<int32_t> first_launch);

  // Removes and returns the next call that is due; none: no call is. Throws std::invalid_argument
  // for a call beyond the range of time.
  std::optional<Call> take();
  // Returns whether the caller gave the gaps between calls, and not when each is issued.
  bool has_gaps() const { return gaps() != nullptr; }
  // Returns when each launch of an event is issued; empty if that is not given.
  std::span<const int64_t> issue_ns(size_t event) const;

  // Conditions of a call, of which the first that is true delays it, in this order.
  // Returns whether the call must wait until another thread lets it go on.
  bool is_blocked(const Call& call, const Event& event) const;
  // Returns whether the time that early calls take longer has not been added to the call.
  bool needs_warmup(const Call& call, const Event& event) const;
  // Returns whether the call must load its kernel.
  bool must_load(const Call& call, const Event& event) const;
  // Returns whether the call must wait for work of the GPU.
  bool must_wait(const Call& call, const Event& event) const;
  // Returns whether the call needs a turn in the driver that it does not have.
  bool wants_driver(const Call& call, const Event& event) const;

  // Returns whether the call returns only when its work is over.
  bool waits_for_end(const Event& event) const;

  // Loads the kernel of a call in two steps: it is due again after each.
  void load(Call call, const Event& event);
  // Lets the call wait for this operation; none: nothing is left to wait for.
  void wait(const Call& call, const Event& event, std::optional<OperationOfGpu> item, int64_t now);
  // Delays a call by the time that early calls take longer.
  void warm_up(Call call, const Event& event);
  // Gives the call its turn in the driver if that is free. Returns whether it was free.
  bool try_take_driver(Call& call, const Event& event);
  // Gives the call a later turn in the driver, and makes it due again at that time.
  void queue_for_driver(Call call, const Event& event);
  // Lets the call wait for a place for its work.
  void wait_for_place(Call call, const Event& event, OperationOfGpu item);
  // Notes that the work of a call has its place, and lets calls that this blocked go on.
  void take_place(Call& call, const Event& event, int64_t now);
  bool any_waits() const { return !waiting_.empty(); }
  // Lets the call go on that waits for this operation.
  void resume(OperationOfGpu item, const Sequence& sequence, int64_t now);
  // Delays the call until another thread has loaded its kernel or set up local memory.
  void block_call(const Call& call) { blocked_.push_back(call); }
  // Returns when the call of each event began and returned; calls that were never made begin and
  // end never. Empty unless gaps are given.
  std::vector<CallTime> calls() && { return std::move(called_); }
  // Returns the events whose calls were made and have not returned, in order, if nothing more
  // happens.
  std::vector<size_t> unreturned();
  // Finishes a call, whose work ends at `end_ns`, and schedules the next one of its thread.
  void finish_call(const Call& call, const Event& event, int64_t end_ns);

 private:
  const DeviceSpec& spec_of(const Event& event) const { return *specs_[gpu_of(event)]; }
  const CallTimes* times() const { return std::get_if<CallTimes>(&given_); }
  const CallGaps* gaps() const { return std::get_if<CallGaps>(&given_); }
  // Returns whether the launch call needs more local memory per thread than any before.
  bool must_grow_memory(const Event& event) const;
  // Returns whether calls that wait for a place keep other threads from such a call.
  bool is_kept_from(const Event& event) const;
  // Adds to the number of calls that wait for a place.
  void note_without_place(const Event& event, int32_t change);
  // Makes all blocked calls due again.
  void release_blocked(int64_t now);
  // Returns whether such calls of several threads have the driver in turn.
  static bool is_in_turn(const Event& event);
  // Returns whether the call has the driver while it waits.
  static bool holds_throughout(const Event& event);
  // Returns how long the call has the driver.
  int64_t driver_ns(const Event& event) const;
  // Returns whether an event has launches.
  bool launches(const size_t event) const {
    return first_launch_[event + 1] > first_launch_[event];
  }
  // Returns the next event of the same thread; the number of events or more: none.
  size_t next_of(const size_t event) const { return next_.empty() ? event + 1 : next_[event]; }
  void resume(Call call, const Event& event, int64_t now);
  // Returns how long it takes to set up local memory for a launch.
  int64_t growth_ns(const Launch& launch) const;
  // Returns how long a call takes after all its waits.
  int64_t call_ns(const Event& event) const;
  // Notes a call of a kind for a stream. Returns whether it is the first one.
  bool note_stream_use(int32_t gpu, std::optional<int32_t> stream, Kind kind);
  // Throws std::invalid_argument for invalid times or gaps.
  void check(const Sequence& sequence) const;
  // Returns whether the times of each thread ascend.
  bool times_ascend(const Sequence& sequence) const;
  // Returns when the first call of a thread, for this event, is due.
  int64_t first_due_ns(size_t event) const;
  // Returns when the call of an event is made, if that is given.
  int64_t called_ns(size_t event) const;
  // Schedules the next call of a thread, whose last one returned at call.due_ns.
  void schedule_next(Call call);
  // Schedules the same call again at another time.
  void reschedule(Call call, int64_t due_ns);
  // Schedules a call at its due time. Of calls that are due at one instant, those that load a
  // kernel come last.
  void schedule(const Call& call);
  // Notes that the call takes until `until_ns`: the thread's next launch call is delayed
  // accordingly.
  void delay_next_launch(Call& call, int64_t until_ns) const;

  std::vector<const DeviceSpec*> specs_;  // by GPU
  HostCalls given_;
  std::vector<int32_t> local_memory_;  // bytes per thread that are set up, by GPU
  std::vector<int32_t> first_launch_;  // by event, and the number of launches
  std::vector<size_t> next_;           // next event of the same thread; empty: there is one thread
  EventQueue& events_;
  std::unordered_map<int32_t, Call> due_;         // by event
  std::map<OperationOfGpu, Call> waiting_;        // by the operation for which they wait
  std::set<std::pair<int32_t, int32_t>> loaded_;  // kernels of GPUs
  std::optional<size_t> locked_by_;               // the call that keeps others from calling
  bool lock_is_of_driver_ = false;                // else it keeps launches alone
  int32_t works_without_place_ = 0;      // calls that wait for a place, but for those for values
  int32_t functions_without_place_ = 0;  // those of them for host functions
  std::vector<Call> blocked_;
  int64_t driver_free_ns_ = 0;  // when the last turn in the driver ends
  // By GPU and stream, a bit for each kind.
  std::map<std::pair<int32_t, int32_t>, uint32_t> used_kinds_;
  std::vector<CallTime> called_;  // see calls()
};

}  // namespace tbsched
