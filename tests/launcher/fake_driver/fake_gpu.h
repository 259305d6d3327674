// A GPU of a few SMs that holds the probe kernel's blocks under a trivial capacity rule: in order
// of priority and launch, each block on the SM with the fewest blocks where it fits, nothing
// overtakes on the SMs that it waits for. It says nothing about real hardware. set(key, value)
// makes it misbehave.
#pragma once

#include <cuda.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "launcher/probe/probe_abi.h"
#include "launcher/probe/waiting.h"

namespace fake {

using tbsched::cuda::BlockRecord;
using tbsched::cuda::ProbeArguments;
using tbsched::cuda::Waiting;

constexpr int kBlocksPerSm = 32;
constexpr int kWarpsPerSm = 64;
constexpr int kRegistersPerSm = 65536;
constexpr int kSharedPerSm = 228 * 1024;
constexpr int kSharedPerBlock = 227 * 1024;

inline uint64_t now_ns() {
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

// One bit each.
using SmSet = uint64_t;
constexpr int kSms = 4;
constexpr int kMostGpus = 2;
constexpr SmSet kAllSms = (SmSet{1} << kSms) - 1;

// A kernel as one context has it. All contexts share the attributes.
struct Function {
  int registers = 0;
  int local = 0;
  uint64_t context = 0;  // its number; 0: the primary one
  SmSet sms = kAllSms;
  std::map<CUfunction_attribute, int>* attributes = nullptr;  // the kernel's

  int attribute(const CUfunction_attribute which, const int unset) const {
    const auto found = attributes->find(which);
    return found == attributes->end() ? unset : found->second;
  }
  bool allows(const size_t shared) const {
    constexpr int unset = 48 * 1024;
    const int most = attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, unset);
    return shared <= static_cast<size_t>(most);
  }
};

// What a block takes, with the runtime's own shared memory.
inline Size size_of_block(const Function& function, const int threads, const int shared) {
  const int warps = (threads + 31) / 32;
  return {1, warps, warps * 32 * ((function.registers + 7) / 8 * 8),
          (shared + 1024 + 127) / 128 * 128};
}

// Numbers of grids.
using Grids = std::set<uint64_t>;

// What work waits for.
struct Waits {
  Grids ended;
  Grids arrived;  // have gone on to the block scheduler

  void add(const Waits& other) {
    ended.insert(other.ended.begin(), other.ended.end());
    arrived.insert(other.arrived.begin(), other.arrived.end());
  }
};

struct FakeStream {
  int priority = 0;
  bool blocking = false;
  uint64_t context = 0;  // its number
  SmSet sms = kAllSms;
  Waits waits_for;  // whatever is launched next in it
};

struct FakeEvent {
  Waits recorded;
};

// A write of a value in memory, or a wait for one.
struct MemoryValue {
  int64_t* place = nullptr;
  int64_t value = 0;
  bool waits = false;

  // Returns whether it is over.
  bool happen() const {
    const std::atomic_ref now(*place);
    if (waits) return now.load() >= value;
    now.store(value);
    return true;
  }
};

struct Grid {
  ProbeArguments arguments{};
  Size block;
  size_t blocks = 0;
  size_t next = 0;
  size_t gone = 0;
  int warps = 0;
  const FakeStream* stream = nullptr;
  int priority = 0;
  SmSet sms = kAllSms;
  uint64_t number = 0;
  Waits after;
  bool cooperative = false;
  uint64_t primary = 0;                   // whose triggers are enough for it to start; 0: none
  Grids before;                           // in its stream: what its blocks wait for
  size_t triggered = 0;                   // blocks that have triggered or are gone
  std::optional<MemoryValue> value = {};  // it has no blocks then; none once it is over
};

// Null: the launch has none.
inline const CUlaunchAttribute* attribute_of(const CUlaunchConfig& config,
                                             const CUlaunchAttributeID which) {
  for (unsigned k = 0; k < config.numAttrs; ++k) {
    if (config.attrs[k].id == which) return &config.attrs[k];
  }
  return nullptr;
}

struct FakeGraph;

// A node whose body runs if its value is not 0, again and again if it loops.
struct FakeConditional {
  CUgraphConditionalHandle handle = 0;
  bool loops = false;
  std::unique_ptr<FakeGraph> body;
};

struct FakeNode {
  const Function* function = nullptr;  // null: it runs no kernel itself
  FakeEvent* event = nullptr;          // that it records or waits for
  bool waits = false;
  CUdeviceptr allocates = 0;
  CUdeviceptr frees = 0;
  uint32_t runs = 0;  // of its kernel, in all launches
  std::shared_ptr<const FakeConditional> conditional = nullptr;
  CUgraph body = nullptr;  // the conditional's
  CUlaunchConfig config{};
  ProbeArguments arguments{};
  std::vector<CUlaunchAttribute> attributes;
  size_t number = 0;          // in its graph
  std::vector<size_t> after;  // numbers
};

// The values of conditional nodes.
using Values = std::map<CUgraphConditionalHandle, bool>;

struct FakeGraph {
  std::vector<std::unique_ptr<FakeNode>> nodes;
  Values values;  // at first
};

// What can be launched, and does not run beside itself.
struct FakeExecutable {
  const FakeGraph* made_of = nullptr;
  std::vector<FakeNode> nodes;
  Grids last_launch;
};

struct Block {
  Grid* grid = nullptr;
  unsigned number = 0;
  BlockRecord* record = nullptr;
  int sm = 0;
  uint64_t start = 0;
  uint64_t publish = 0;
  uint64_t end = 0;  // 0: not told to leave
  uint32_t last_tick = 0;
  uint32_t start_tick = 0;  // without the time for which it waited
  uint32_t duration = 0;    // in ticks
  size_t step = 0;          // of the launch's: the next one
  bool triggered = false;
  uint32_t end_tick = 0;  // of one that meets others, with the bit for having met them
  bool waits = false;
  uint64_t next_look = 0;
};

class FakeGpu {
 public:
  FakeGpu() : sms_(kSms) {
    engine_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  static FakeGpu& of(CUdevice device);
  // That of the calling thread's current context; the first one if there is none.
  static FakeGpu& get();

  void set(const std::string& key, const int64_t value);
  int64_t setting(const std::string& key);
  void count(const std::string& key);
  CUresult launch(const Function& function, const CUlaunchConfig& config,
                  const ProbeArguments& arguments);
  CUresult launch(FakeExecutable& executable, CUstream stream);
  void add(const MemoryValue& value, CUstream stream);
  bool busy(const CUstream stream);
  bool any_runs();
  int sms_of(const CUstream stream) { return std::popcount(at(stream).sms); }
  void record(FakeEvent& event, const CUstream stream);
  void wait(const CUstream stream, const FakeEvent& event);
  // The host waits for all that is there, for that of a stream, or for what was recorded.
  void synchronize();
  void synchronize(const CUstream stream);
  void synchronize(const FakeEvent& event);

 private:
  FakeStream& at(const CUstream stream) {
    return stream != nullptr ? *reinterpret_cast<FakeStream*>(stream) : legacy_;
  }

  Grid& add(const Function& function, const CUlaunchConfig& config, const ProbeArguments& arguments,
            const FakeStream& stream);
  // Adds the grids of a graph, or of a run of a body, and returns them. Its kernels decide at once.
  std::vector<Grid*> add(const std::vector<FakeNode*>& nodes, const Waits& after,
                         FakeStream& stream, Values& values);
  Grid& add_kernel(FakeNode& node, const Waits& after, const FakeStream& stream);
  // Adds the grids of all runs of a body.
  std::vector<Grid*> add(const FakeConditional& conditional, const Waits& after, FakeStream& stream,
                         Values& values);
  // False: it allocates what is allocated, or frees what is not.
  bool allocate(const std::vector<FakeNode*>& nodes);
  // Holds up the caller where the driver would.
  void enter_launch(std::unique_lock<std::mutex>& lock, int local_memory, const FakeStream& stream);
  // What must happen before whatever comes next in the stream.
  Waits before(const FakeStream& stream) const;
  void wait_for(std::unique_lock<std::mutex>& lock, const Grids& awaited);
  bool ready(const Grid& grid) const;
  // It need not wait for the ends of what comes before in its stream.
  void make_programmatic(Grid& grid) const;

  // Sleeps while nothing is launched: whatever else the process does needs the core.
  void run(const std::stop_token& stop);
  void step();
  // Lets time pass. False: another process has the GPU, or nobody.
  bool our_turn();
  // False: the block is gone.
  bool advance(Block& block);
  // Null: it has only to leave.
  const tbsched::cuda::Step* next_step(const Block& block) const;
  void look(Block& block);
  void take(Block& block, const tbsched::cuda::Step& step);
  static void trigger(Block& block);
  void leave(Block& block);
  void place();
  // The one with the fewest blocks; -1: it fits none of these.
  int best_sm(const Size& block, SmSet among) const;
  bool all_fit(const Grid& grid, SmSet among) const;
  void place_next(Grid& grid, int sm);

  static void publish(uint32_t& mark) { std::atomic_ref(mark).store(1, std::memory_order_release); }

  std::mutex mutex_;
  std::condition_variable idle_;
  // No condition variable: in a forked child it would wait for the engine, which is not there.
  std::counting_semaphore<> launched_{0};
  std::map<std::string, int64_t> settings_;
  std::vector<Size> sms_;
  FakeStream legacy_{
      .priority = 0, .blocking = true, .context = 0, .sms = kAllSms, .waits_for = {}};
  uint64_t grids_launched_ = 0;
  std::set<CUdeviceptr> allocated_;  // by graphs
  std::list<Grid> grids_;
  std::list<Block> blocks_;
  uint64_t last_end_ = 0;
  // The GPU's clock, which stands still while this machine has no time for us: blocks look at it as
  // often as they should. It stands still, too, from one launch to another that a test may name:
  // however late the host issues those between, the GPU is as busy as if it had been on time.
  uint64_t now_ = now_ns();
  uint64_t host_ = now_;
  uint64_t turn_began_ = now_;
  int64_t away_ = 0;
  std::jthread engine_;
};

}  // namespace fake
