#include "launcher/probe/probe.h"

#include <string>

#include "launcher/probe/cubin.h"
#include "launcher/probe/probe_abi.h"
#include "launcher/probe/probe_images.h"

namespace tbsched::cuda {
namespace {

constexpr size_t kMostVariants = 1024;
constexpr int32_t kDriversChoice = -1;

// A cubin runs on its own compute capability and on later minor versions of the same major one.
const ProbeImage& choose_image(const int32_t architecture, const bool from_ptx,
                               const bool dependent) {
  const ProbeImage* best = nullptr;
  for (const ProbeImage& image : probe_images()) {
    if (image.dependent != dependent || image.architecture > architecture) continue;
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

class Linker {
 public:
  explicit Linker(const Driver& driver) : driver_(driver) {
    driver_.link_create(0, nullptr, nullptr, &state_);
  }
  ~Linker() { driver_.link_destroy.code(state_); }
  Linker(const Linker&) = delete;
  Linker& operator=(const Linker&) = delete;

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

std::vector<std::byte> load_image(const Context& context, const bool from_ptx,
                                  const bool dependent) {
  const ProbeImage& image = choose_image(context.properties().architecture, from_ptx, dependent);
  if (!image.is_ptx) return {image.bytes.begin(), image.bytes.end()};
  const CurrentContext current(context);
  return Linker(context.driver()).compile(image.bytes);
}

}  // namespace

ProbeFunction::ProbeFunction(const Context& context, const std::span<const std::byte> image)
    : context_(context), library_(context.driver(), image), kernel_(library_.kernel(kProbeName)) {
  context.driver().kernel_get_function(&function_, kernel_);
}

int32_t ProbeFunction::attribute(const CUfunction_attribute which) const {
  int value = 0;
  context_.driver().function_get_attribute(&value, which, function_);
  return value;
}

void ProbeFunction::prepare(const Launch& launch) {
  Attributes& now = launch.partition ? in_partitions_ : everywhere_;
  const int32_t shared_memory =
      launch.partition ? context_.properties().shared_memory_per_block : launch.shared_memory;
  set(launch, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_memory, now.shared_memory);
  set(launch, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
      launch.carveout.value_or(kDriversChoice), now.carveout);
  if (context_.properties().clusters) {
    set(launch, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, now.large_clusters);
  }
}

void ProbeFunction::set(const Launch& launch, const CUfunction_attribute which, const int32_t value,
                        int32_t& current) {
  if (value == current) return;
  const Driver& driver = context_.driver();
  if (launch.partition) {
    driver.kernel_set_attribute(which, value, kernel_, context_.device());
  } else {
    driver.function_set_attribute(function_, which, value);
  }
  current = value;
}

Probe::Probe(const Context& context, const bool from_ptx)
    : context_(context),
      from_ptx_(from_ptx),
      plain_(load_image(context, from_ptx, /*dependent=*/false)) {}

ProbeFunction& Probe::variant(const Launch& launch) {
  Variant variant{launch.registers, launch.local_memory, takes_steps(launch)};
  if (launch.partition) variant.carveout = launch.carveout.value_or(kDriversChoice);
  return load(variant);
}

ProbeFunction& Probe::node_variant(const Launch& launch) {
  return load({.registers = launch.registers,
               .local_memory = launch.local_memory,
               .dependent = takes_steps(launch),
               .shared_memory = launch.shared_memory,
               .carveout = launch.carveout.value_or(kDriversChoice)});
}

ProbeFunction& Probe::load(const Variant& variant) {
  auto& function = variants_[variant];
  if (!function) {
    if (variant.dependent && dependent_.empty()) {
      dependent_ = load_image(context_, from_ptx_, /*dependent=*/true);
    }
    const std::vector<std::byte>& image = variant.dependent ? dependent_ : plain_;
    function = std::make_unique<ProbeFunction>(
        context_, patch(image, variant.registers, variant.local_memory));
  }
  return *function;
}

void Probe::trim() {
  if (variants_.size() > kMostVariants) variants_.clear();
}

int32_t resident(const Context& context, ProbeFunction& function, const Launch& launch,
                 const CUstream stream) {
  function.prepare(launch);
  int count = 0;
  if (launch.cluster > 1) {
    const LaunchConfiguration configuration(launch, stream, nullptr);
    const auto& query = context.driver().occupancy_clusters;
    const CUresult result = query.code(&count, function.handle(launch), &configuration.config);
    // Sizes that can never run are an error to this query, not a zero.
    if (result == CUDA_ERROR_INVALID_CLUSTER_SIZE) return 0;
    query.check(result);
    return count;
  }
  context.driver().occupancy_blocks(&count, function.handle(launch), launch.threads,
                                    static_cast<size_t>(launch.shared_memory));
  return count;
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
