// The policies. To add one: its file, and here its factory and a row.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "tbsched/policy/policy.h"
#include "tbsched/program/quoted.h"

namespace tbsched {

// Factories, each defined in the policy's own file.
StartPolicy make_first_fit(const Device& device);
StartPolicy make_round_robin(const Device& device);
StartPolicy make_most_room(const Device& device);
StartPolicy make_algorithm1_printed(const Device& device);
StartPolicy make_algorithm1(const Device& device);
StartPolicy make_hopper(const Device& device);
std::vector<InitialState> hopper_states(const Device& device);

namespace {

constexpr std::array<std::string_view, 2> kHopperStateNames = {"first_gpc", "first_singleton"};

// Returns the device unchanged.
DeviceSpec as_it_is(DeviceSpec spec) { return spec; }

// Returns the device with all shared memory counted: these policies know no threshold.
DeviceSpec with_all_counted(DeviceSpec spec) {
  spec.shared_memory_threshold = 0;
  return spec;
}

// Returns the device with each SM as one pool of slots, warps, registers and shared memory, without
// the mechanisms found later.
DeviceSpec with_pooled_sms(DeviceSpec spec) {
  spec = with_all_counted(std::move(spec));
  spec.processing_blocks = 1;
  spec.mechanisms.registers = Layout::pooled;
  spec.mechanisms.shared_memory = Layout::pooled;
  spec.mechanisms.shared_memory_configuration = false;
  spec.mechanisms.local_memory_configuration = false;
  return spec;
}

// Returns the device with what the ICCD 2023 paper says of every GPU: ties go to even SMs, then to
// odd ones (line 9); a TPC has one configuration, which is what the blocks that fit an SM need
// (Mechanism 3); shared memory is contiguous (Mechanism 4).
DeviceSpec as_printed(DeviceSpec spec) {
  spec = with_all_counted(std::move(spec));
  std::ranges::sort(spec.sm_preference, {}, [](const int32_t sm) { return std::pair(sm % 2, sm); });
  spec.mechanisms.configuration_per_tpc = true;
  spec.mechanisms.configuration_headroom = false;
  if (spec.mechanisms.shared_memory == Layout::circular) {
    spec.mechanisms.shared_memory = Layout::contiguous;
  }
  return spec;
}

// From the weakest to the strongest, as recordings of an H200 show (README.md).
constexpr std::array kPolicies = {
    PolicyRow{"first_fit", "the first SM with room, in order of preference",
              "leftover policy with first fit", false, false, with_pooled_sms, make_first_fit},
    PolicyRow{"algorithm1_printed", "Algorithm 1 as printed: warps are compared with blocks",
              "ICCD 2023, Algorithm 1", false, false, as_printed, make_algorithm1_printed},
    PolicyRow{"round_robin", "the next SM with room, in turn", "the baseline of scheduling papers",
              false, false, with_pooled_sms, make_round_robin},
    PolicyRow{"most_room", "the SM with room for most blocks; SMs without processing blocks",
              "Gilman et al. 2020, most room", false, true, with_pooled_sms, make_most_room},
    PolicyRow{"algorithm1", "Algorithm 1 repaired (line 26 counts blocks), the slow reference",
              "after ICCD 2023, Algorithm 1", false, true, as_it_is, make_algorithm1},
    PolicyRow{"ampere", "the same answers as algorithm1, level by level",
              "after ICCD 2023, Algorithm 1", false, true, as_it_is, make_most_room},
    PolicyRow{"hopper", "as ampere, with block indices handed out in runs per GPC, and clusters",
              "traces h200/basic, h200/ptr, h200/cl", true, true, with_all_counted, make_hopper,
              kHopperStateNames, hopper_states, true},
};

constexpr PolicyRow kOwn{.name = "own",
                         .summary = "a policy of the caller's own",
                         .source = "",
                         .places_clusters = false,
                         .most_room_first = false,
                         .sees = as_it_is,
                         .make = nullptr,
                         .may_decline = true};

}  // namespace

const PolicyRow& own_policy() { return kOwn; }

std::span<const PolicyRow> policy_table() { return kPolicies; }

const PolicyRow& policy_named(const std::string_view name) {
  const auto row = std::ranges::find(kPolicies, name, &PolicyRow::name);
  if (row != kPolicies.end()) return *row;
  std::string message = "policy: " + quoted(name) + " is unknown; there are";
  const char* separator = " ";
  for (const PolicyRow& known : kPolicies) {
    message.append(std::exchange(separator, ", ")).append(known.name);
  }
  throw std::invalid_argument(message);
}

}  // namespace tbsched
