// Which SMs the groups of a green context split have (cuDevSmResourceSplitByCount).
//
// All groups have as many SMs. TPCs are dealt to them in pieces of one GPC, as large as groups may
// have and then ever smaller, and only as long as there is a piece for every group. Pieces come row
// by row: the first of each GPC, then the second; TPCs of no GPC ("singletons") come after the
// GPCs. Source: traces partitions/h100, partitions/h200.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/partition.h"

namespace tbsched {

// SMs, ascending.
struct Split {
  std::vector<std::vector<int32_t>> groups;
  std::vector<int32_t> rest;
};

// Throws std::invalid_argument where the driver refuses, and for a device of which the GPCs or the
// SMs that are coscheduled are not known.
Split split_sms(const DeviceSpec& spec, const SplitRequest& request);

}  // namespace tbsched
