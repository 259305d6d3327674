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

  // Returns the green context of a partition: at first the driver is asked for the same split. The
  // reference is valid until clear(). Throws std::invalid_argument if the partition has no request,
  // or the driver gives another number of SMs.
  const GreenContext& of(const Partition& partition);
  // Returns the number of green contexts that are kept.
  size_t size() const { return contexts_.size(); }
  // Destroys all green contexts. Nothing may run in them, and their streams must be gone.
  void clear() { contexts_.clear(); }

 private:
  // A split's request and the group; -1: as many groups as there can be, or the remainder.
  using Key = std::tuple<int32_t, int32_t, bool, bool, int32_t>;

  // Splits the SMs. Returns the groups, then the remainder. Throws std::invalid_argument if the
  // driver refuses.
  std::vector<CUdevResource> split(const SplitRequest& request) const;
  // Returns the SMs of a partition in a split. Throws std::invalid_argument if there are none.
  CUdevResource resource_of(const SplitRequest& request, const Partition& partition) const;
  // Throws std::invalid_argument if the driver has no green contexts.
  void check_driver() const;

  const Context& context_;
  std::map<Key, std::unique_ptr<GreenContext>> contexts_;
};

}  // namespace tbsched::cuda
