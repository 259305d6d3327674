// The sets of SMs that launches use: few, each made once, however many launches use it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/sm_set.h"
#include "tbsched/program/event.h"

namespace tbsched {

inline constexpr int32_t kWholeGpu = -1;

struct SmGroup {
  std::optional<SmSet> of_partition;  // none: the whole GPU
  SmSet sms;  // what the launches can use of it: clusters that no singleton TPC takes, the GPCs

  const SmSet* partition() const { return of_partition ? &*of_partition : nullptr; }
};

class SmGroups {
 public:
  // The number of the launch's group; kWholeGpu, which is not one of them, where it uses all SMs.
  int32_t of(const Launch& launch, const Device& device);
  // It stays where it is.
  const SmGroup& operator[](const int32_t group) const { return *groups_[group]; }

 private:
  int32_t add(const Partition* partition, bool in_gpcs_only, const Device& device);

  std::vector<std::unique_ptr<const SmGroup>> groups_;
  // By whether clusters need the GPCs, and the SMs of the partition; none: of the whole GPU.
  std::array<std::map<std::vector<int32_t>, int32_t>, 2> known_;
};

}  // namespace tbsched
