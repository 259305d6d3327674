#include "launcher/plan/limits.h"

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "tbsched/program/event.h"

namespace tbsched::cuda {
namespace {

// 512 MB of pinned records.
constexpr int64_t kMostBlocks = int64_t{1} << 24;
constexpr int32_t kRegisterUnit = 8;  // per thread
constexpr int32_t kMostCluster = 16;
constexpr int64_t kLongestNs = 60'000'000'000;
constexpr size_t kMostTimedStreams = 1024;

class LaunchCheck {
 public:
  LaunchCheck(const size_t number, const Launch& launch, const Context& context)
      : name_("launch " + std::to_string(number) + ": Launch."),
        launch_(launch),
        context_(context) {}

  void check() const {
    const DeviceProperties& device = context_.properties();
    within("blocks", launch_.blocks, 1, device.blocks_per_grid);
    within("threads", launch_.threads, 1, device.threads_per_block);
    within("shared_memory", launch_.shared_memory, 0, device.shared_memory_per_block);
    within("local_memory", launch_.local_memory, 0, 512 * 1024);
    within("cluster", launch_.cluster, 1, device.clusters ? kMostCluster : 1);
    within("priority", launch_.priority, context_.most_urgent(), context_.least_urgent());
    if (launch_.stream == kLegacyStream) within("priority", launch_.priority, 0, 0);
    for (const int64_t duration : launch_.duration_ns) {
      within("duration", duration, 0, kLongestNs, " ns");
    }
    if (launch_.carveout) within("carveout", *launch_.carveout, 0, 100);
    if (launch_.blocks % launch_.cluster != 0) {
      throw std::invalid_argument(
          name_ + "cluster: " + std::to_string(launch_.cluster) +
          " does not divide Launch.blocks: " + std::to_string(launch_.blocks));
    }
    check_register_file(device.registers_per_block);
  }

 private:
  void within(const std::string_view field, const int64_t value, const int64_t low,
              const int64_t high, const std::string_view unit = "") const {
    if (value >= low && value <= high) return;
    throw std::invalid_argument(name_ + std::string(field) + ": " + std::to_string(value) +
                                " is outside " + std::to_string(low) + ".." + std::to_string(high) +
                                std::string(unit) + " of this GPU");
  }

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

// Checks one event after the other: visits them in order.
class SequenceCheck {
 public:
  explicit SequenceCheck(const Context& context) : context_(context) {}

  void operator()(const Launch& launch) {
    LaunchCheck(launches_, launch, context_).check();
    blocks_ += launch.blocks;
    if (launch.stream) {
      check_priority(launch);
    } else {
      ++own_streams_;
    }
    ++launches_;
  }
  void operator()(const Release& release) {
    if (release.launch >= 0 && std::cmp_less(release.launch, launches_) &&
        released_.insert(release.launch).second) {
      return;
    }
    throw std::invalid_argument("Release.launch: " + std::to_string(release.launch) +
                                " is no earlier launch that is still held");
  }
  void operator()(const RecordEvent& record) { streams_of_events_.insert(record.stream); }
  void operator()(const WaitEvent& wait) { streams_of_events_.insert(wait.stream); }
  void operator()(const GraphLaunch&) { throw std::invalid_argument("graph: it cannot run yet"); }

  void check_totals(const bool timed) {
    for (const auto& [stream, priority] : priority_of_stream_) streams_of_events_.erase(stream);
    const size_t streams = own_streams_ + priority_of_stream_.size() + streams_of_events_.size();
    if (timed && streams > kMostTimedStreams) {
      throw std::invalid_argument("Launch.stream: " + std::to_string(streams) +
                                  " streams in the whole sequence, at most " +
                                  std::to_string(kMostTimedStreams));
    }
    if (blocks_ > kMostBlocks) {
      throw std::invalid_argument("Launch.blocks: " + std::to_string(blocks_) +
                                  " in the whole sequence, at most " + std::to_string(kMostBlocks));
    }
  }

 private:
  void check_priority(const Launch& launch) {
    const auto [known, is_new] = priority_of_stream_.try_emplace(*launch.stream, launch.priority);
    if (known->second == launch.priority) return;
    throw std::invalid_argument("launch " + std::to_string(launches_) +
                                ": Launch.priority: " + std::to_string(launch.priority) +
                                " differs from that of an earlier launch in stream " +
                                std::to_string(*launch.stream));
  }

  const Context& context_;
  size_t launches_ = 0;
  int64_t blocks_ = 0;
  std::set<int32_t> released_;
  std::map<int32_t, int32_t> priority_of_stream_;
  std::set<int32_t> streams_of_events_;
  size_t own_streams_ = 0;
};

}  // namespace

void check_limits(const Sequence& sequence, const Context& context) {
  SequenceCheck check(context);
  for (const Event& event : sequence) std::visit(check, event);
  check.check_totals(is_timed(sequence));
}

void check_resident(const size_t number, const Launch& launch, const int32_t resident) {
  if (resident > 0) return;
  const std::string unit = launch.cluster > 1 ? "cluster of " + std::to_string(launch.cluster) +
                                                    " such blocks (Launch.cluster)"
                                              : "such block";
  throw std::invalid_argument("launch " + std::to_string(number) + ": not one " + unit +
                              " ever fits this GPU: Launch.threads " +
                              std::to_string(launch.threads) + ", Launch.registers " +
                              std::to_string(launch.registers) + ", Launch.shared_memory " +
                              std::to_string(launch.shared_memory) + ", Launch.local_memory " +
                              std::to_string(launch.local_memory));
}

}  // namespace tbsched::cuda
