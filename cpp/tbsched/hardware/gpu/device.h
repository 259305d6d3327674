// A device, with tables that depend on its spec alone. Computed once, for any number of
// predictions.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/gpu/cluster_domains.h"
#include "tbsched/hardware/sm/sm_state.h"
#include "tbsched/hardware/topology.h"

namespace tbsched {

// The SMs [begin, end).
struct SmRange {
  int32_t begin;
  int32_t end;
};

struct Device {
  // Throws std::invalid_argument for an invalid spec.
  explicit Device(DeviceSpec device_spec);

  DeviceSpec spec;
  Topology topology;
  SmState empty_sm;
  std::vector<int32_t> rank_of_sm;  // position of each SM in the order of preference
  // The shared-memory configuration of each SM, counted from 0; neighbouring SMs may share one.
  std::vector<int32_t> configuration_of_sm;
  std::vector<SmRange> sms_of_configuration;
  std::vector<ClusterDomain> cluster_domains;
};

}  // namespace tbsched
