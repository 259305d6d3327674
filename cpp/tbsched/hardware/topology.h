// Which SMs belong to which TPC and GPC, indexed by SMID.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/device_spec.h"

namespace tbsched {

struct Topology {
  // Computes the tables from the TPCs of each GPC.
  explicit Topology(const DeviceSpec& spec);

  std::vector<int32_t> tpc_of_sm;  // dense, from 0
  std::vector<int32_t> gpc_of_sm;  // -1: a TPC that belongs to no GPC ("singleton")

  int32_t sms() const { return static_cast<int32_t>(tpc_of_sm.size()); }
};

}  // namespace tbsched
