// The probe kernel in every size that launches ask for.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/driver/resources.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

// One loaded variant. Its attributes are those of the next launch, not of the kernel: the driver
// reads them in the launch call.
//
// A partition is a context of its own, and a function is of one context. In the primary one
// launches have theirs, which takes the driver least time; in partitions they have the kernel. What
// a kernel's attributes are when it first runs in a partition, they stay there, whatever is set
// later. So launches in partitions share a variant only if they have one carveout.
class ProbeFunction {
 public:
  ProbeFunction(const Context& context, std::span<const std::byte> image);

  CUfunction handle(const Launch& launch) const {
    return launch.partition ? reinterpret_cast<CUfunction>(kernel_) : function_;
  }
  CUkernel kernel() const { return kernel_; }
  int32_t attribute(CUfunction_attribute which) const;
  // Shared memory and carveout for the occupancy query or the launch that follows.
  void prepare(const Launch& launch);

 private:
  // What was set last.
  struct Attributes {
    int32_t shared_memory = -1;
    int32_t carveout = -1;  // the driver's choice
    int32_t large_clusters = 0;
  };

  void set(const Launch& launch, CUfunction_attribute which, int32_t value, int32_t& current);

  const Context& context_;
  Library library_;
  CUkernel kernel_;
  CUfunction function_ = nullptr;
  Attributes everywhere_;
  Attributes in_partitions_;
};

class Probe {
 public:
  // `from_ptx`: compile the PTX even if there is a cubin for this GPU. Throws NoGpu if the GPU is
  // older than every image.
  Probe(const Context& context, bool from_ptx);

  // What the launch runs; loads it if it is not. The reference holds until trim().
  ProbeFunction& variant(const Launch& launch);
  // The same of a node of a graph. Nobody knows when the driver reads its attributes, so no launch
  // with others shares it.
  ProbeFunction& node_variant(const Launch& launch);
  // Forgets all variants if they have become many. None may be running.
  void trim();

 private:
  struct Variant {
    int32_t registers;
    int32_t local_memory;
    bool dependent;
    std::optional<int32_t> shared_memory = {};  // of a node of a graph
    std::optional<int32_t> carveout = {};       // of one, and in a partition
    auto operator<=>(const Variant&) const = default;
  };

  ProbeFunction& load(const Variant& variant);

  const Context& context_;
  const bool from_ptx_;
  std::vector<std::byte> plain_;
  std::vector<std::byte> dependent_;  // empty until a launch needs it
  std::map<Variant, std::unique_ptr<ProbeFunction>> variants_;
};

// Whether its blocks trigger, or wait for what comes before in the stream.
inline bool takes_steps(const Launch& launch) { return launch.trigger_ns || launch.memory_wait_ns; }

// Blocks (or clusters) of the launch that the GPU itself says can be resident: per SM, or, for
// clusters, on all SMs of the stream.
int32_t resident(const Context& context, ProbeFunction& function, const Launch& launch,
                 CUstream stream);

// What cuLaunchKernelEx is told. The attributes live beside the configuration that points to them.
class LaunchConfiguration {
 public:
  // `completion`: the event of all blocks having started; null: none.
  LaunchConfiguration(const Launch& launch, CUstream stream, CUevent completion);
  LaunchConfiguration(const LaunchConfiguration&) = delete;
  LaunchConfiguration& operator=(const LaunchConfiguration&) = delete;

  std::span<const CUlaunchAttribute> attributes() const {
    return std::span(attributes_).first(config.numAttrs);
  }

  CUlaunchConfig config{};

 private:
  CUlaunchAttributeValue& add(CUlaunchAttributeID which);

  std::array<CUlaunchAttribute, 4> attributes_;  // the first numAttrs are set
};

}  // namespace tbsched::cuda
