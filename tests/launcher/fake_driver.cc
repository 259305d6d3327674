// A stand-in for libcuda.so.1 and libnvidia-ml.so.1, to rehearse the launcher without a GPU.
//
// It emulates a GPU of a few SMs that holds the probe kernel's blocks under a trivial capacity
// rule: in order of priority and launch, each block on the SM with the fewest blocks where it fits,
// nothing overtakes. It says nothing about real hardware. fake_set(key, value) makes it misbehave.
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "launcher/probe/probe_abi.h"

namespace {

using tbsched::cuda::BlockRecord;
using tbsched::cuda::ProbeArguments;
using tbsched::cuda::Waiting;

constexpr int kBlocksPerSm = 32;
constexpr int kWarpsPerSm = 64;
constexpr int kRegistersPerSm = 65536;
constexpr int kSharedPerSm = 228 * 1024;
constexpr int kSharedPerBlock = 227 * 1024;

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

struct Size {
  int blocks = 0;
  int warps = 0;
  int registers = 0;
  int shared = 0;

  void add(const Size& other, const int sign) {
    blocks += sign * other.blocks;
    warps += sign * other.warps;
    registers += sign * other.registers;
    shared += sign * other.shared;
  }
  bool with_fits(const Size& other) const {
    return blocks + other.blocks <= kBlocksPerSm && warps + other.warps <= kWarpsPerSm &&
           registers + other.registers <= kRegistersPerSm && shared + other.shared <= kSharedPerSm;
  }
};

struct Function {
  int registers = 0;
  int local = 0;
  std::map<CUfunction_attribute, int> attributes;
};

// Numbers of grids.
using Grids = std::set<uint64_t>;

struct FakeStream {
  int priority = 0;
  bool blocking = false;
  Grids waits_for;  // whatever is launched next in it
};

struct FakeEvent {
  Grids recorded;
};

struct Grid {
  ProbeArguments arguments{};
  Size block;
  size_t blocks = 0;
  size_t next = 0;
  size_t gone = 0;
  int warps = 0;
  const FakeStream* stream = nullptr;
  uint64_t number = 0;
  Grids after;
};

struct Block {
  Grid* grid = nullptr;
  BlockRecord* record = nullptr;
  int sm = 0;
  uint64_t start = 0;
  uint64_t publish = 0;
  uint64_t end = 0;  // 0: not told to leave
};

class FakeGpu {
 public:
  static FakeGpu& get() {
    static FakeGpu gpu;
    return gpu;
  }

  void set(const std::string& key, const int64_t value) {
    const std::scoped_lock lock(mutex_);
    settings_[key] = value;
  }

  int64_t setting(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    return settings_[key];
  }

  void count(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    ++settings_[key];
  }

  CUresult launch(const Function& function, const CUlaunchConfig& config,
                  const ProbeArguments& arguments) {
    std::unique_lock lock(mutex_);
    ++settings_["launches"];
    if (const int64_t error = std::exchange(settings_["fail_launch"], 0); error != 0) {
      return static_cast<CUresult>(error);
    }
    int64_t& local_memory = settings_["local_memory"];
    local_memory = std::max<int64_t>(local_memory, function.local);
    const int64_t most_local = settings_["blocking_local"];
    if (most_local != 0 && function.local >= most_local) {
      idle_.wait(lock, [this] { return grids_.empty(); });
    }
    const FakeStream& stream = at(config.hStream);
    Grids after = before(stream);
    Grid& grid = grids_.emplace_back();
    grid.arguments = arguments;
    grid.blocks = config.gridDimX;
    grid.warps = static_cast<int>((config.blockDimX + 31) / 32);
    grid.block = {1, grid.warps, grid.warps * 32 * ((function.registers + 7) / 8 * 8),
                  static_cast<int>(config.sharedMemBytes) + 1024};
    grid.stream = &stream;
    grid.number = ++grids_launched_;
    grid.after = std::move(after);
    return CUDA_SUCCESS;
  }

  bool busy(const CUstream stream) {
    const std::scoped_lock lock(mutex_);
    return std::ranges::any_of(grids_,
                               [&](const Grid& grid) { return grid.stream == &at(stream); });
  }

  CUresult record(FakeEvent& event, const CUstream stream) {
    const std::scoped_lock lock(mutex_);
    event.recorded = before(at(stream));
    return static_cast<CUresult>(std::exchange(settings_["fail_record"], 0));
  }

  CUresult wait(const CUstream stream, const FakeEvent& event) {
    const std::scoped_lock lock(mutex_);
    at(stream).waits_for.insert(event.recorded.begin(), event.recorded.end());
    return static_cast<CUresult>(std::exchange(settings_["fail_wait"], 0));
  }

  CUresult make_event() {
    const std::scoped_lock lock(mutex_);
    ++settings_["events"];
    return static_cast<CUresult>(std::exchange(settings_["fail_event"], 0));
  }

 private:
  FakeStream& at(const CUstream stream) {
    return stream != nullptr ? *reinterpret_cast<FakeStream*>(stream) : legacy_;
  }

  // What must end before whatever comes next in the stream.
  Grids before(const FakeStream& stream) const {
    Grids found = stream.waits_for;
    for (const Grid& grid : grids_) {
      const bool through_legacy = (&stream == &legacy_ && grid.stream->blocking) ||
                                  (grid.stream == &legacy_ && stream.blocking);
      if (grid.stream == &stream || through_legacy) found.insert(grid.number);
    }
    return found;
  }

  bool ready(const Grid& grid) const {
    return std::ranges::none_of(
        grids_, [&](const Grid& other) { return grid.after.contains(other.number); });
  }

  FakeGpu() : sms_(4) {
    engine_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        step();
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    });
  }

  void step() {
    const std::scoped_lock lock(mutex_);
    for (auto block = blocks_.begin(); block != blocks_.end();) {
      block = advance(*block) ? std::next(block) : blocks_.erase(block);
    }
    grids_.remove_if([](const Grid& grid) { return grid.gone == grid.blocks; });
    if (grids_.empty()) idle_.notify_all();
    place();
  }

  // False: the block is gone.
  bool advance(Block& block) {
    BlockRecord& record = *block.record;
    const uint64_t now = now_ns();
    if (block.publish != 0 && now >= block.publish) {
      publish(record.started);
      block.publish = 0;
    }
    const ProbeArguments& arguments = block.grid->arguments;
    const Waiting& waiting = arguments.waiting;
    const bool told = __atomic_load_n(arguments.release, __ATOMIC_ACQUIRE) == arguments.run;
    const auto index = static_cast<size_t>(&record - arguments.records);
    const uint64_t ticks =
        arguments.ticks != nullptr ? arguments.ticks[index] : arguments.same_ticks;
    const uint64_t stayed = (now >> waiting.tick_bits) - (block.start >> waiting.tick_bits);
    if (block.end == 0 && block.publish == 0 && (told || stayed >= ticks)) {
      block.end = last_end_ = now;
      record.end_ns = now;
      record.end_smid = static_cast<uint32_t>(block.sm + settings_["moved"]);
      publish(record.ended);
    }
    if (block.end == 0 || now - block.end < waiting.linger_ns) return true;
    sms_[static_cast<size_t>(block.sm)].add(block.grid->block, -1);
    ++block.grid->gone;
    return false;
  }

  void place() {
    if (settings_["mute"] != 0) return;
    std::vector<Grid*> order;
    for (Grid& grid : grids_) order.push_back(&grid);
    std::ranges::stable_sort(order, {}, [](const Grid* grid) { return grid->stream->priority; });
    for (Grid* const grid : order) {
      if (!ready(*grid)) continue;
      while (grid->next < grid->blocks) {
        if (!place_next(*grid)) return;
      }
    }
  }

  bool place_next(Grid& grid) {
    int best = -1;
    for (int sm = 0; sm < static_cast<int>(sms_.size()); ++sm) {
      const Size& size = sms_[static_cast<size_t>(sm)];
      if (!size.with_fits(grid.block)) continue;
      if (best < 0 || size.blocks < sms_[static_cast<size_t>(best)].blocks) best = sm;
    }
    if (best < 0) return false;
    sms_[static_cast<size_t>(best)].add(grid.block, 1);
    const size_t index = grid.next++;
    Block& block = blocks_.emplace_back();
    block = {&grid, &grid.arguments.records[index], best, now_ns(), 0, 0};
    if (settings_["doubtful"] != 0 && last_end_ != 0)
      block.start = last_end_ + tbsched::cuda::kLingerNs / 8 * 5;
    block.publish = now_ns() + static_cast<uint64_t>(settings_["seen_late_us"]) * 1000;
    block.record->start_ns = block.start;
    block.record->smid = static_cast<uint32_t>(best);
    if (grid.arguments.warp_slots != nullptr) {
      for (int warp = 0; warp < grid.warps; ++warp) {
        grid.arguments
            .warp_slots[index * static_cast<size_t>(grid.warps) + static_cast<size_t>(warp)] = warp;
      }
    }
    return true;
  }

  static void publish(uint32_t& mark) { std::atomic_ref(mark).store(1, std::memory_order_release); }

  std::mutex mutex_;
  std::condition_variable idle_;
  std::map<std::string, int64_t> settings_;
  std::vector<Size> sms_;
  FakeStream legacy_{.priority = 0, .blocking = true, .waits_for = {}};
  uint64_t grids_launched_ = 0;
  std::list<Grid> grids_;
  std::list<Block> blocks_;
  uint64_t last_end_ = 0;
  std::jthread engine_;
};

// The value behind an attribute header of .nv.info, found the simple way.
int property(const std::string& image, const char kind) {
  const std::string header{'\x04', kind, '\x08', '\x00'};
  const size_t place = image.find(header);
  int value = 0;
  if (place != std::string::npos) std::memcpy(&value, image.data() + place + 8, sizeof(value));
  return value;
}

std::string image_text(const void* const image) {
  // The size of an ELF image is what its last header table says: enough for a look at .nv.info.
  const auto* const bytes = static_cast<const char*>(image);
  uint64_t section_headers = 0;
  std::memcpy(&section_headers, bytes + 40, sizeof(section_headers));
  return {bytes, section_headers};
}

}  // namespace

extern "C" {

void fake_set(const char* key, int64_t value) { FakeGpu::get().set(key, value); }
int64_t fake_get(const char* key) { return FakeGpu::get().setting(key); }

CUresult cuInit(unsigned) {
  return std::getenv("FAKE_NO_DEVICE") != nullptr ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS               ? "CUDA_SUCCESS"
          : error == CUDA_ERROR_NO_DEVICE     ? "CUDA_ERROR_NO_DEVICE"
          : error == CUDA_ERROR_NOT_READY     ? "CUDA_ERROR_NOT_READY"
          : error == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
                                              : "CUDA_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "made up by the fake driver";
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int index) {
  *device = index;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "Fake GPU", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice) {
  std::memset(uuid->bytes, 0x5a, sizeof(uuid->bytes));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice) {
  std::strncpy(text, "0000:01:00.0", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  const char* const architecture = std::getenv("FAKE_ARCHITECTURE");
  const int number = architecture != nullptr ? std::atoi(architecture) : 90;
  const std::map<CUdevice_attribute, int> values = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, number / 10},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, number % 10},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, kRegistersPerSm},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, kSharedPerBlock},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, number >= 90 ? 1 : 0},
  };
  const auto found = values.find(which);
  if (found == values.end()) return CUDA_ERROR_INVALID_VALUE;
  *value = found->second;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  *active = 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(&FakeGpu::get());
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent_v2(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent_v2(CUcontext*) { return CUDA_SUCCESS; }
CUresult cuCtxGetStreamPriorityRange(int* least, int* most) {
  *least = 0;
  *most = -5;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetLimit(size_t* value, CUlimit) {
  *value = static_cast<size_t>(FakeGpu::get().setting("local_memory"));
  return CUDA_SUCCESS;
}
CUresult cuCtxSetLimit(CUlimit, size_t value) {
  FakeGpu::get().set("local_memory", static_cast<int64_t>(value));
  return CUDA_SUCCESS;
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  const std::string text = image_text(image);
  auto function = std::make_unique<Function>();
  function->registers = property(text, '\x2f');
  function->local = property(text, '\x11');
  FakeGpu::get().count("modules");
  *module = reinterpret_cast<CUmodule>(function.release());
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  const std::unique_ptr<Function> owned(reinterpret_cast<Function*>(module));
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  if (std::string(name) != tbsched::cuda::kProbeName) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(module);
  return CUDA_SUCCESS;
}
CUresult cuLinkCreate_v2(unsigned, CUjit_option*, void**, CUlinkState* state) {
  *state = reinterpret_cast<CUlinkState>(std::make_unique<std::string>().release());
  return CUDA_SUCCESS;
}
CUresult cuLinkAddData_v2(CUlinkState, CUjitInputType type, void* data, size_t size, const char*,
                          unsigned, CUjit_option*, void**) {
  const auto* const text = static_cast<const char*>(data);
  const bool terminated = size > 0 && text[size - 1] == '\0';
  return type == CU_JIT_INPUT_PTX && terminated ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
// "Compiles" to the cubin in the file that FAKE_JIT_CUBIN names.
CUresult cuLinkComplete(CUlinkState state, void** cubin, size_t* size) {
  const char* const path = std::getenv("FAKE_JIT_CUBIN");
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto& text = *reinterpret_cast<std::string*>(state);
  std::ifstream file(path, std::ios::binary);
  text.assign(std::istreambuf_iterator<char>(file), {});
  *cubin = text.data();
  *size = text.size();
  return CUDA_SUCCESS;
}
CUresult cuLinkDestroy(CUlinkState state) {
  const std::unique_ptr<std::string> owned(reinterpret_cast<std::string*>(state));
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction handle) {
  const auto& function = *reinterpret_cast<Function*>(handle);
  if (which == CU_FUNC_ATTRIBUTE_NUM_REGS) *value = function.registers;
  if (which == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) *value = function.local;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute which, int value) {
  reinterpret_cast<Function*>(handle)->attributes[which] = value;
  FakeGpu::get().set("last_attribute_" + std::to_string(which), value);
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, CUfunction handle, int threads,
                                                     size_t shared) {
  const auto& function = *reinterpret_cast<Function*>(handle);
  const int warps = (threads + 31) / 32;
  const Size block{1, warps, warps * 32 * ((function.registers + 7) / 8 * 8),
                   static_cast<int>(shared) + 1024};
  Size sm;
  for (*count = 0; sm.with_fits(block); ++*count) sm.add(block, 1);
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveClusters(int* count, CUfunction, const CUlaunchConfig* config) {
  const bool clustered = config->numAttrs == 1 && config->attrs->value.clusterDim.x > 1;
  *count = clustered && config->attrs->value.clusterDim.x <= 8 ? 4 : 0;
  return clustered ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction handle, void** arguments,
                          void**) {
  return FakeGpu::get().launch(*reinterpret_cast<Function*>(handle), *config,
                               *static_cast<const ProbeArguments*>(arguments[0]));
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  auto fake = std::make_unique<FakeStream>();
  fake->priority = priority;
  fake->blocking = flags == CU_STREAM_DEFAULT;
  FakeGpu::get().count("streams");
  *stream = reinterpret_cast<CUstream>(fake.release());
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  const std::unique_ptr<FakeStream> owned(reinterpret_cast<FakeStream*>(stream));
  FakeGpu::get().count("streams_destroyed");
  return CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream stream) {
  return FakeGpu::get().busy(stream) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return FakeGpu::get().wait(stream, *reinterpret_cast<const FakeEvent*>(event));
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(std::make_unique<FakeEvent>().release());
  return FakeGpu::get().make_event();
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return FakeGpu::get().record(*reinterpret_cast<FakeEvent*>(event), stream);
}
CUresult cuEventDestroy_v2(CUevent event) {
  const std::unique_ptr<FakeEvent> owned(reinterpret_cast<FakeEvent*>(event));
  FakeGpu::get().count("events_destroyed");
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc_v2(CUdeviceptr* device, size_t size) {
  FakeGpu::get().count("device_allocations");
  void* memory = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  std::memset(memory, 0x5a, size);  // nobody zeroes it
  *device = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr device) {
  std::free(reinterpret_cast<void*>(device));
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr device, const void* host, size_t size) {
  std::memcpy(reinterpret_cast<void*>(device), host, size);
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** memory, size_t size, unsigned) {
  FakeGpu::get().count("host_allocations");
  *memory = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* memory) {
  std::free(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* memory, unsigned) {
  *device = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::strncpy(text, "999.88.07", size);
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  *device = &FakeGpu::get();
  return 0;
}
int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) {
  *current = *pending = std::getenv("FAKE_MIG") != nullptr ? 1 : 0;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  const char* const others = std::getenv("FAKE_PROCESSES");
  *count = others != nullptr ? static_cast<unsigned>(std::atoi(others)) : 0;
  return *count != 0 ? 7 : 0;
}

}  // extern "C"
