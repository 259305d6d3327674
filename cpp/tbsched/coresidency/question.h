// A question whether launches are resident at the same time, and its answer.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "tbsched/policy/policy.h"
#include "tbsched/program/event.h"
#include "tbsched/program/refusal.h"

namespace tbsched {

// Launches of a group wait for each other, and leave only when all their blocks are resident. A
// launch in no group is a background kernel: it may stay for ever, or leave at any time, block by
// block.
struct TogetherQuestion {
  std::vector<Launch> launches;  // without durations
  std::vector<std::vector<int32_t>> groups;
  // The second launch arrives only when all blocks of the first are resident.
  std::vector<std::array<int32_t, 2>> after = {};
  int64_t max_plays = 200'000;  // sequences to play before the search gives up
  bool only_to_prove = false;   // gives up as soon as nothing can be proved any more
  double seconds = std::numeric_limits<double>::infinity();  // time limit
};

// Returns, by launch, whether it must be resident whole, or else a block of the group waits for
// ever: whether it is in the group, or must precede such a launch.
std::vector<bool> awaited_by(const TogetherQuestion& question, const std::vector<int32_t>& group);

enum class Verdict : uint8_t { safe, unsafe, undecided };
inline constexpr std::array<std::string_view, 3> kVerdictNames = {"safe", "unsafe", "undecided"};

// Kind of proof: none, that too few SMs can be full (full_sms.h), or that every history was played
// or ruled out.
enum class Proof : uint8_t { none, full_sms, played };
inline constexpr std::array<std::string_view, 3> kProofNames = {"none", "full_sms", "played"};

// A launch arrives, or blocks of a background kernel leave.
struct Step {
  int32_t launch = -1;
  std::vector<int32_t> leaving = {};  // blocks; empty: the launch arrives

  bool operator==(const Step&) const = default;
};

// The reason why a launch never waits: how many of its SMs can be full at once, and how many must
// be before one of its blocks finds no room.
struct FullSms {
  int32_t launch = -1;
  double max_full = 0;  // upper bound of the SMs that can be full
  int32_t needed = 0;   // SMs that must be full
};

struct TogetherAnswer {
  Verdict verdict = Verdict::undecided;
  Proof proof = Proof::none;
  std::vector<FullSms> full_sms;  // of each launch, for a proof by full SMs
  // A shortest sequence of steps that strands a block of an unsafe group.
  std::vector<Step> witness;
  InitialState state{};
  int32_t group = -1;
  int32_t stranded = -1;  // the launch
  Refusal cause = Refusal::none;
  int32_t behind = -1;  // the launch that holds it up, or -1
  int64_t plays = 0;
};

}  // namespace tbsched
