// Derives what a run shows from the records that its blocks wrote.
//
// "Placed before the next event" means: started before anything after the launch made room. Only
// blocks that leave make room; a later launch takes room and never makes any. So the limit for a
// launch is the time at which the first block was released by a later release, or by the clean-up
// after the last event. A block that the host saw late, but that started before that time, needed
// no other block's room and counts as placed. "After all events" is the same with the clean-up
// alone. The blocks' own time stamps decide, never how long the host waited.
//
// A block stays kLingerNs after its release, so a block that takes its room starts at least that
// much later. A start between half and all of that (less the skew between two SMs' readings) fits
// neither case and makes the run doubtful.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "launcher/plan/meetings.h"
#include "launcher/probe/probe_abi.h"
#include "tbsched/program/event.h"
#include "tbsched/program/trace.h"

namespace tbsched::cuda {

// What one launch of a run has left in its memory.
struct Evidence {
  std::span<const BlockRecord> records;  // one per block, all of them ended
  std::span<const int32_t> warp_slots;   // empty unless requested
  std::span<const uint32_t> ticks;    // how long a block stays by itself: one for all, or one each
  std::chrono::nanoseconds issued{};  // time of the host's launch call, from the first one on
};

// When the call of each event of a timed sequence began and returned, from the first call on.
using CallsNs = std::vector<std::array<int64_t, 2>>;

// What a run shows, if nothing about it is doubtful.
struct Verdict {
  std::vector<MeasuredLaunch> launches;
  CallsNs calls_ns;
  std::vector<bool> met;  // by group
  std::string doubt;      // empty: none
  // The longest time for which a block was off its SM: another process had the GPU.
  std::chrono::nanoseconds still{};
};

// Judges a held sequence. `evidence`: one per launch of the sequence. `took`: from the first launch
// call to the end.
Verdict judge(const Sequence& sequence, std::span<const Evidence> evidence, int32_t sms,
              std::chrono::nanoseconds took);

// Adds which groups have met to a verdict. The blocks' time stamps must agree: a group meets if all
// its blocks were placed.
void judge_meetings(std::span<const PlannedMeeting> meetings, const std::vector<bool>& met,
                    Verdict& verdict);

// Judges a timed sequence, in which all blocks ran. Times are from the start of the first block on.
// `stranded`: launches of groups that have not met. Their blocks were released, and blocks that
// started later did so only because of that. None: all blocks left by themselves.
Verdict judge_timed(std::span<const Evidence> evidence,
                    const std::optional<std::set<size_t>>& stranded, int32_t sms,
                    std::chrono::nanoseconds took);

}  // namespace tbsched::cuda
