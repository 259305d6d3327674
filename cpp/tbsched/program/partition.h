// Some of the SMs of a GPU: what a green context gives its launches.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tbsched {

// A request to the driver (cuDevSmResourceSplitByCount).
struct SplitRequest {
  int32_t min_sms = 0;            // of each group
  std::optional<int32_t> groups;  // at most; none: as many as possible
  bool ignore_coscheduling = false;
  bool max_cluster = false;

  bool operator==(const SplitRequest&) const = default;
};

struct Partition {
  std::vector<int32_t> sms;  // ascending
  // The driver's request that makes it: a group of a split, or its remainder. None: the driver did
  // not make it, and only predictions can use it.
  std::optional<SplitRequest> split = {};
  std::optional<int32_t> group = {};  // none: the remainder

  bool operator==(const Partition&) const = default;
};

}  // namespace tbsched
