#include "launcher/driver/partitions.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace tbsched::cuda {
namespace {

constexpr int32_t kNone = -1;

// Throws std::invalid_argument for a partition.
[[noreturn]] void refuse_partition(const std::string& why) {
  throw std::invalid_argument("Launch.partition: " + why);
}

// Returns the words for a split.
std::string text_of(const SplitRequest& request) {
  std::string text = "min_sms=" + std::to_string(request.min_sms);
  if (request.groups) text += ", groups=" + std::to_string(*request.groups);
  if (request.ignore_coscheduling) text += ", ignore_coscheduling=True";
  if (request.max_cluster) text += ", max_cluster=True";
  return "the split of " + text;
}

// Returns the driver's flags for a split.
unsigned flags_of(const SplitRequest& request) {
  return (request.ignore_coscheduling ? CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING : 0U) |
         (request.max_cluster ? CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE : 0U);
}

}  // namespace

const GreenContext& Partitions::of(const Partition& partition) {
  if (!partition.split) {
    refuse_partition(
        "Partition.split: None: the driver makes partitions by splitting the SMs, so it must know "
        "how; take one of those that split_sms returns");
  }
  const SplitRequest& request = *partition.split;
  auto& context =
      contexts_[{request.min_sms, request.groups.value_or(kNone), request.ignore_coscheduling,
                 request.max_cluster, partition.group.value_or(kNone)}];
  if (!context) {
    check_driver();
    context = std::make_unique<GreenContext>(context_, resource_of(request, partition));
  }
  if (std::cmp_not_equal(context->sms(), partition.sms.size())) {
    refuse_partition("Partition.sms: " + std::to_string(partition.sms.size()) +
                     " SMs, but the driver gives " + std::to_string(context->sms()) + " in " +
                     text_of(request) + "; was it split for another GPU?");
  }
  return *context;
}

void Partitions::check_driver() const {
  const Driver& driver = context_.driver();
  const auto check = [&](const auto&... entries) {
    for (const char* const missing : {(entries ? nullptr : entries.name())...}) {
      if (missing == nullptr) continue;
      const int32_t version = context_.properties().driver_api;
      refuse_partition("partitions need a CUDA driver of 12.5 or later; this one, of " +
                       std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10) +
                       ", has no " + missing);
    }
  };
  check(driver.device_get_resource, driver.split_sms, driver.describe_resource,
        driver.green_context_create, driver.green_context_destroy, driver.context_from_green,
        driver.green_stream_create);
}

CUdevResource Partitions::resource_of(const SplitRequest& request,
                                      const Partition& partition) const {
  const std::vector<CUdevResource> parts = split(request);
  const size_t groups = parts.size() - 1;
  if (partition.group &&
      (*partition.group < 0 || std::cmp_greater_equal(*partition.group, groups))) {
    refuse_partition("Partition.group: " + std::to_string(*partition.group) +
                     ": the driver makes " + std::to_string(groups) + " groups in " +
                     text_of(request));
  }
  const CUdevResource& part =
      parts[partition.group ? static_cast<size_t>(*partition.group) : groups];
  if (part.type != CU_DEV_RESOURCE_TYPE_SM || part.sm.smCount == 0) {
    refuse_partition("Partition.group: None: " + text_of(request) + " leaves no SM over");
  }
  return part;
}

std::vector<CUdevResource> Partitions::split(const SplitRequest& request) const {
  const Driver& driver = context_.driver();
  CUdevResource whole{};
  driver.device_get_resource(context_.device(), &whole, CU_DEV_RESOURCE_TYPE_SM);
  CUdevResource remainder{};
  const auto call_split = [&](CUdevResource* const parts, unsigned& groups) {
    const CUresult result =
        driver.split_sms.code(parts, &groups, &whole, &remainder, flags_of(request),
                              static_cast<unsigned>(request.min_sms));
    if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION) {
      refuse_partition("Partition.split: the driver refuses " + text_of(request) + ": " +
                       driver.name_of(result));
    }
    driver.split_sms.check(result);
  };
  unsigned groups = 0;
  call_split(nullptr, groups);  // how many there can be
  if (request.groups) groups = std::min(groups, static_cast<unsigned>(*request.groups));
  std::vector<CUdevResource> parts(groups);
  call_split(parts.data(), groups);
  parts.resize(groups);
  parts.push_back(remainder);
  return parts;
}

}  // namespace tbsched::cuda
