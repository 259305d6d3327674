// Some of the SMs of a GPU: what a green context gives its launches.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tbsched {

// What the driver is asked for (cuDevSmResourceSplitByCount).
struct SplitRequest {
  int32_t min_sms = 0;            // of each group
  std::optional<int32_t> groups;  // at most; as many as there can be without it
  bool ignore_coscheduling = false;
  bool max_cluster = false;

  bool operator==(const SplitRequest&) const = default;
};

struct Partition {
  std::vector<int32_t> sms;  // ascending
  // How the driver makes it: a group of a split, or what it leaves over. None: nobody asked a
  // driver, and only a prediction can use it.
  std::optional<SplitRequest> split = {};
  std::optional<int32_t> group = {};  // none: what is left over

  bool operator==(const Partition&) const = default;
};

}  // namespace tbsched
