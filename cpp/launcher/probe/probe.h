// The probe kernel in every size that launches use.
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
#include "launcher/probe/probe_abi.h"
#include "launcher/probe/probe_images.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

// A kernel in one context: that of the whole GPU, or of a partition. Its carveout is that of the
// next launch in any context: the driver keeps one for all, and reads it in the launch call.
class ProbeFunction {
 public:
  // `partition`: nullptr: the whole GPU, whose context is the current one in all calls.
  ProbeFunction(const Context& context, CUkernel kernel, const GreenContext* partition);
  ProbeFunction(const ProbeFunction&) = delete;
  ProbeFunction& operator=(const ProbeFunction&) = delete;

  CUfunction handle() const { return handle_; }
  // Sets this kernel in the parameters of a node. With a function in place of the kernel, the
  // driver would ignore the partition.
  void set_in(CUDA_KERNEL_NODE_PARAMS& node) const;
  // Returns what the driver says of the kernel.
  int32_t attribute(CUfunction_attribute which) const;
  // Makes the context current in which the kernel is set up and launched, for the life of the
  // result.
  CurrentContext enter() const {
    return {context_.driver(), partition_ != nullptr ? partition_->context() : nullptr};
  }
  // Sets the carveout for the next launch. enter() must have been called.
  void prepare(const Launch& launch) const;
  // Returns how many blocks of the launch can be resident per SM, as the driver says, or how many
  // clusters on all SMs of the stream.
  int32_t resident(const Launch& launch, CUstream stream);

 private:
  // Properties on which the number of resident blocks depends.
  struct Size {
    int32_t threads;
    int32_t shared_memory;
    int32_t carveout;
    int32_t cluster;
    auto operator<=>(const Size&) const = default;
  };

  // Asks the driver what resident() returns.
  int32_t query_resident(const Launch& launch, CUstream stream);

  const Context& context_;
  const GreenContext* const partition_;
  const CUkernel kernel_;
  CUfunction handle_ = nullptr;
  std::map<Size, int32_t> resident_;  // what was asked
};

// The probe kernels of one GPU, loaded as launches need them.
class Probe {
 public:
  // `from_ptx`: compile the PTX even if there is a cubin for this GPU. Throws NoGpu if the GPU is
  // older than every image.
  Probe(const Context& context, bool from_ptx);

  // Returns the function of a launch, and loads it if necessary. `meets`: its blocks wait for
  // others. `partition`: nullptr: the whole GPU. The reference is valid until trim() or
  // drop_partitions().
  ProbeFunction& function(const Launch& launch, bool meets, const GreenContext* partition);
  // Returns the function of a graph's node. It is unknown when the driver reads the carveout of a
  // node, so no launch with another carveout shares its kernel.
  ProbeFunction& node_function(const Launch& node, bool meets, const GreenContext* partition);
  // Returns the function of a node in the body of a conditional node.
  ProbeFunction& body_function(const Launch& node);
  // Unloads all kernels if there are too many. None may be running.
  void trim();
  // Drops the functions of all partitions. None may be running.
  void drop_partitions();

 private:
  // Properties that are patched into the code of a kernel.
  struct Variant {
    int32_t registers;
    int32_t local_memory;
    ProbeKind kind;
    std::optional<int32_t> carveout = {};  // of a node of a graph
    auto operator<=>(const Variant&) const = default;
  };

  // A kernel that is loaded once for all contexts.
  struct Kernel {
    Kernel(const Driver& driver, std::span<const std::byte> image)
        : library(driver, image), handle(library.kernel(kProbeName)) {}

    Library library;
    CUkernel handle;
    std::map<const GreenContext*, ProbeFunction> functions = {};
  };

  // Returns a variant for a partition, patched and loaded if it is new.
  ProbeFunction& find(const Variant& variant, const GreenContext* partition);

  const Context& context_;
  const bool from_ptx_;
  std::map<ProbeKind, std::vector<std::byte>> images_;  // loaded as launches need them
  std::map<Variant, std::unique_ptr<Kernel>> kernels_;
};

// Returns whether blocks of a launch trigger dependents, or wait for the work before them in the
// stream.
inline bool takes_steps(const Launch& launch) { return launch.trigger_ns || launch.memory_wait_ns; }

// The configuration of cuLaunchKernelEx, with the attributes to which it points.
class LaunchConfiguration {
 public:
  // `completion`: the event that happens when all blocks have started; nullptr: none.
  LaunchConfiguration(const Launch& launch, CUstream stream, CUevent completion);
  LaunchConfiguration(const LaunchConfiguration&) = delete;
  LaunchConfiguration& operator=(const LaunchConfiguration&) = delete;

  std::span<const CUlaunchAttribute> attributes() const {
    return std::span(attributes_).first(config.numAttrs);
  }

  CUlaunchConfig config{};

 private:
  // Adds an attribute, and returns its value to be set.
  CUlaunchAttributeValue& add(CUlaunchAttributeID which);

  std::array<CUlaunchAttribute, 4> attributes_;  // the first numAttrs are set
};

}  // namespace tbsched::cuda
