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
#include "launcher/probe/probe_abi.h"
#include "launcher/probe/probe_images.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

// A kernel as one context has it: that of the whole GPU, or of a partition. Its carveout is that of
// the next launch, in whatever context: the driver keeps one for all, and reads it in the launch
// call.
class ProbeFunction {
 public:
  // `partition`: null: the whole GPU, whose context is the current one in all calls.
  ProbeFunction(const Context& context, CUkernel kernel, const GreenContext* partition);
  ProbeFunction(const ProbeFunction&) = delete;
  ProbeFunction& operator=(const ProbeFunction&) = delete;

  CUfunction handle() const { return handle_; }
  // As a node of a graph names it: a function's partition would go unnoticed there.
  void name_in(CUDA_KERNEL_NODE_PARAMS& node) const;
  int32_t attribute(CUfunction_attribute which) const;
  // Makes the context current in which it is set up and launched.
  CurrentContext enter() const {
    return {context_.driver(), partition_ != nullptr ? partition_->context() : nullptr};
  }
  // Sets the carveout for the launch that follows. It has been entered.
  void prepare(const Launch& launch) const;
  // Blocks (or clusters) of the launch that the GPU itself says can be resident: per SM, or, for
  // clusters, on all SMs of the stream.
  int32_t resident(const Launch& launch, CUstream stream);

 private:
  // What decides how many are resident.
  struct Size {
    int32_t threads;
    int32_t shared_memory;
    int32_t carveout;
    int32_t cluster;
    auto operator<=>(const Size&) const = default;
  };

  int32_t ask_resident(const Launch& launch, CUstream stream);

  const Context& context_;
  const GreenContext* const partition_;
  const CUkernel kernel_;
  CUfunction handle_ = nullptr;
  std::map<Size, int32_t> resident_;
};

class Probe {
 public:
  // `from_ptx`: compile the PTX even if there is a cubin for this GPU. Throws NoGpu if the GPU is
  // older than every image.
  Probe(const Context& context, bool from_ptx);

  // What the launch runs; loads it if it is not. `meets`: its blocks wait for those that they meet.
  // `partition`: null: the whole GPU. The reference holds until trim() or leave_partitions().
  ProbeFunction& function(const Launch& launch, bool meets, const GreenContext* partition);
  // The same of a node of a graph. Nobody knows when the driver reads its carveout, so no launch
  // with another shares its kernel.
  ProbeFunction& node_function(const Launch& node, bool meets, const GreenContext* partition);
  // Forgets all kernels if they have become many. None may be running.
  void trim();
  // Forgets the functions of all partitions. None may be running.
  void leave_partitions();

 private:
  // What is patched into the code of a kernel.
  struct Variant {
    int32_t registers;
    int32_t local_memory;
    ProbeKind kind;
    std::optional<int32_t> carveout = {};  // of a node of a graph
    auto operator<=>(const Variant&) const = default;
  };

  // Loaded once, whatever contexts run it.
  struct Kernel {
    Kernel(const Driver& driver, std::span<const std::byte> image)
        : library(driver, image), handle(library.kernel(kProbeName)) {}

    Library library;
    CUkernel handle;
    std::map<const GreenContext*, ProbeFunction> functions = {};
  };

  ProbeFunction& find(const Variant& variant, const GreenContext* partition);

  const Context& context_;
  const bool from_ptx_;
  std::map<ProbeKind, std::vector<std::byte>> images_;  // as launches need them
  std::map<Variant, std::unique_ptr<Kernel>> kernels_;
};

// Whether its blocks trigger, or wait for what comes before in the stream.
inline bool takes_steps(const Launch& launch) { return launch.trigger_ns || launch.memory_wait_ns; }

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
