#include "launcher/probe/probe.h"

#include <string>

#include "launcher/probe/cubin.h"
#include "launcher/probe/probe_abi.h"
#include "launcher/probe/probe_images.h"

namespace tbsched::cuda {
namespace {

constexpr size_t kMaxKernels = 1024;
constexpr size_t kMaxCachedSizes = 1024;  // of resident_
constexpr int32_t kDriversChoice = -1;

// Returns the probe that a launch needs. `meets`: its blocks wait for others.
ProbeKind kind_of(const Launch& launch, const bool meets) {
  if (meets) return ProbeKind::meeting;
  return takes_steps(launch) ? ProbeKind::dependent : ProbeKind::plain;
}

// Returns the carveout of a launch in percent; -1: the driver chooses.
int32_t carveout_of(const Launch& launch) { return launch.carveout.value_or(kDriversChoice); }

// Returns the image that runs on an architecture: a cubin for the latest minor version up to its
// own, of the same major one; else, or with `from_ptx`, PTX. Throws NoGpu if there is none.
const ProbeImage& choose_image(const int32_t architecture, const bool from_ptx,
                               const ProbeKind kind) {
  const ProbeImage* best = nullptr;
  for (const ProbeImage& image : probe_images()) {
    if (image.kind != kind || image.architecture > architecture) continue;
    const bool same_major = image.architecture / 10 == architecture / 10;
    const bool runs = image.is_ptx ? from_ptx || best == nullptr : same_major && !from_ptx;
    if (runs) best = &image;
  }
  if (best == nullptr) {
    throw NoGpu("this GPU has compute capability " + std::to_string(architecture / 10) + "." +
                std::to_string(architecture % 10) +
                "; the nvcc that tbsched was built with compiles for " +
                std::to_string(probe_images().front().architecture) + " and later only");
  }
  return *best;
}

// The driver's compiler.
class Linker {
 public:
  explicit Linker(const Driver& driver) : driver_(driver) {
    driver_.link_create(0, nullptr, nullptr, &state_);
  }
  ~Linker() { driver_.link_destroy.code(state_); }
  Linker(const Linker&) = delete;
  Linker& operator=(const Linker&) = delete;

  // Returns the cubin of a PTX text.
  std::vector<std::byte> compile(const std::span<const std::byte> ptx) const {
    std::vector<std::byte> text(ptx.begin(), ptx.end());
    driver_.link_add_data(state_, CU_JIT_INPUT_PTX, text.data(), text.size(), kProbeName, 0,
                          nullptr, nullptr);
    void* cubin = nullptr;
    size_t size = 0;
    driver_.link_complete(state_, &cubin, &size);
    const auto* const bytes = static_cast<const std::byte*>(cubin);
    return {bytes, bytes + size};
  }

 private:
  const Driver& driver_;
  CUlinkState state_ = nullptr;
};

// Returns the cubin of a probe for a GPU, compiled from PTX if necessary.
std::vector<std::byte> load_image(const Context& context, const bool from_ptx,
                                  const ProbeKind kind) {
  const ProbeImage& image = choose_image(context.properties().architecture, from_ptx, kind);
  if (!image.is_ptx) return {image.bytes.begin(), image.bytes.end()};
  const CurrentContext current(context);
  return Linker(context.driver()).compile(image.bytes);
}

}  // namespace

ProbeFunction::ProbeFunction(const Context& context, const CUkernel kernel,
                             const GreenContext* const partition)
    : context_(context), partition_(partition), kernel_(kernel) {
  const Driver& driver = context.driver();
  const CurrentContext current = enter();
  driver.kernel_get_function(&handle_, kernel);
  // A limit of its own has no effect on anything else.
  driver.function_set_attribute(handle_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                context.properties().shared_memory_per_block);
  if (context.properties().clusters) {
    driver.function_set_attribute(handle_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  }
}

int32_t ProbeFunction::attribute(const CUfunction_attribute which) const {
  const CurrentContext current = enter();
  int value = 0;
  context_.driver().function_get_attribute(&value, which, handle_);
  return value;
}

void ProbeFunction::set_in(CUDA_KERNEL_NODE_PARAMS& node) const {
  if (partition_ == nullptr) {
    node.func = handle_;
    return;
  }
  node.kern = kernel_;
  node.ctx = partition_->context();
}

void ProbeFunction::prepare(const Launch& launch) const {
  context_.driver().function_set_attribute(
      handle_, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, carveout_of(launch));
}

int32_t ProbeFunction::resident(const Launch& launch, const CUstream stream) {
  const Size size{launch.threads, launch.shared_memory, carveout_of(launch), launch.cluster};
  const auto known = resident_.find(size);
  if (known != resident_.end()) return known->second;
  if (resident_.size() == kMaxCachedSizes) resident_.clear();
  return resident_[size] = query_resident(launch, stream);
}

int32_t ProbeFunction::query_resident(const Launch& launch, const CUstream stream) {
  const CurrentContext current = enter();
  prepare(launch);
  int count = 0;
  if (launch.cluster > 1) {
    const LaunchConfiguration configuration(launch, stream, nullptr);
    const auto& query = context_.driver().occupancy_clusters;
    const CUresult result = query.code(&count, handle_, &configuration.config);
    // Sizes that can never run are an error to this query, not a zero.
    if (result == CUDA_ERROR_INVALID_CLUSTER_SIZE) return 0;
    query.check(result);
    return count;
  }
  context_.driver().occupancy_blocks(&count, handle_, launch.threads,
                                     static_cast<size_t>(launch.shared_memory));
  return count;
}

Probe::Probe(const Context& context, const bool from_ptx) : context_(context), from_ptx_(from_ptx) {
  images_[ProbeKind::plain] = load_image(context, from_ptx, ProbeKind::plain);
}

ProbeFunction& Probe::function(const Launch& launch, const bool meets,
                               const GreenContext* const partition) {
  return find({launch.registers, launch.local_memory, kind_of(launch, meets)}, partition);
}

ProbeFunction& Probe::node_function(const Launch& node, const bool meets,
                                    const GreenContext* const partition) {
  return find({.registers = node.registers,
               .local_memory = node.local_memory,
               .kind = kind_of(node, meets),
               .carveout = carveout_of(node)},
              partition);
}

ProbeFunction& Probe::body_function(const Launch& node) {
  return find({.registers = node.registers,
               .local_memory = node.local_memory,
               .kind = ProbeKind::body,
               .carveout = carveout_of(node)},
              nullptr);
}

ProbeFunction& Probe::find(const Variant& variant, const GreenContext* const partition) {
  auto& kernel = kernels_[variant];
  if (!kernel) {
    std::vector<std::byte>& image = images_[variant.kind];
    if (image.empty()) image = load_image(context_, from_ptx_, variant.kind);
    kernel = std::make_unique<Kernel>(context_.driver(),
                                      patch(image, variant.registers, variant.local_memory));
  }
  return kernel->functions.try_emplace(partition, context_, kernel->handle, partition)
      .first->second;
}

void Probe::trim() {
  if (kernels_.size() > kMaxKernels) kernels_.clear();
}

void Probe::drop_partitions() {
  for (const auto& [variant, kernel] : kernels_) {
    if (!kernel) continue;  // it could not be loaded
    std::erase_if(kernel->functions, [](const auto& entry) { return entry.first != nullptr; });
  }
}

LaunchConfiguration::LaunchConfiguration(const Launch& launch, const CUstream stream,
                                         const CUevent completion) {
  config.gridDimX = static_cast<unsigned>(launch.blocks);
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = static_cast<unsigned>(launch.threads);
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = static_cast<unsigned>(launch.shared_memory);
  config.hStream = stream;
  config.attrs = attributes_.data();
  if (launch.cluster > 1) {
    auto& size = add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim;
    size.x = static_cast<unsigned>(launch.cluster);
    size.y = size.z = 1;
  }
  if (launch.cooperative) add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
  if (launch.programmatic) {
    add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        .programmaticStreamSerializationAllowed = 1;
  }
  if (completion != nullptr) {
    add(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT).launchCompletionEvent.event = completion;
  }
}

CUlaunchAttributeValue& LaunchConfiguration::add(const CUlaunchAttributeID which) {
  CUlaunchAttribute& attribute = attributes_[config.numAttrs++];
  attribute = {};
  attribute.id = which;
  return attribute.value;
}

}  // namespace tbsched::cuda
