// How a block of the probe waits. The kernel and the rehearsal driver both run this: their machines
// have a clock, a relay, a flag in host memory and a record in common.
#pragma once

#include <cstdint>

#include "launcher/probe/probe_abi.h"

namespace tbsched::cuda {

// Returns whether this poll goes on to the host. `now`: a tick. Time decides, never chance: a block
// that waits for its own cycle counter to show some value may never see it, since its sleep can be
// in step with it.
template <typename Machine>
constexpr bool may_ask(const Machine& machine, const ProbeArguments& arguments,
                       const uint32_t now) {
  if (arguments.ask_bits == kFirstBlockAsks) return machine.block() == 0;
  const uint32_t slot = now >> arguments.ask_bits;
  return machine.fresh(arguments.relay->asked) != slot &&
         machine.exchange(arguments.relay->asked, slot) != slot;
}

// Returns whether blocks shall leave, as the relay says, or with `asks` the host, whose answer then
// goes to the relay.
template <typename Machine>
constexpr bool is_released(const Machine& machine, const ProbeArguments& arguments,
                           const bool asks) {
  if (machine.fresh(arguments.relay->released) == arguments.run) return true;
  if (!asks || machine.fresh(*arguments.release) != arguments.run) return false;
  machine.store(arguments.relay->released, arguments.run);
  return true;
}

// Polls once: reads the time and the relay. Returns how many nanoseconds to sleep before the next
// poll, or kLeave. `last`: the tick of the last poll; `end`: the tick at which the block's time is
// over.
inline constexpr uint32_t kLeave = ~uint32_t{0};
template <typename Machine>
constexpr uint32_t poll(const Machine& machine, const ProbeArguments& arguments, uint32_t& last,
                        const uint32_t end) {
  const Waiting& waiting = arguments.waiting;
  const uint32_t elapsed = machine.ticks(waiting) - last;
  last += elapsed;
  if (elapsed > waiting.still_ticks) machine.store(machine.record(arguments).started, elapsed);
  const uint32_t remaining = end - last;
  if (static_cast<int32_t>(remaining) <= 0) return kLeave;
  // Half of the rest, in nanoseconds: the sleep may take twice as long as requested.
  if (remaining <= waiting.asks_until) return remaining << (kTimed.tick_bits - 1);
  const bool asks = may_ask(machine, arguments, last);
  if (is_released(machine, arguments, asks)) return kLeave;
  return asks ? arguments.ask_sleep_ns : arguments.look_sleep_ns;
}

// Polls whether all blocks have arrived that a block waits for. The block passes once, after all
// have arrived, and never after it was released. So the host learns of a meeting only if all were
// there at the same time. `end`: the tick at which the block's time is over, with a bit for having
// passed, since another variable would take a register more. `last`: the tick of the last poll.
inline constexpr uint32_t kHasPassed = 1;
template <typename Machine>
constexpr void meet(const Machine& machine, const ProbeArguments& arguments, const uint32_t last,
                    uint32_t& end) {
  const Meeting& meeting = arguments.meeting;
  if ((end & kHasPassed) != 0 || machine.fresh(meeting.point->arrived) != meeting.blocks) return;
  end = (last + machine.duration(arguments)) | kHasPassed;
  if (machine.add_one(meeting.point->passed) + 1 == meeting.blocks) machine.store(*meeting.met, 1);
}

}  // namespace tbsched::cuda
