#include "launcher/plan/limits.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "launcher/plan/decisions.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {
namespace {

constexpr int64_t kMaxBlocks = int64_t{1} << 24;  // per sequence: 512 MB of pinned records
constexpr int32_t kRegisterUnit = 8;              // per thread
constexpr int32_t kMaxClusterBlocks = 16;
constexpr int64_t kMaxDurationNs = 60'000'000'000;
constexpr size_t kMaxTimedStreams = 1024;
constexpr int32_t kDependentLaunches =
    90;  // the first architecture that has programmatic dependent launches

// Checks one launch. Throws std::invalid_argument naming field, value and limit.
class LaunchCheck {
 public:
  LaunchCheck(const size_t launch_index, const Launch& launch, const Context& context)
      : name_("launch " + std::to_string(launch_index) + ": Launch."),
        launch_(launch),
        context_(context) {}

  void check() const {
    const DeviceProperties& device = context_.properties();
    check_range("blocks", launch_.blocks, 1, device.blocks_per_grid);
    check_range("threads", launch_.threads, 1, device.threads_per_block);
    check_range("shared_memory", launch_.shared_memory, 0, device.shared_memory_per_block);
    check_range("local_memory", launch_.local_memory, 0, 512 * 1024);
    check_range("cluster", launch_.cluster, 1, device.clusters ? kMaxClusterBlocks : 1);
    if (launch_.stream == kLegacyStream) check_legacy_stream();
    for (const int64_t duration : launch_.duration_ns) {
      check_range("duration", duration, 0, kMaxDurationNs, " ns");
    }
    if (launch_.trigger_ns) check_range("trigger", *launch_.trigger_ns, 0, kMaxDurationNs, " ns");
    if (launch_.memory_wait_ns) {
      check_range("memory_wait", *launch_.memory_wait_ns, 0, kMaxDurationNs, " ns");
    }
    check_range("delay", launch_.delay_ns, 0, 0, " ns");  // which chance decides
    check_dependence(device.architecture);
    if (launch_.carveout) check_range("carveout", *launch_.carveout, 0, 100);
    if (launch_.blocks % launch_.cluster != 0) {
      throw std::invalid_argument(
          name_ + "cluster: " + std::to_string(launch_.cluster) +
          " does not divide Launch.blocks: " + std::to_string(launch_.blocks));
    }
    check_register_file(device.registers_per_block);
  }

 private:
  // Checks that the GPU has programmatic dependent launches if the launch is one.
  void check_dependence(const int32_t architecture) const {
    const bool dependent = launch_.programmatic || launch_.trigger_ns || launch_.memory_wait_ns;
    if (!dependent || architecture >= kDependentLaunches) return;
    throw std::invalid_argument(
        name_ +
        (launch_.programmatic ? "programmatic"
         : launch_.trigger_ns ? "trigger"
                              : "memory_wait") +
        ": programmatic dependent launches need compute capability 9.0 or later; this GPU has " +
        std::to_string(architecture / 10) + "." + std::to_string(architecture % 10));
  }

  // Checks what the legacy stream cannot have.
  void check_legacy_stream() const {
    check_range("priority", launch_.priority, 0, 0);
    if (launch_.partition) {
      throw std::invalid_argument(name_ + "partition: the legacy stream is of the whole GPU");
    }
  }

  // Checks that a field is within limits.
  void check_range(const std::string_view field, const int64_t value, const int64_t low,
                   const int64_t high, const std::string_view unit = "") const {
    if (value >= low && value <= high) return;
    throw std::invalid_argument(name_ + std::string(field) + ": " + std::to_string(value) +
                                " is outside " + std::to_string(low) + ".." + std::to_string(high) +
                                std::string(unit) + " of this GPU");
  }

  // Checks that a block has enough registers.
  void check_register_file(const int32_t registers_per_block) const {
    const int32_t warps = (launch_.threads + kWarpThreads - 1) / kWarpThreads;
    const int32_t registers =
        (launch_.registers + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
    const int64_t needed = int64_t{warps} * kWarpThreads * registers;
    if (needed <= registers_per_block) return;
    throw std::invalid_argument(
        name_ + "registers: " + std::to_string(launch_.registers) + " for each of " +
        std::to_string(launch_.threads) + " threads take " + std::to_string(needed) +
        "; a block of this GPU has at most " + std::to_string(registers_per_block));
  }

  const std::string name_;
  const Launch& launch_;
  const Context& context_;
};

// Checks events, visiting them in order.
class SequenceCheck {
 public:
  explicit SequenceCheck(const Context& context) : context_(context) {}

  void operator()(const Launch& launch) {
    if (launch.first_use) {
      throw std::invalid_argument(
          "launch " + std::to_string(launches_) +
          ": Launch.first_use: True, but the kernels that stand for a program's are loaded before "
          "it runs; it can only be predicted");
    }
    check(launch);
    if (launch.stream) {
      check_stream(launch);
    } else {
      ++own_streams_;
    }
    if (launch.partition && !launch.non_blocking && !in_partition_) in_partition_ = launches_ - 1;
  }
  void operator()(const Release& release) {
    if (release.launch >= 0 && std::cmp_less(release.launch, launches_) &&
        released_.insert(release.launch).second) {
      return;
    }
    throw std::invalid_argument("Release.launch: " + std::to_string(release.launch) +
                                " is no earlier launch that is still held");
  }
  void operator()(const RecordEvent& record) { other_streams_.insert(record.stream); }
  void operator()(const WaitEvent& wait) { other_streams_.insert(wait.stream); }
  void operator()(const GraphLaunch& launched) {
    bool has_conditional = false;
    for (const auto& part : launched.graph->parts) {
      std::visit(Overloaded{
                     [&](const Conditional& conditional) {
                       has_conditional = true;
                       check_conditional(conditional, /*repeats=*/false);
                     },
                     [&](const MemAlloc& memory) { allocated_.insert(memory.name); },
                     [&](const MemFree& memory) { allocated_.erase(memory.name); },
                     [](const auto&) {},
                 },
                 part);
    }
    if (has_conditional) check_host(launched);
    for_each_launch(*launched.graph, [&](const Launch& node) { check(node); });
    for (const Node& node : launched.graph->nodes) {
      const auto* const function = std::get_if<HostFunction>(&node);
      if (function != nullptr) check_duration("HostFunction", function->duration_ns);
    }
    other_streams_.insert(launched.stream);
  }
  void operator()(const Synchronize& awaited) {
    if (awaited.stream) other_streams_.insert(*awaited.stream);
  }
  void operator()(const Copy& copy) { count_stream(copy.stream); }
  void operator()(const Memset& memset) { count_stream(memset.stream); }
  void operator()(const HostFunction& function) {
    check_duration("HostFunction", function.duration_ns);
    count_stream(function.stream);
  }
  void operator()(const HostCall& call) {
    check_duration("HostCall", call.duration_ns);
    if (call.holds != HostCall::Holds::never) {
      const std::string given = call.holds == HostCall::Holds::throughout ? "'throughout'" : "True";
      throw std::invalid_argument(
          "HostCall.holds: " + given +
          ", but the call that stands for a program's has no driver to hold; "
          "it can only be predicted");
    }
    if (call.stream) other_streams_.insert(*call.stream);
  }
  void operator()(const WriteValue& write) { check_value("WriteValue", write); }
  void operator()(const WaitValue& wait) { check_value("WaitValue", wait); }

  // Checks what concerns the whole sequence, after all of its events.
  void check_totals(const bool timed) {
    if (!allocated_.empty()) {
      throw std::invalid_argument("MemAlloc.name: '" + *allocated_.begin() +
                                  "' is still allocated at the end of the sequence; that can only "
                                  "be predicted");
    }
    const bool legacy =
        first_of_stream_.contains(kLegacyStream) || other_streams_.contains(kLegacyStream);
    for (const auto& [stream, launch] : first_of_stream_) other_streams_.erase(stream);
    if (timed && legacy && in_partition_) {
      throw std::invalid_argument(
          "launch " + std::to_string(*in_partition_) +
          ": Launch.non_blocking: False, but the legacy stream is used, and the driver makes only "
          "non-blocking streams in a partition (Launch.partition)");
    }
    const size_t streams = own_streams_ + first_of_stream_.size() + other_streams_.size();
    if (timed && streams > kMaxTimedStreams) {
      throw std::invalid_argument("Launch.stream: " + std::to_string(streams) +
                                  " streams in the whole sequence, at most " +
                                  std::to_string(kMaxTimedStreams));
    }
    if (blocks_ > kMaxBlocks) {
      throw std::invalid_argument("Launch.blocks: " + std::to_string(blocks_) +
                                  " in the whole sequence, at most " + std::to_string(kMaxBlocks));
    }
  }

 private:
  // Counts a stream of work that is no launch; none: the work gets a stream of its own.
  void count_stream(const std::optional<int32_t> stream) {
    if (stream) {
      other_streams_.insert(*stream);
    } else {
      ++own_streams_;
    }
  }

  static void check_duration(const std::string& event, const int64_t duration_ns) {
    if (duration_ns >= 0 && duration_ns <= kMaxDurationNs) return;
    throw std::invalid_argument(event + ".duration: " + std::to_string(duration_ns) +
                                " ns is outside 0.." + std::to_string(kMaxDurationNs) + " ns");
  }

  template <typename Value>
  void check_value(const std::string& event, const Value& value) {
    if (value.value < 0) {
      throw std::invalid_argument(event + ".value: " + std::to_string(value.value) +
                                  " is less than 0");
    }
    other_streams_.insert(value.stream);
  }

  // Checks that one host makes all launches of a graph with conditional nodes. Records of bodies
  // are taken in the order of calls, which several hosts make by chance.
  void check_host(const GraphLaunch& launched) {
    const auto first = host_of_.try_emplace(launched.graph.get(), launched.host).first;
    if (first->second == launched.host) return;
    throw std::invalid_argument(
        "GraphLaunch.host: hosts " + std::to_string(first->second) + " and " +
        std::to_string(launched.host) +
        " launch one graph with a Conditional; which is first is chance, so that can only be "
        "predicted");
  }

  // Checks a conditional node and those in its body. `repeats`: the node is in a body that runs
  // more than once.
  void check_conditional(const Conditional& conditional, const bool repeats) const {
    if (!context_.driver().graph_conditional_handle) {
      throw std::invalid_argument(
          "Graph.nodes: a Conditional needs a driver of CUDA 12.3 or later");
    }
    if (conditional.varies) {
      throw std::invalid_argument(
          "Conditional.graph: its nodes differ from run to run, but a GPU runs the same body each "
          "time; it can only be predicted");
    }
    for_each_launch(*conditional.body, [](const Launch& node) {
      if (!node.partition) return;
      throw std::invalid_argument(
          "Launch.partition: a node in the body of a Conditional has one; that can only be "
          "predicted");
    });
    const bool runs_again = repeats || conditional.times > 1;
    decisions_of(conditional, runs_again);
    for (const auto& part : conditional.body->parts) {
      const auto* const inner = std::get_if<Conditional>(&part);
      if (inner != nullptr) check_conditional(*inner, runs_again);
    }
  }

  // Checks and counts a launch.
  void check(const Launch& launch) {
    LaunchCheck(launches_++, launch, context_).check();
    blocks_ += launch.blocks;
  }

  // Checks that a launch agrees with earlier ones in its stream.
  void check_stream(const Launch& launch) {
    const auto [known, is_new] = first_of_stream_.try_emplace(*launch.stream, &launch);
    if (is_new) return;
    const Launch& first = *known->second;
    const auto differs = [&](const std::string& what) {
      throw std::invalid_argument("launch " + std::to_string(launches_ - 1) + ": Launch." + what +
                                  " differs from that of an earlier launch in stream " +
                                  std::to_string(*launch.stream));
    };
    if (context_.clamped(launch.priority) != context_.clamped(first.priority)) {
      differs("priority: " + std::to_string(launch.priority));
    }
    if (!are_equal(launch.partition, first.partition)) differs("partition: it");
  }

  static bool are_equal(const std::shared_ptr<const Partition>& a,
                        const std::shared_ptr<const Partition>& b) {
    return a == b || (a && b && *a == *b);
  }

  const Context& context_;
  size_t launches_ = 0;  // so far
  int64_t blocks_ = 0;
  std::set<int32_t> released_;       // launches
  std::set<std::string> allocated_;  // names of memory that graphs have not freed
  std::map<int32_t, const Launch*> first_of_stream_;
  std::map<const Graph*, int32_t>
      host_of_;                         // of the launches of a graph that has conditional nodes
  std::optional<size_t> in_partition_;  // first launch there that is not non-blocking
  std::set<int32_t> other_streams_;     // numbers in events that are no launches
  size_t own_streams_ = 0;              // of work without a stream number
};

// Returns the words for the SMs that a launch uses.
std::string sms_text(const Launch& launch) {
  if (!launch.partition) return "this GPU";
  return "the partition of " + std::to_string(launch.partition->sms.size()) + " SMs";
}

// Throws std::invalid_argument if the blocks of a cooperative launch never are resident at once.
void check_cooperative(const size_t launch_index, const Launch& launch, const int32_t resident,
                       const int32_t sms) {
  const int64_t max_resident = int64_t{resident} * (launch.cluster > 1 ? launch.cluster : sms);
  if (launch.blocks <= max_resident) return;
  throw std::invalid_argument("launch " + std::to_string(launch_index) +
                              ": Launch.cooperative: " + std::to_string(launch.blocks) +
                              " blocks (Launch.blocks) never run at once: " + sms_text(launch) +
                              " holds at most " + std::to_string(max_resident) + " of them");
}

}  // namespace

void check_limits(const Sequence& sequence, const Context& context) {
  SequenceCheck check(context);
  for (const Event& event : sequence) std::visit(check, event);
  check.check_totals(is_timed(sequence));
}

void check_resident(const size_t launch_index, const Launch& launch, const int32_t resident,
                    const int32_t sms) {
  if (resident > 0) {
    if (launch.cooperative) check_cooperative(launch_index, launch, resident, sms);
    return;
  }
  const std::string unit = launch.cluster > 1 ? "cluster of " + std::to_string(launch.cluster) +
                                                    " such blocks (Launch.cluster)"
                                              : "such block";
  throw std::invalid_argument("launch " + std::to_string(launch_index) + ": not one " + unit +
                              " ever fits " + sms_text(launch) + ": Launch.threads " +
                              std::to_string(launch.threads) + ", Launch.registers " +
                              std::to_string(launch.registers) + ", Launch.shared_memory " +
                              std::to_string(launch.shared_memory) + ", Launch.local_memory " +
                              std::to_string(launch.local_memory));
}

}  // namespace tbsched::cuda
