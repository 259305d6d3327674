#include "tbsched/sim/launch_check.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "tbsched/hardware/gpu/cluster_domains.h"
#include "tbsched/hardware/gpu/partitions.h"
#include "tbsched/program/refuse.h"

namespace tbsched {
namespace {

// Refuses a partition whose SMs do not ascend within those of the device.
void check_partition(const Partition& partition, const int32_t index, const DeviceSpec& spec) {
  const std::vector<int32_t>& sms = partition.sms;
  if (sms.empty()) refuse(index, "partition: it has no SMs");
  if (const auto wrong = std::ranges::adjacent_find(sms, std::greater_equal{});
      wrong != sms.end()) {
    refuse(index, "partition: its SMs are not ascending: " + std::to_string(wrong[1]) + " after " +
                      std::to_string(wrong[0]));
  }
  if (sms.front() < 0 || sms.back() >= spec.sms) {
    const int32_t wrong = sms.front() < 0 ? sms.front() : sms.back();
    refuse(index, "partition: SM " + std::to_string(wrong) + " is outside 0.." +
                      std::to_string(spec.sms - 1) + ", the SMs of " + spec.name);
  }
}

// Returns how many blocks the largest cluster on the SMs for which may_use(sm) is true has.
template <typename MayUse>
int32_t largest_in(const Device& device, const MayUse& may_use) {
  return largest_cluster(device.cluster_domains, device.spec.mechanisms, may_use);
}

// Returns how many SMs some part of every group of a split has at least.
int32_t guaranteed_sms(const SplitRequest& split, const DeviceSpec& spec) {
  return split.ignore_coscheduling ? spec.sms_per_tpc : spec.coscheduled_sms;
}

// Returns how many blocks the largest cluster in a partition has, or at least `wanted` if that many
// fit for sure. The driver places a cluster within one part of a partition.
int32_t largest_in_partition(const Partition& partition, const int32_t wanted,
                             const Device& device) {
  const int32_t in_all = largest_in(
      device, [&](const int32_t sm) { return std::ranges::binary_search(partition.sms, sm); });
  if (!partition.split || !partition.group) return in_all;
  const int32_t guaranteed = std::min(in_all, guaranteed_sms(*partition.split, device.spec));
  if (wanted <= guaranteed) return guaranteed;
  const auto parts = parts_of(partition, device.spec);
  if (!parts) return partition.split->max_cluster ? in_all : guaranteed;
  int32_t largest = 1;
  for (const SmSet& part : *parts) {
    const auto is_inside = [&](const int32_t sm) { return part.has(sm); };
    largest = std::max(largest, largest_in(device, is_inside));
  }
  return largest;
}

// Returns how many blocks the largest cluster has where the launch may be placed.
int32_t largest_cluster(const Launch& launch, const Device& device) {
  if (launch.partition) return largest_in_partition(*launch.partition, launch.cluster, device);
  return largest_in(device, [](int32_t) { return true; });
}

// Refuses clusters that do not divide the launch, or that the policy or the device does not place.
void check_cluster(const Launch& launch, const int32_t index, const Model& model) {
  const std::string got = "; got " + std::to_string(launch.cluster);
  if (launch.cluster < 1 || launch.blocks % launch.cluster != 0) {
    refuse(index,
           "cluster: must be positive and divide blocks, " + std::to_string(launch.blocks) + got);
  }
  if (!model.policy().places_clusters) {
    refuse(index, "cluster: policy '" + std::string(model.policy().name) +
                      "' places single blocks only" + got);
  }
  const Device& device = model.device();
  const int32_t largest = largest_cluster(launch, device);
  if (launch.cluster <= largest) return;
  // A cluster takes SMs of one GPC, or of one TPC that is in none.
  const std::string because =
      device.spec.gpcs.empty() ? ", as topology.gpcs does not say which TPCs are in which GPC" : "";
  const std::string where = launch.partition ? "this partition of " : "an idle ";
  refuse(index, "cluster: " + where + device.spec.name + " takes up to " + std::to_string(largest) +
                    " blocks" + because + got);
}

}  // namespace

void check(const Launch& launch, const int32_t index, const Model& model) {
  const DeviceSpec& spec = model.device().spec;
  const Bounded fields[] = {
      {"blocks", launch.blocks, 1, std::numeric_limits<int32_t>::max()},
      {"threads", launch.threads, 1, spec.threads_per_block},
      {"registers", launch.registers, 1, spec.registers_per_thread},
      {"shared_memory", launch.shared_memory, 0, spec.shared_memory_configurations.back()},
  };
  for (const Bounded& field : fields) {
    if (!field.is_within())
      refuse(index, field.outside_words() + ", what a launch on " + spec.name + " can have");
  }
  if (const int32_t carveout = launch.carveout.value_or(0); carveout < 0 || carveout > 100) {
    refuse(index, "carveout: " + std::to_string(carveout) + " is outside 0..100 percent");
  }
  if (const Range range = ranges::local_memory_initial; !range.holds(launch.local_memory)) {
    refuse(index, "local_memory: " + std::to_string(launch.local_memory) + " is outside 0.." +
                      std::to_string(range.high) + " bytes");
  }
  if (launch.partition) check_partition(*launch.partition, index, spec);
  if (launch.cluster != 1) check_cluster(launch, index, model);
}

}  // namespace tbsched
