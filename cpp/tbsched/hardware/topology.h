// How the SMs of a device hang together. Indexed by SMID.
#pragma once

#include <cstdint>
#include <vector>

namespace tbsched {

struct Topology {
  std::vector<int32_t> tpc_of_sm;      // dense, from 0
  std::vector<int32_t> gpc_of_sm;      // -1: a TPC that belongs to no GPC ("singleton")
  std::vector<int32_t> sm_preference;  // the SMs, most preferred first, among equally suitable ones

  int32_t sms() const { return static_cast<int32_t>(tpc_of_sm.size()); }
};

}  // namespace tbsched
