// What a user requests of the GPU, in the order in which the host issues it: the only definition of
// every kind of event.
//
// Code that handles events visits them with one function per kind and no default, so that a new
// kind does not compile until every such place handles it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tbsched/program/partition.h"

namespace tbsched {

// CUDA's default stream: it waits for earlier work of all streams and holds up their later work.
inline constexpr int32_t kLegacyStream = -1;

inline constexpr int32_t kWarpThreads = 32;

struct Launch {
  int32_t blocks = 1;
  int32_t threads = 32;       // per block
  int32_t registers = 16;     // per thread, as the driver reports them
  int32_t shared_memory = 0;  // bytes per block, static + dynamic, without the runtime's reserve
  int32_t local_memory = 0;   // bytes per thread
  // Percent of the largest configuration; none: the driver chooses.
  std::optional<int32_t> carveout = {};
  int32_t cluster = 1;                 // blocks per cluster
  std::optional<int32_t> stream = {};  // none: a stream of its own
  int32_t priority = 0;                // lower is more urgent, as in CUDA
  // How long each block runs: one value per block, or one for all; none: until released.
  std::vector<int64_t> duration_ns = {};
  std::shared_ptr<const Partition> partition = {};  // where its blocks may go; none: everywhere
  bool cooperative = false;                         // all blocks at once, or refused
  // Its stream neither waits for the legacy stream nor holds it up. All launches of a stream agree
  // on this.
  bool non_blocking = false;
  // Programmatic dependent launch: waits only until each block of the launch before it in its
  // stream has triggered or left, instead of until that launch has ended.
  bool programmatic = false;
  std::optional<int64_t> trigger_ns = {};  // after a block's start; none: when it leaves
  // Time after its start at which a block waits for the end of the work before the launch in the
  // stream; then the rest of its duration follows; none: it does not wait.
  std::optional<int64_t> memory_wait_ns = {};
  // The CUDA event that happens when the launch has left its hardware queue.
  std::optional<int32_t> completion_event = {};
  // Lazy loading: the call loads the kernel, unless an earlier call of the same kernel has loaded
  // it.
  bool first_use = false;
  std::optional<int32_t> kernel = {};  // for first_use; none: one of its own
  int64_t delay_ns = 0;  // from when it waits for nothing but room until it is enqueued for room
  int32_t host = 0;      // the host thread that calls
  // Only the driver's own blocks have no runtime, and then take no shared memory.
  bool has_runtime = true;
  int32_t gpu = 0;  // index; streams are those of a GPU. A node of a graph has that of its graph
  // All blocks of all launches with this name wait until each of them is resident, wherever it is.
  // Their durations count from then on. Empty: they meet nobody.
  std::string meets = {};
  // A block waits only for blocks of its launch with lower numbers. As blocks start in the order of
  // their numbers, it never waits.
  bool in_block_order = false;

  // Returns whether its blocks wait until all blocks of all launches with its name are resident.
  bool meets_all() const { return !meets.empty() && !in_block_order; }
};

struct Release {
  int32_t launch = 0;  // index among the launches of the sequence
};

// Happens when all work before it in the stream has ended. A node of a graph has no stream: it
// happens when the nodes that it waits for have ended.
struct RecordEvent {
  int32_t event = 0;
  int32_t stream = 0;
  int32_t host = 0;
  int32_t gpu = 0;
  bool timing = false;  // whether the stream writes a time stamp; no node does
};

// Makes later work of the stream, or later nodes of the graph, wait for the most recent record of
// the event before it.
struct WaitEvent {
  int32_t event = 0;
  int32_t stream = 0;
  int32_t host = 0;
  int32_t gpu = 0;
};

// Limit of the bytes of a copy or memset.
inline constexpr int64_t kMaxTransferBytes = int64_t{1} << 30;

// h2d: from the host's memory to the GPU's; d2h: back; d2d: within the GPU's memory; p2p: to the
// memory of another GPU.
enum class CopyKind : uint8_t { h2d, d2h, d2d, p2p };

// A copy in a stream, or a node of a graph, which has no stream, is pinned and does not block.
struct Copy {
  int64_t bytes = 1;
  CopyKind kind = CopyKind::d2d;
  std::optional<int64_t> duration_ns = {};  // none: the time that the device takes for these bytes
  std::optional<int32_t> stream = {};       // none: a stream of its own
  bool pinned = true;                       // of the host's memory
  bool blocking = false;                    // the call returns when the copy is over
  bool non_blocking = false;                // of the stream, as in Launch
  int32_t host = 0;
  int32_t gpu = 0;
  int32_t peer = -1;  // the GPU that a p2p copy writes to
};

// A memset in a stream, or a node of a graph, which has no stream.
struct Memset {
  int64_t bytes = 1;
  std::optional<int64_t> duration_ns = {};  // as in Copy
  std::optional<int32_t> stream = {};
  bool non_blocking = false;
  int32_t host = 0;
  int32_t gpu = 0;
};

// A function that a thread of the driver calls when all work before it in the stream has ended:
// cudaLaunchHostFunc. Later work of the stream waits until it returns. A node of a graph has no
// stream.
struct HostFunction {
  int64_t duration_ns = 0;
  std::optional<int32_t> stream = {};  // none: a stream of its own
  bool non_blocking = false;           // of the stream, as in Launch
  int32_t host = 0;                    // the host thread that calls cudaLaunchHostFunc
  int32_t gpu = 0;
};

using Node = std::variant<Launch, Copy, Memset, HostFunction, RecordEvent, WaitEvent>;
using Edges = std::vector<std::array<int32_t, 2>>;  // the second waits for the first; no circles

struct Graph;

// A conditional node: its body runs `times` times.
struct Conditional {
  std::shared_ptr<const Graph> body;
  int32_t times = 1;
  bool varies = false;  // whether the nodes of the body differ from run to run
};

// A node that allocates memory, and one that frees it, in the same graph or in a later one. They
// take no SM and no time.
struct MemAlloc {
  std::string name;
  int64_t bytes = 1;
};
struct MemFree {
  std::string name;
};

// Nodes that wait for each other. Its launches have durations and no streams. Child graphs are
// taken apart, and the body of a conditional node is there as often as it runs.
struct Graph {
  std::vector<Node> nodes;
  Edges edges;  // deciders are numbered behind the nodes
  // Kernels of the driver, each of which decides once whether the body of a conditional node runs:
  // the number of the node before which it stands.
  std::vector<int32_t> deciders = {};
  // The nodes that CUDA gets: a conditional one is one, and those of memory are among them. Empty:
  // there are no such nodes.
  std::vector<std::variant<Launch, Copy, Memset, HostFunction, RecordEvent, WaitEvent, Conditional,
                           MemAlloc, MemFree>>
      parts = {};
  Edges part_edges = {};
};

// Launches all nodes at once. Within a sequence, launches of one graph have the same object.
struct GraphLaunch {
  std::shared_ptr<const Graph> graph;
  // The graph that was instantiated, if this launch gives its kernels other durations.
  std::shared_ptr<const Graph> executable = {};
  int32_t stream = 0;
  bool non_blocking = false;
  int32_t host = 0;
  int32_t gpu = 0;
};

// Makes the host thread wait for all work of a stream, for the most recent record of an event or,
// with neither, for all work that has been issued.
struct Synchronize {
  std::optional<int32_t> stream = {};
  std::optional<int32_t> event = {};
  int32_t host = 0;
  int32_t gpu = 0;
};

// A call that takes time of its host thread, such as cudaMalloc: it waits, and then it takes its
// duration.
struct HostCall {
  // When it has the driver, so that launch, copy and memset calls of other threads wait.
  enum class Holds : uint8_t { never, for_its_duration, throughout };

  int64_t duration_ns = 0;
  bool waits = false;                  // as Synchronize does
  std::optional<int32_t> stream = {};  // the stream that it waits for; none: all work
  Holds holds = Holds::never;
  int32_t host = 0;
  int32_t gpu = 0;
};

// Sets a value in memory when all work before it in the stream has ended. Each value is 0 at first.
struct WriteValue {
  std::string name;
  int64_t value = 1;
  int32_t stream = 0;
  int32_t host = 0;
  int32_t gpu = 0;
};

// Makes later work of the stream wait until a value is at least this one, whoever writes it, and
// whenever that is issued.
struct WaitValue {
  std::string name;
  int64_t value = 1;
  int32_t stream = 0;
  int32_t host = 0;
  int32_t gpu = 0;
};

using Event = std::variant<Launch, Release, RecordEvent, WaitEvent, GraphLaunch, Copy, Memset,
                           Synchronize, HostFunction, HostCall, WriteValue, WaitValue>;
using Sequence = std::vector<Event>;

// Combines functions of one argument into one visitor: std::visit(Overloaded{...}, event).
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// Calls visit(launch) for every launch of a graph, in the order of its nodes.
template <typename Visit>
void for_each_launch(const Graph& graph, const Visit& visit) {
  for (const Node& node : graph.nodes) {
    std::visit(Overloaded{
                   [&](const Launch& launch) { visit(launch); },
                   [](const Copy&) {},
                   [](const Memset&) {},
                   [](const HostFunction&) {},
                   [](const RecordEvent&) {},
                   [](const WaitEvent&) {},
               },
               node);
  }
}

// Calls visit(launch) for every launch of an event. An event may hold several; the launches of a
// sequence are numbered in this order.
template <typename Visit>
void for_each_launch(const Event& event, const Visit& visit) {
  std::visit(Overloaded{
                 [&](const Launch& launch) { visit(launch); },
                 [](const Release&) {},
                 [](const RecordEvent&) {},
                 [](const WaitEvent&) {},
                 [&](const GraphLaunch& launched) {
                   if (launched.graph) for_each_launch(*launched.graph, visit);
                 },
                 [](const Copy&) {},
                 [](const Memset&) {},
                 [](const Synchronize&) {},
                 [](const HostFunction&) {},
                 [](const HostCall&) {},
                 [](const WriteValue&) {},
                 [](const WaitValue&) {},
             },
             event);
}

// Returns the number of launches of an event or a graph.
template <typename EventOrGraph>
size_t count_launches(const EventOrGraph& event) {
  size_t count = 0;
  for_each_launch(event, [&](const Launch&) { ++count; });
  return count;
}

// Returns whether the launches of a sequence end by themselves, after their durations. If not, each
// stays until its Release.
inline bool is_timed(const Sequence& sequence) {
  return std::ranges::any_of(sequence, [](const Event& event) {
    return std::visit(Overloaded{
                          [](const Launch& launch) { return !launch.duration_ns.empty(); },
                          [](const Release&) { return false; },
                          [](const RecordEvent&) { return true; },
                          [](const WaitEvent&) { return true; },
                          [](const GraphLaunch&) { return true; },
                          [](const Copy&) { return true; },
                          [](const Memset&) { return true; },
                          [](const Synchronize&) { return true; },
                          [](const HostFunction&) { return true; },
                          [](const HostCall&) { return true; },
                          [](const WriteValue&) { return true; },
                          [](const WaitValue&) { return true; },
                      },
                      event);
  });
}

// Returns the index of the GPU that an event gives work to, or that its host waits for.
inline int32_t gpu_of(const Event& event) {
  return std::visit(Overloaded{
                        [](const Release&) { return 0; },
                        [](const auto& call) { return call.gpu; },
                    },
                    event);
}

// Returns the stream of an event that gives the GPU work, or waits; none: a new one, or no stream.
inline std::optional<int32_t> stream_of(const Event& event) {
  using Stream = std::optional<int32_t>;
  return std::visit(Overloaded{
                        [](const Release&) { return Stream(); },
                        [](const auto& call) { return Stream(call.stream); },
                    },
                    event);
}

// Returns the host thread that makes the call of an event.
inline int32_t host_of(const Event& event) {
  return std::visit(Overloaded{
                        [](const Release&) { return 0; },
                        [](const auto& call) { return call.host; },
                    },
                    event);
}

}  // namespace tbsched
