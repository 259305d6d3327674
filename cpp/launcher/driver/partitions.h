// The partitions of a GPU that launches use, created when first needed and kept.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/driver/resources.h"
#include "tbsched/program/partition.h"

namespace tbsched::cuda {

class Partitions {
 public:
  explicit Partitions(const Context& context) : context_(context) {}

  // Requests the same split from the driver. The reference is valid until clear(). Throws
  // std::invalid_argument if the partition has no request, or the driver's answer differs.
  const GreenContext& of(const Partition& partition);
  size_t size() const { return made_.size(); }
  // Nothing may run in them, and their streams must be gone.
  void clear() { made_.clear(); }

 private:
  // A split and the index of its part.
  using Key = std::tuple<int32_t, int32_t, bool, bool, int32_t>;

  // Returns the groups, then the remainder.
  std::vector<CUdevResource> split(const SplitRequest& request) const;
  CUdevResource part(const SplitRequest& request, const Partition& partition) const;
  void check_driver() const;

  const Context& context_;
  std::map<Key, std::unique_ptr<GreenContext>> made_;
};

}  // namespace tbsched::cuda
