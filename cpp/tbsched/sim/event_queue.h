// The events of a process, in one queue with two clock domains.
//
// Events of one instant happen in the order of their phases: blocks leave, then operations change,
// then hosts call, then the scheduler may turn to another launch.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tbsched/program/timeline.h"
#include "tbsched/sim/clock.h"

namespace tbsched {

enum class Phase : uint8_t { leave, change, call, turn };

// What happens to an operation at an event of phase `change`.
enum class Change : uint8_t { none, done, triggered, dependency_met, issued, reached, transferred };

// The clock by which an event happens.
enum class Domain : uint8_t { process, gpu };

struct TimedEvent {
  int64_t time_ns;  // by the clock of its domain
  int32_t subject;  // blocks that leave together, an operation, or the event that a host calls
  Change change = Change::none;
  int64_t order = 0;  // among events of one phase and instant; then by subject

  // Inverted, so that the earliest event is at the top of a heap. Has no branches: which of two
  // events is earlier cannot be foreseen.
  bool operator<(const TimedEvent& other) const {
    const bool is_behind =
        (order > other.order) | ((order == other.order) & (subject > other.subject));
    return (time_ns > other.time_ns) | ((time_ns == other.time_ns) & is_behind);
  }
};

class EventQueue {
 public:
  // The clock outlives it.
  explicit EventQueue(const Clock& clock) : clock_(clock) {}

  void push(const Phase phase, const Domain domain, const TimedEvent& event) {
    Heap& heap = heap_of(phase, domain);
    heap.push_back(event);
    std::push_heap(heap.begin(), heap.end());
  }

  // Removes and returns the first event of the phase that is due; nothing: none is.
  std::optional<TimedEvent> pop(const Phase phase) {
    return is_due(phase) ? std::optional(pop_due(phase)) : std::nullopt;
  }
  // Returns whether an event of the phase is due.
  bool is_due(const Phase phase) const {
    return next_of(heap_of(phase, Domain::process)) <= clock_.now() ||
           next_of(heap_of(phase, Domain::gpu)) <= clock_.gpu_now();
  }

  // Returns when the next event happens, by the process's own clock; kNever: none.
  int64_t next_ns() const {
    int64_t own_ns = kNever;
    for (const auto& phase : heaps_) own_ns = std::min(own_ns, next_of(phase[0]));
    const int64_t gpu_event_ns = clock_.to_own(next_gpu_ns());
    const int64_t next_ns = std::min(own_ns, gpu_event_ns);
    return next_ns == kNever ? kNever : std::max(next_ns, clock_.now());
  }
  // Returns when the phase's next event in the process's domain happens; kNever: none.
  int64_t next_ns(const Phase phase) const { return next_of(heap_of(phase, Domain::process)); }
  // Returns when the next event of the GPU's domain happens, by the GPU's clock. These events
  // happen whichever process has the GPU.
  int64_t next_gpu_ns() const {
    int64_t next_ns = kNever;
    for (const auto& phase : heaps_) next_ns = std::min(next_ns, next_of(phase[1]));
    return next_ns;
  }

  // Sets the time of each of a phase's events in the process's domain to new_time(event).
  template <typename NewTime>
  void reschedule(const Phase phase, const NewTime& new_time) {
    Heap& heap = heap_of(phase, Domain::process);
    for (TimedEvent& event : heap) event.time_ns = new_time(event);
    std::make_heap(heap.begin(), heap.end());
  }
  // Visits a phase's events in the process's domain, in the order of time.
  template <typename Visit>
  void for_each_in_order(const Phase phase, const Visit& visit) const {
    Heap sorted = heap_of(phase, Domain::process);
    std::sort(sorted.begin(), sorted.end());
    std::for_each(sorted.rbegin(), sorted.rend(), visit);
  }
  void clear(const Phase phase) {
    for (Heap& heap : heaps_[static_cast<size_t>(phase)]) heap.clear();
  }

 private:
  using Heap = std::vector<TimedEvent>;

  Heap& heap_of(const Phase phase, const Domain domain) {
    return heaps_[static_cast<size_t>(phase)][static_cast<size_t>(domain)];
  }
  const Heap& heap_of(const Phase phase, const Domain domain) const {
    return heaps_[static_cast<size_t>(phase)][static_cast<size_t>(domain)];
  }
  // Removes and returns the first event of the phase, which is due.
  TimedEvent pop_due(const Phase phase) {
    Heap& own = heap_of(phase, Domain::process);
    Heap& gpu_heap = heap_of(phase, Domain::gpu);
    const bool own_is_due = next_of(own) <= clock_.now();
    const bool gpu_is_due = next_of(gpu_heap) <= clock_.gpu_now();
    const bool own_is_first = own_is_due && gpu_is_due && first_in_own_time(gpu_heap) < own.front();
    Heap& first = gpu_is_due && !own_is_first ? gpu_heap : own;
    return pop_first(first);
  }
  // Removes and returns the first event of a heap. Does what std::pop_heap() does, but without a
  // branch that depends on which child is earlier.
  static TimedEvent pop_first(Heap& heap) {
    const TimedEvent first = heap.front();
    const TimedEvent last = heap.back();
    heap.pop_back();
    const size_t size = heap.size();
    if (size == 0) return first;
    size_t hole = 0;
    while (2 * hole + 2 < size) {
      const size_t left = 2 * hole + 1;
      const size_t earlier = left + static_cast<size_t>(heap[left] < heap[left + 1]);
      heap[hole] = heap[earlier];
      hole = earlier;
    }
    if (2 * hole + 1 < size) {
      heap[hole] = heap[2 * hole + 1];
      hole = 2 * hole + 1;
    }
    heap[hole] = last;
    std::push_heap(heap.begin(), heap.begin() + static_cast<std::ptrdiff_t>(hole) + 1);
    return first;
  }
  // Returns the time of a heap's first event; kNever: it has none.
  static int64_t next_of(const Heap& heap) { return heap.empty() ? kNever : heap.front().time_ns; }
  // Returns the first event of the GPU's domain, with its time by the process's own clock.
  TimedEvent first_in_own_time(const Heap& gpu_heap) const {
    TimedEvent event = gpu_heap.front();
    event.time_ns = clock_.to_own(event.time_ns);
    return event;
  }

  const Clock& clock_;
  std::array<std::array<Heap, 2>, 4> heaps_;  // by phase and domain
};

}  // namespace tbsched
