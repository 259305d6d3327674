// One row per policy. To add one: its file, its factory in policy.h, a row here.
#include <algorithm>
#include <array>

#include "tbsched/policy/policy.h"

namespace tbsched {
namespace {

DeviceSpec as_it_is(DeviceSpec spec) { return spec; }

// The SM as one pool of slots, warps, registers and shared memory, without the mechanisms found
// later.
DeviceSpec whole_sms(DeviceSpec spec) {
  spec.processing_blocks = 1;
  spec.mechanisms.registers = Layout::pooled;
  spec.mechanisms.shared_memory = Layout::pooled;
  spec.mechanisms.shared_memory_configuration = false;
  spec.mechanisms.local_memory_configuration = false;
  return spec;
}

constexpr std::array kPolicies = {
    PolicyRow{"round_robin", "the next SM with room, in turn", "the baseline of scheduling papers",
              false, whole_sms, make_round_robin},
    PolicyRow{"first_fit", "the first SM with room, in order of preference",
              "leftover policy with first fit", false, whole_sms, make_first_fit},
    PolicyRow{"most_room", "the SM with room for most blocks; SMs without processing blocks",
              "Gilman et al. 2020, most room", false, whole_sms, make_most_room},
    PolicyRow{"algorithm1", "Algorithm 1 to the letter, the slow reference",
              "ICCD 2023, Algorithm 1", false, as_it_is, make_algorithm1},
    PolicyRow{"ampere", "the same answers as algorithm1, level by level", "ICCD 2023, Algorithm 1",
              false, as_it_is, make_most_room},
    PolicyRow{"hopper", "as ampere, with block indices handed out in runs per GPC, and clusters",
              "traces h200/basic, h200/ptr, h200/cl", true, as_it_is, make_hopper},
};

}  // namespace

std::span<const PolicyRow> policy_table() { return kPolicies; }

const PolicyRow* find_policy(const std::string_view name) {
  const auto row = std::ranges::find(kPolicies, name, &PolicyRow::name);
  return row == kPolicies.end() ? nullptr : &*row;
}

}  // namespace tbsched
