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

// When the first block of a launch was told to leave.
uint64_t first_end(const Evidence& evidence) {
  uint64_t first = kNever;
  for (const BlockRecord& record : evidence.records) first = std::min(first, record.end_ns);
  return first;
}

// When room was first made: after each launch, and after the last event.
struct RoomMade {
  std::vector<uint64_t> after_launch;
  uint64_t after_all = kNever;
};

// The launch whose blocks an event lets go: what makes room.
std::optional<size_t> released_by(const Event& event) {
  using Number = std::optional<size_t>;
  return std::visit(
      Overloaded{
          [](const Launch&) { return Number(); },
          [](const Release& release) { return Number(static_cast<size_t>(release.launch)); },
          [](const RecordEvent&) { return Number(); },
          [](const WaitEvent&) { return Number(); },
      },
      event);
}

RoomMade room_made(const Sequence& sequence, const std::span<const Evidence> evidence) {
  RoomMade made{std::vector<uint64_t>(evidence.size(), kNever), kNever};
  std::vector<bool> released(evidence.size(), false);
  for (const Event& event : sequence) {
    if (const std::optional<size_t> launch = released_by(event)) released[*launch] = true;
  }
  for (size_t launch = 0; launch < evidence.size(); ++launch) {
    if (!released[launch]) made.after_all = std::min(made.after_all, first_end(evidence[launch]));
  }
  uint64_t limit = made.after_all;
  size_t launch = evidence.size();
  for (auto event = sequence.rbegin(); event != sequence.rend(); ++event) {
    if (const std::optional<size_t> left = released_by(*event)) {
      limit = std::min(limit, first_end(evidence[*left]));
    }
    for_each_launch(*event, [&](const Launch&) { made.after_launch[--launch] = limit; });
  }
  return made;
}

uint64_t stayed(const BlockRecord& record, const Waiting& waiting) {
  return (record.end_ns >> waiting.tick_bits) - (record.start_ns >> waiting.tick_bits);
}

enum class Order : uint8_t { before, after, doubtful };

Order compare(const uint64_t start, const uint64_t limit) {
  if (start < limit || start - limit < kSurelyBeforeNs) return Order::before;
  return start - limit >= kSurelyAfterNs ? Order::after : Order::doubtful;
}

class Examiner {
 public:
  Examiner(const size_t number, const Evidence& evidence, const int32_t sms)
      : number_(number), evidence_(evidence), sms_(sms) {}

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
      contradictions(block, record, doubt);
      if (stayed(record, kHeld) >= ticks(block)) {
        say(doubt, block, "left by itself before it was released");
      }
      const Order at_launch = order(block, record.start_ns, room_after_launch, doubt);
      const Order at_end = order(block, record.start_ns, room_after_all, doubt);
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

  MeasuredLaunch examine_timed(const uint64_t first_start, std::string& doubt) const {
    MeasuredLaunch measured;
    measured.issued_ns = evidence_.issued.count();
    measured.placement.warp_slots.assign(evidence_.warp_slots.begin(), evidence_.warp_slots.end());
    for (size_t block = 0; block < evidence_.records.size(); ++block) {
      const BlockRecord& record = evidence_.records[block];
      contradictions(block, record, doubt);
      if (stayed(record, kTimed) < ticks(block)) {
        say(doubt, block, "left before its duration was over");
      }
      measured.placement.smid.push_back(static_cast<int32_t>(record.smid));
      measured.start_ns.push_back(record.start_ns - first_start);
      measured.end_ns.push_back(record.end_ns - first_start);
    }
    measured.placement.final_smid = measured.placement.smid;
    return measured;
  }

 private:
  uint32_t ticks(const size_t block) const {
    return evidence_.ticks[evidence_.ticks.size() == 1 ? 0 : block];
  }

  void contradictions(const size_t block, const BlockRecord& record, std::string& doubt) const {
    if (record.smid != record.end_smid) {
      say(doubt, block,
          "moved from SM " + std::to_string(record.smid) + " to SM " +
              std::to_string(record.end_smid) + " (was the GPU shared or preempted?)");
    } else if (record.smid >= static_cast<uint32_t>(sms_)) {
      say(doubt, block,
          "is on SM " + std::to_string(record.smid) + " of a GPU of " + std::to_string(sms_) +
              " SMs (MIG or MPS?)");
    }
  }

  Order order(const size_t block, const uint64_t start, const uint64_t limit,
              std::string& doubt) const {
    const Order order = compare(start, limit);
    if (order == Order::doubtful) {
      say(doubt, block,
          "started " + std::to_string(start - limit) +
              " ns after another was told to leave: too close to say which came first");
    }
    return order;
  }

  // The first doubt is enough.
  void say(std::string& doubt, const size_t block, const std::string& what) const {
    if (!doubt.empty()) return;
    doubt = "launch " + std::to_string(number_) + ", block " + std::to_string(block) + " " + what;
  }

  const size_t number_;
  const Evidence& evidence_;
  const int32_t sms_;
};

}  // namespace

Verdict judge(const Sequence& sequence, const std::span<const Evidence> evidence,
              const int32_t sms) {
  const RoomMade made = room_made(sequence, evidence);
  Verdict verdict;
  verdict.launches.reserve(evidence.size());
  for (size_t launch = 0; launch < evidence.size(); ++launch) {
    verdict.launches.push_back(
        Examiner(launch, evidence[launch], sms)
            .examine(made.after_launch[launch], made.after_all, verdict.doubt));
  }
  return verdict;
}

Verdict judge_timed(const std::span<const Evidence> evidence, const int32_t sms) {
  uint64_t first_start = kNever;
  for (const Evidence& launch : evidence) {
    for (const BlockRecord& record : launch.records) {
      first_start = std::min(first_start, record.start_ns);
    }
  }
  Verdict verdict;
  for (size_t launch = 0; launch < evidence.size(); ++launch) {
    verdict.launches.push_back(
        Examiner(launch, evidence[launch], sms).examine_timed(first_start, verdict.doubt));
  }
  return verdict;
}

}  // namespace tbsched::cuda
