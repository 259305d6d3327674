#include "tbsched/hardware/check.h"

#include <algorithm>
#include <concepts>
#include <functional>
#include <numeric>
#include <vector>

#include "tbsched/hardware/documented_limits.h"
#include "tbsched/hardware/sm/units.h"
#include "tbsched/program/quoted.h"
#include "tbsched/program/refuse.h"

namespace tbsched {
namespace {

constexpr int32_t kMaxSharedMemoryBytes = ranges::shared_memory_per_block.high;

template <typename Member>
concept Number = std::same_as<Member, int32_t> || std::same_as<Member, int64_t>;

// Returns the values as in "(0, 8192, 16384)".
std::string in_words(const std::vector<int32_t>& values) {
  std::string words;
  for (const int32_t value : values) {
    words.append(words.empty() ? "" : ", ").append(std::to_string(value));
  }
  return "(" + words + ")";
}

// Refuses numbers outside of the ranges of their fields.
void check_ranges(const DeviceSpec& spec) {
  for_each_field(spec, []<typename Member>(const Field& field, const Member& member) {
    if constexpr (Number<Member>) {
      if (!field.range.holds(member)) refuse_outside(field, std::to_string(member));
    }
  });
}

// Refuses warps and registers that the processing blocks of an SM cannot share evenly.
void check_processing_blocks(const DeviceSpec& spec) {
  const auto require_multiple = [&](const char* const name, const int32_t value) {
    if (value % spec.processing_blocks == 0) return;
    refuse(std::string(name) + ": " + std::to_string(value) +
           " is not a multiple of processing_blocks, " + std::to_string(spec.processing_blocks));
  };
  require_multiple("warps_per_sm", spec.warps_per_sm);
  require_multiple("registers_per_sm", spec.registers_per_sm);
}

// Refuses a preference that does not name each SM once, and GPCs or coscheduled SMs that are not
// whole TPCs of the device.
void check_topology(const DeviceSpec& spec) {
  std::vector<int32_t> sms(spec.sms);
  std::iota(sms.begin(), sms.end(), 0);
  std::vector<int32_t> preferred = spec.sm_preference;
  std::ranges::sort(preferred);
  if (preferred != sms) {
    const auto [wrong, expected] = std::ranges::mismatch(preferred, sms);
    const std::string got =
        wrong == preferred.end()
            ? std::to_string(*expected) + " is missing"
            : std::to_string(*wrong) + " is there where " +
                  (expected == sms.end() ? "no more is" : std::to_string(*expected) + " is") +
                  " needed";
    refuse("sm_preference: must name each of the " + std::to_string(spec.sms) +
           " SMs once; in ascending order, " + got);
  }
  if (spec.coscheduled_sms % spec.sms_per_tpc != 0) {
    refuse("coscheduled_sms: " + std::to_string(spec.coscheduled_sms) + " must be whole TPCs, of " +
           std::to_string(spec.sms_per_tpc) + " SMs each");
  }
  const int32_t tpcs = ceil_div(spec.sms, spec.sms_per_tpc);
  std::vector<bool> named(tpcs);
  for (const std::vector<int32_t>& gpc : spec.gpcs) {
    for (const int32_t tpc : gpc) {
      if (tpc < 0 || tpc >= tpcs || named[tpc]) {
        refuse("gpcs: must name TPCs of 0.." + std::to_string(tpcs - 1) +
               ", each at most once; got " + std::to_string(tpc) +
               (tpc < 0 || tpc >= tpcs ? "" : " twice"));
      }
      named[tpc] = true;
    }
  }
}

// Refuses configurations that do not ascend or do not hold the largest block.
void check_shared_memory(const DeviceSpec& spec) {
  const std::vector<int32_t>& sizes = spec.shared_memory_configurations;
  const bool ascend = std::ranges::adjacent_find(sizes, std::greater_equal{}) == sizes.end();
  if (sizes.empty() || !ascend || sizes.front() < 0 || sizes.back() > kMaxSharedMemoryBytes) {
    refuse("shared_memory_configurations: must ascend within 0.." +
           std::to_string(kMaxSharedMemoryBytes) + ", got " + in_words(sizes));
  }
  const int32_t block = spec.shared_memory_per_block;
  if (round_up(block, spec.shared_memory_unit) + spec.shared_memory_reserve > sizes.back()) {
    refuse("shared_memory_per_block: " + std::to_string(block) +
           " with its reserve is more than the largest configuration, " +
           std::to_string(sizes.back()));
  }
}

// Returns the values of a field that has documented limits: a number, or a list in reverse; nothing
// for other types.
template <typename Member>
std::vector<int64_t> values_of(const Member& member) {
  if constexpr (Number<Member>) {
    return {member};
  } else if constexpr (std::same_as<Member, std::vector<int32_t>>) {
    return {member.rbegin(), member.rend()};
  } else {
    return {};
  }
}

}  // namespace

void check(const DeviceSpec& spec) {
  check_ranges(spec);
  check_processing_blocks(spec);
  check_topology(spec);
  check_shared_memory(spec);
}

void check_documented(const DeviceSpec& spec, const std::set<std::string>& measured) {
  for_each_field(spec, [&]<typename Member>(const Field& field, const Member& member) {
    std::vector<int64_t> limits;
    for (const DocumentedLimit& row : kDocumentedLimits) {
      if (row.compute_capability == spec.compute_capability && row.field == field.name) {
        limits.push_back(row.value);
      }
    }
    if (limits.empty() || measured.contains(field.path())) return;
    const auto contradicts = [&](const int64_t value, const int64_t limit) {
      const std::string documented = std::to_string(limit);
      refuse(field.path() + ": " + std::to_string(value) + " contradicts the " + documented +
             " that NVIDIA documents for compute capability " + spec.compute_capability +
             "; this file must have the row, with " + documented + " or with provenance measured");
    };
    // The largest value of a list must be there; all its values must be documented.
    const std::vector<int64_t> values = values_of(member);
    if (values.front() != limits.back()) contradicts(values.front(), limits.back());
    for (const int64_t value : values) {
      const auto next = std::ranges::lower_bound(limits, value);
      if (*next != value) contradicts(value, *next);
    }
  });
}

void refuse_outside(const Field& field, const std::string_view value) {
  refuse(field.label() + ": " + std::string(value) + " is outside " +
         std::to_string(field.range.low) + ".." + std::to_string(field.range.high));
}

Layout layout_named(const Field& field, const std::string_view name) {
  const auto row = std::ranges::find(kLayoutNames, name);
  if (row == kLayoutNames.end()) {
    refuse(field.label() + ": " + quoted(name) + " is not one of contiguous, circular, pooled");
  }
  return static_cast<Layout>(row - kLayoutNames.begin());
}

}  // namespace tbsched
