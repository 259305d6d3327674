#include "launcher/run/verdict.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <variant>

namespace tbsched::cuda {
namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kSurelyBeforeNs = kLingerNs / 2;
constexpr uint64_t kSurelyAfterNs = kLingerNs - kLingerNs / 4;

// Returns when the first block of a launch ended, ns of the GPU's clock; kNever: it has no block.
uint64_t first_end(const Evidence& evidence) {
  uint64_t first = kNever;
  for (const BlockRecord& record : evidence.records) first = std::min(first, record.end_ns);
  return first;
}

// When blocks first left after each launch, and after the last event, ns; kNever: never.
struct RoomMade {
  std::vector<uint64_t> after_launch;
  uint64_t after_all = kNever;
};

// Returns the launch whose blocks an event releases, which makes room; none: it releases none.
std::optional<size_t> released_by(const Event& event) {
  using LaunchIndex = std::optional<size_t>;
  return std::visit(
      Overloaded{
          [](const Launch&) { return LaunchIndex(); },
          [](const Release& release) { return LaunchIndex(static_cast<size_t>(release.launch)); },
          [](const RecordEvent&) { return LaunchIndex(); },
          [](const WaitEvent&) { return LaunchIndex(); },
          [](const GraphLaunch&) { return LaunchIndex(); },
          [](const Copy&) { return LaunchIndex(); },
          [](const Memset&) { return LaunchIndex(); },
          [](const Synchronize&) { return LaunchIndex(); },
          [](const HostFunction&) { return LaunchIndex(); },
          [](const HostCall&) { return LaunchIndex(); },
          [](const WriteValue&) { return LaunchIndex(); },
          [](const WaitValue&) { return LaunchIndex(); },
      },
      event);
}

// Returns when room was made: each launch's limit is the first end of a launch that is released
// behind it.
RoomMade room_made(const Sequence& sequence, const std::span<const Evidence> evidence) {
  RoomMade room{std::vector<uint64_t>(evidence.size(), kNever), kNever};
  std::vector<bool> released(evidence.size(), false);
  for (const Event& event : sequence) {
    if (const std::optional<size_t> launch = released_by(event)) released[*launch] = true;
  }
  for (size_t launch = 0; launch < evidence.size(); ++launch) {
    if (!released[launch]) room.after_all = std::min(room.after_all, first_end(evidence[launch]));
  }
  uint64_t limit = room.after_all;
  size_t launch = evidence.size();
  for (auto event = sequence.rbegin(); event != sequence.rend(); ++event) {
    if (const std::optional<size_t> launch_released = released_by(*event)) {
      limit = std::min(limit, first_end(evidence[*launch_released]));
    }
    for_each_launch(*event, [&](const Launch&) { room.after_launch[--launch] = limit; });
  }
  return room;
}

// Returns whether the records' times are possible. The clocks of the GPU and the host have
// different zeros and drift apart a little; but for some offset between the zeros each block must
// have started after its launch call and ended before the run did.
bool are_times_possible(const std::span<const Evidence> evidence,
                        const std::chrono::nanoseconds took) {
  constexpr int64_t slack_ns = 1'000'000;
  constexpr int64_t drift_parts = 1000;
  const auto signed_ns = [](const uint64_t time) { return static_cast<int64_t>(time); };
  int64_t max_offset = std::numeric_limits<int64_t>::max();
  int64_t min_offset = std::numeric_limits<int64_t>::min();
  for (const Evidence& launch : evidence) {
    for (const BlockRecord& record : launch.records) {
      if (std::min(record.start_ns, record.end_ns) == 0) return false;
      if (signed_ns(std::max(record.start_ns, record.end_ns)) < 0) return false;
      max_offset = std::min(max_offset, signed_ns(record.start_ns) - launch.issued.count());
      min_offset = std::max(min_offset, signed_ns(record.end_ns) - took.count());
    }
  }
  return min_offset == std::numeric_limits<int64_t>::min() || min_offset <= max_offset ||
         min_offset - max_offset <= slack_ns + took.count() / drift_parts;
}

// Returns the longest time for which a block was off its SM; 0: none was.
std::chrono::nanoseconds longest_absence(const std::span<const Evidence> evidence,
                                         const Waiting& waiting) {
  uint32_t max_ticks = 0;
  for (const Evidence& launch : evidence) {
    for (const BlockRecord& record : launch.records) {
      max_ticks = std::max(max_ticks, record.started);
    }
  }
  const bool was_absent = max_ticks > waiting.still_ticks;
  return std::chrono::nanoseconds(was_absent ? int64_t{max_ticks} << waiting.tick_bits : 0);
}

// Returns how many ticks a block was resident.
uint64_t ticks_resident(const BlockRecord& record, const Waiting& waiting) {
  return (record.end_ns >> waiting.tick_bits) - (record.start_ns >> waiting.tick_bits);
}

// Returns when the first block of a timed sequence was released: a block of a launch that is
// stranded, or one whose duration was not over; kNever: none was.
uint64_t first_release_ns(const std::span<const Evidence> evidence,
                          const std::set<size_t>& stranded) {
  uint64_t first = kNever;
  for (size_t launch = 0; launch < evidence.size(); ++launch) {
    const std::span<const uint32_t> ticks = evidence[launch].ticks;
    for (size_t block = 0; block < evidence[launch].records.size(); ++block) {
      const BlockRecord& record = evidence[launch].records[block];
      const bool early = ticks_resident(record, kTimed) < ticks[ticks.size() == 1 ? 0 : block];
      if (early || stranded.contains(launch)) first = std::min(first, record.end_ns);
    }
  }
  return first;
}

enum class Order : uint8_t { before, after, doubtful };

// Returns whether a block started before a limit, or took room that was made then, ns; doubtful:
// neither is sure.
Order order_of(const uint64_t start, const uint64_t limit) {
  if (start < limit || start - limit < kSurelyBeforeNs) return Order::before;
  return start - limit >= kSurelyAfterNs ? Order::after : Order::doubtful;
}

// Derives where the blocks of one launch were placed. Adds the first doubt that arises.
class Examiner {
 public:
  Examiner(const size_t launch, const Evidence& evidence, const int32_t sms)
      : launch_(launch), evidence_(evidence), sms_(sms) {}

  // Examines a launch of a held sequence. A block was placed if it started before room was made.
  MeasuredLaunch examine(const uint64_t room_after_launch, const uint64_t room_after_all,
                         std::string& doubt) const {
    const size_t blocks = evidence_.records.size();
    MeasuredLaunch measured;
    measured.issued_ns = evidence_.issued.count();
    measured.placement.smid.assign(blocks, kNotPlaced);
    measured.placement.final_smid.assign(blocks, kNotPlaced);
    measured.start_ns.assign(blocks, 0);
    measured.end_ns.assign(blocks, 0);
    std::vector<int32_t>& warp_slots = measured.placement.warp_slots;
    warp_slots.assign(evidence_.warp_slots.begin(), evidence_.warp_slots.end());
    const size_t warps = evidence_.warp_slots.size() / blocks;
    for (size_t block = 0; block < blocks; ++block) {
      const BlockRecord& record = evidence_.records[block];
      check_record(block, record, doubt);
      if (ticks_resident(record, kHeld) >= ticks(block)) {
        add_doubt(doubt, block, "left by itself before it was released");
      }
      const Order at_launch = start_order(block, record.start_ns, room_after_launch, doubt);
      const Order at_end = start_order(block, record.start_ns, room_after_all, doubt);
      const auto sm = static_cast<int32_t>(record.smid);
      if (at_launch == Order::before) measured.placement.smid[block] = sm;
      if (at_end == Order::before) {
        measured.placement.final_smid[block] = sm;
        measured.start_ns[block] = record.start_ns;
        measured.end_ns[block] = record.end_ns;
      } else {
        std::fill_n(warp_slots.begin() + static_cast<ptrdiff_t>(block * warps), warps, kNotPlaced);
      }
    }
    return measured;
  }

  // Examines a launch of a timed sequence. `released_ns`: when the first block was released;
  // kNever: none was.
  MeasuredLaunch examine_timed(const uint64_t first_start, const uint64_t released_ns,
                               std::string& doubt) const {
    MeasuredLaunch measured;
    measured.issued_ns = evidence_.issued.count();
    measured.placement.warp_slots.assign(evidence_.warp_slots.begin(), evidence_.warp_slots.end());
    for (size_t block = 0; block < evidence_.records.size(); ++block) {
      const BlockRecord& record = evidence_.records[block];
      check_record(block, record, doubt);
      if (released_ns == kNever && ticks_resident(record, kTimed) < ticks(block)) {
        add_doubt(doubt, block, "left before its duration was over");
      }
      const bool was_placed =
          start_order(block, record.start_ns, released_ns, doubt) == Order::before;
      measured.placement.smid.push_back(was_placed ? static_cast<int32_t>(record.smid)
                                                   : kNotPlaced);
      measured.start_ns.push_back(was_placed ? record.start_ns - first_start : 0);
      measured.end_ns.push_back(was_placed ? record.end_ns - first_start : 0);
    }
    measured.placement.final_smid = measured.placement.smid;
    return measured;
  }

 private:
  // Returns how many ticks a block stays by itself.
  uint32_t ticks(const size_t block) const {
    return evidence_.ticks[evidence_.ticks.size() == 1 ? 0 : block];
  }

  // Adds a doubt if the record of a block contradicts itself.
  void check_record(const size_t block, const BlockRecord& record, std::string& doubt) const {
    if (record.smid != record.end_smid) {
      add_doubt(doubt, block,
                "moved from SM " + std::to_string(record.smid) + " to SM " +
                    std::to_string(record.end_smid) + " (was the GPU shared or preempted?)");
    } else if (record.smid >= static_cast<uint32_t>(sms_)) {
      add_doubt(doubt, block,
                "is on SM " + std::to_string(record.smid) + " of a GPU of " + std::to_string(sms_) +
                    " SMs (MIG or MPS?)");
    } else if (record.started == 0 || record.ended == 0) {
      add_doubt(doubt, block, "left no record, though it has ended");
    } else if (record.end_ns < record.start_ns) {
      add_doubt(
          doubt, block,
          "ended " + std::to_string(record.start_ns - record.end_ns) + " ns before it started");
    }
  }

  // Returns whether a block started before a limit; adds a doubt if that is not sure.
  Order start_order(const size_t block, const uint64_t start, const uint64_t limit,
                    std::string& doubt) const {
    const Order order = order_of(start, limit);
    if (order == Order::doubtful) {
      add_doubt(doubt, block,
                "started " + std::to_string(start - limit) +
                    " ns after another was told to leave: too close to say which came first");
    }
    return order;
  }

  // Adds a doubt, unless there is one already.
  void add_doubt(std::string& doubt, const size_t block, const std::string& what) const {
    if (!doubt.empty()) return;
    doubt = "launch " + std::to_string(launch_) + ", block " + std::to_string(block) + " " + what;
  }

  const size_t launch_;
  const Evidence& evidence_;
  const int32_t sms_;
};

// Checks all records together. Returns a verdict without launches.
Verdict check_evidence(const std::span<const Evidence> evidence, const Waiting& waiting,
                       const std::chrono::nanoseconds took) {
  Verdict verdict{.still = longest_absence(evidence, waiting)};
  if (!are_times_possible(evidence, took)) {
    verdict.doubt = "some block started before its launch call or ended after the run";
  } else if (verdict.still > took) {
    verdict.doubt = "some block stood still for longer than the run took";
    verdict.still = {};
  }
  return verdict;
}

}  // namespace

Verdict judge(const Sequence& sequence, const std::span<const Evidence> evidence, const int32_t sms,
              const std::chrono::nanoseconds took) {
  const RoomMade room = room_made(sequence, evidence);
  Verdict verdict = check_evidence(evidence, kHeld, took);
  verdict.launches.reserve(evidence.size());
  for (size_t launch = 0; launch < evidence.size(); ++launch) {
    verdict.launches.push_back(
        Examiner(launch, evidence[launch], sms)
            .examine(room.after_launch[launch], room.after_all, verdict.doubt));
  }
  return verdict;
}

void judge_meetings(const std::span<const PlannedMeeting> meetings, const std::vector<bool>& met,
                    Verdict& verdict) {
  verdict.met = met;
  for (size_t group = 0; group < meetings.size() && verdict.doubt.empty(); ++group) {
    const bool placed = std::ranges::all_of(meetings[group].launches, [&](const size_t launch) {
      const std::vector<int32_t>& smid = verdict.launches[launch].placement.final_smid;
      return std::ranges::find(smid, kNotPlaced) == smid.end();
    });
    if (placed == met[group]) continue;
    verdict.doubt = "group " + std::to_string(group) +
                    (placed ? " has not met, though all its blocks were placed"
                            : " has met, though not all its blocks were placed");
  }
}

Verdict judge_timed(const std::span<const Evidence> evidence,
                    const std::optional<std::set<size_t>>& stranded, const int32_t sms,
                    const std::chrono::nanoseconds took) {
  uint64_t first_start = kNever;
  for (const Evidence& launch : evidence) {
    for (const BlockRecord& record : launch.records) {
      first_start = std::min(first_start, record.start_ns);
    }
  }
  Verdict verdict = check_evidence(evidence, kTimed, took);
  const uint64_t released_ns = stranded ? first_release_ns(evidence, *stranded) : kNever;
  for (size_t launch = 0; launch < evidence.size(); ++launch) {
    verdict.launches.push_back(Examiner(launch, evidence[launch], sms)
                                   .examine_timed(first_start, released_ns, verdict.doubt));
  }
  return verdict;
}

}  // namespace tbsched::cuda
