// The floor of a campaign's speed: the same launches with nothing recorded. Nobody waits for a
// launch to be placed or for a release to be done, and nobody reads what blocks write.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/driver/resources.h"
#include "launcher/probe/probe_abi.h"

namespace {

using namespace tbsched::cuda;

constexpr size_t kLine = 128;
constexpr size_t kMostLaunches = 128;  // of a sequence
constexpr size_t kFlags = kMostLaunches * kLine;
constexpr size_t kRecords = size_t{1} << 20;

// Laid out as in campaign_speed.py.
struct FloorEvent {
  int32_t kind;      // 0: launch, 1: release, 2: end of a sequence
  int32_t launch;    // its number in the sequence
  int32_t function;  // as load() counted it
  int32_t blocks;
  int32_t threads;
  int32_t shared_memory;
};

class Floor {
 public:
  Floor()
      : context_(0),
        current_(context_),
        memory_(context_.driver(), kFlags + kRecords * sizeof(BlockRecord)),
        relays_(context_.driver()) {
    relays_.reserve(kMostLaunches);
    relays_.write(std::vector<Relay>(relays_.size()));
    for (size_t i = 0; i < kMostLaunches; ++i) {
      streams_.push_back(
          std::make_unique<CudaStream>(context_.driver(), CU_STREAM_NON_BLOCKING, 0));
    }
  }

  void load(const std::byte* const image, const size_t size) {
    const Driver& driver = context_.driver();
    libraries_.push_back(std::make_unique<Library>(driver, std::span(image, size)));
    CUfunction& function = functions_.emplace_back();
    driver.kernel_get_function(&function, libraries_.back()->kernel(kProbeName));
    driver.function_set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  context_.properties().shared_memory_per_block);
    driver.function_set_attribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                  100);
  }

  // `held`: blocks stay until released; else they leave at once.
  void run(const std::span<const FloorEvent> events, const bool held) {
    int32_t launches = 0;
    ++run_;
    for (const FloorEvent& event : events) {
      if (event.kind == 0) {
        launch(event, held);
        launches = event.launch + 1;
      } else if (event.kind == 1) {
        flag(event.launch).store(run_, std::memory_order_release);
      } else {
        for (int32_t i = 0; i < launches; ++i) flag(i).store(run_, std::memory_order_release);
        for (int32_t i = 0; i < launches; ++i) finish(streams_[static_cast<size_t>(i)]->handle());
        ++run_;
      }
    }
  }

 private:
  std::byte* flag_place(const int32_t launch) {
    return memory_.bytes().data() + static_cast<size_t>(launch) * kLine;
  }
  std::atomic_ref<uint32_t> flag(const int32_t launch) {
    return std::atomic_ref(*reinterpret_cast<uint32_t*>(flag_place(launch)));
  }

  void launch(const FloorEvent& event, const bool held) {
    ProbeArguments arguments{
        // All launches share these.
        .records =
            memory_.on_device(reinterpret_cast<BlockRecord*>(memory_.bytes().data() + kFlags)),
        .warp_slots = nullptr,
        .release = memory_.on_device(reinterpret_cast<uint32_t*>(flag_place(event.launch))),
        .relay = relays_.at(static_cast<size_t>(event.launch)),
        .ticks = nullptr,
        .same_ticks = held ? 5'000'000U : 0U,
        .run = run_,
        .ask_bits = kFirstBlockAsks,
        .ask_sleep_ns = 2000,
        .look_sleep_ns = static_cast<uint32_t>(std::clamp(event.blocks, 500, 4000)),
        .waiting = kHeld,
        .steps = {},
    };
    if (!held) arguments.waiting.linger_ns = 0;
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(event.blocks);
    config.blockDimX = static_cast<unsigned>(event.threads);
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = static_cast<unsigned>(event.shared_memory);
    config.hStream = streams_[static_cast<size_t>(event.launch)]->handle();
    std::array<void*, 1> pointers{&arguments};
    context_.driver().launch_kernel(&config, functions_[static_cast<size_t>(event.function)],
                                    pointers.data(), nullptr);
  }

  void finish(const CUstream stream) const {
    while (context_.driver().stream_query.code(stream) == CUDA_ERROR_NOT_READY) {
      std::this_thread::yield();
    }
  }

  const Context context_;
  const CurrentContext current_;
  MappedMemory memory_;
  DeviceMemory<Relay> relays_;
  uint32_t run_ = 0;
  std::vector<std::unique_ptr<CudaStream>> streams_;
  std::vector<std::unique_ptr<Library>> libraries_;
  std::vector<CUfunction> functions_;
};

Floor& the_floor() {
  static Floor floor;
  return floor;
}

}  // namespace

extern "C" void floor_load(const std::byte* const image, const size_t size) {
  the_floor().load(image, size);
}

// Seconds.
extern "C" double floor_run(const FloorEvent* const events, const size_t count, const int held) {
  const auto begin = std::chrono::steady_clock::now();
  the_floor().run({events, count}, held != 0);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
