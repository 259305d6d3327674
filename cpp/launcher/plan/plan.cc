#include "launcher/plan/plan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <variant>

#include "launcher/plan/limits.h"

namespace tbsched::cuda {
namespace {

constexpr size_t kLineBytes = 128;            // two release flags never share a cache line
constexpr size_t kMaxStreams = 128;           // of one lane; as many grids can be resident
constexpr int32_t kMaxResidentBlocks = 4096;  // about as many as the largest GPUs hold
// Limit of a block's wait for others: 2^31 ticks are longer.
constexpr std::chrono::nanoseconds kMaxWait = std::chrono::minutes(1);
constexpr size_t kMaxPartitions = 64;  // kept; each takes memory of the GPU

constexpr size_t round_up(const size_t size, const size_t unit) {
  return (size + unit - 1) / unit * unit;
}

// Returns the warps of all blocks of a launch.
size_t warps_of(const Launch& launch) {
  return static_cast<size_t>((launch.threads + kWarpThreads - 1) / kWarpThreads) *
         static_cast<size_t>(launch.blocks);
}

// Chooses the streams of a held sequence. A launch without a stream number gets a stream of its
// own, the same one in every run.
class HeldStreams {
 public:
  // Returns the index of a launch's stream among those of its lane.
  size_t index_for(const size_t launch_index, const Launch& launch, const Lane& lane) {
    auto& used = used_[lane];
    if (launch.stream) {
      const auto known = numbered_.find(*launch.stream);
      if (known != numbered_.end()) return known->second;
    }
    const size_t index = take_free(used);
    used[index] = launch.stream ? kForever : static_cast<int64_t>(launch_index);
    if (launch.stream) numbered_[*launch.stream] = index;
    return index;
  }

  // Lets later launches have the stream of a released launch.
  void release(const size_t launch_index) {
    for (auto& [lane, used] : used_) {
      std::replace(used.begin(), used.end(), static_cast<int64_t>(launch_index), kFree);
    }
  }

 private:
  static constexpr int64_t kFree = -1;
  static constexpr int64_t kForever = -2;

  // Returns a new stream while there are few, then the first one whose launch has been released;
  // the last one if there is none.
  static size_t take_free(std::vector<int64_t>& used) {
    if (used.size() < kMaxStreams) {
      used.push_back(kFree);
      return used.size() - 1;
    }
    const auto free = std::find(used.begin(), used.end(), kFree);
    return free != used.end() ? static_cast<size_t>(free - used.begin()) : kMaxStreams - 1;
  }

  std::map<Lane, std::vector<int64_t>> used_;  // launch in each stream, or kFree or kForever
  std::map<int32_t, size_t> numbered_;         // index, by stream number
};

// The streams and events of a timed sequence, created when first used. Those of partitions are
// kept.
class TimedStreams {
 public:
  TimedStreams(const Sequence& sequence, const Driver& driver, PlanResources& plan_resources,
               Plan& plan)
      : driver_(driver), plan_resources_(plan_resources), plan_(plan) {
    for (const Event& event : sequence) {
      std::visit(Overloaded{
                     [&](const Launch& launch) { note_stream(launch); },
                     [](const Release&) {},
                     [&](const RecordEvent& record) {
                       if (record.timing) have_timing_.insert(record.event);
                     },
                     [](const WaitEvent&) {},
                     [](const Synchronize&) {},
                     [&](const HostFunction& function) { note_transfer(function); },
                     [](const HostCall&) {},
                     [](const WriteValue&) {},
                     [](const WaitValue&) {},
                     [&](const GraphLaunch& launched) {
                       kinds_[launched.stream].non_blocking = launched.non_blocking;
                     },
                     [&](const Copy& copy) { note_transfer(copy); },
                     [&](const Memset& memset) { note_transfer(memset); },
                 },
                 event);
    }
  }

  // Each returns the stream of an event.
  CUstream of(const Launch& launch) {
    return launch.stream ? numbered(*launch.stream)
                         : make({plan_resources_.lane(launch), launch.non_blocking});
  }
  CUstream of(const GraphLaunch& launched) { return numbered(launched.stream); }
  template <typename Transfer>
  CUstream of_transfer(const Transfer& transfer) {
    return transfer.stream ? numbered(*transfer.stream)
                           : make({.lane = {}, .non_blocking = transfer.non_blocking});
  }

  template <typename Value>
  CUstream of_value(const Value& value) {
    return numbered(value.stream);
  }

  // Plans a RecordEvent or WaitEvent.
  template <typename Mark>
  PlannedMark mark(const Mark& mark) {
    return {.event = event(mark.event), .stream = numbered(mark.stream)};
  }

  // Plans what a host waits for: an event, a stream, or all work.
  PlannedMark mark(const Synchronize& awaited) {
    return {.event = awaited.event ? event(*awaited.event) : nullptr,
            .stream = awaited.stream ? numbered(*awaited.stream) : nullptr,
            .is_of_stream = awaited.stream.has_value()};
  }

  PlannedMark mark(const HostCall& call) { return mark(Synchronize{.stream = call.stream}); }

  // Returns the event of a number, which is created if it is new.
  CUevent event(const int32_t number) {
    auto& event = plan_.events[number];
    if (!event) {
      event = std::make_unique<StreamEvent>(driver_, have_timing_.contains(number));
    }
    return event->handle();
  }

 private:
  // Properties of a stream on which all its work agrees. Only launches determine the lane.
  struct StreamKind {
    Lane lane;
    bool non_blocking = false;
  };

  // Returns the stream of a number, which is created if it is new.
  CUstream numbered(const int32_t number) {
    if (number == kLegacyStream) return nullptr;
    const auto known = numbered_.find(number);
    if (known != numbered_.end()) return known->second;
    return numbered_[number] = make(kinds_[number]);
  }

  // Notes the properties that a launch gives its stream.
  void note_stream(const Launch& launch) {
    if (launch.stream) kinds_[*launch.stream] = {plan_resources_.lane(launch), launch.non_blocking};
  }

  template <typename Transfer>
  void note_transfer(const Transfer& transfer) {
    if (transfer.stream) kinds_[*transfer.stream].non_blocking = transfer.non_blocking;
  }

  // Creates a stream, or takes the next kept one of a partition.
  CUstream make(const StreamKind& kind) {
    if (kind.lane.partition != nullptr) {
      return plan_resources_.streams.at(driver_, kind.lane, streams_in_lane_[kind.lane]++);
    }
    const CUstream_flags flags = kind.non_blocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    return plan_.streams
        .emplace_back(std::make_unique<CudaStream>(driver_, flags, kind.lane.priority))
        ->handle();
  }

  const Driver& driver_;
  PlanResources& plan_resources_;
  Plan& plan_;
  std::map<int32_t, StreamKind> kinds_;     // by stream number
  std::map<int32_t, CUstream> numbered_;    // by stream number
  std::map<Lane, size_t> streams_in_lane_;  // kept streams that were taken
  std::set<int32_t> have_timing_;           // numbers of events
};

// Returns a time in ticks, rounded.
uint32_t to_ticks(const std::chrono::nanoseconds time, const Waiting& waiting) {
  const int64_t unit = int64_t{1} << waiting.tick_bits;
  return static_cast<uint32_t>((time.count() + unit / 2) / unit);
}

// Returns how many ticks the blocks of a launch stay by themselves, at most `hold`: one number for
// all blocks, or one each.
std::vector<uint32_t> ticks_of(const Launch& launch, const Waiting& waiting,
                               const std::chrono::nanoseconds hold) {
  if (launch.duration_ns.empty()) return {to_ticks(hold, waiting)};
  std::vector<uint32_t> ticks(launch.duration_ns.size());
  std::ranges::transform(launch.duration_ns, ticks.begin(), [&](const int64_t duration) {
    return to_ticks(std::min(std::chrono::nanoseconds(duration), hold), waiting);
  });
  return ticks;
}

// Sets the steps of a dependent launch in order of time. A block that does both at the same time
// triggers first, so nobody waits for it.
void lay_out_steps(const Launch& launch, const Waiting& waiting, ProbeArguments& arguments) {
  Step* next = std::begin(arguments.steps);
  const auto add = [&](const Step::Kind kind, const std::optional<int64_t> after) {
    if (after) {
      *next++ = {.kind = kind, .ticks = to_ticks(std::chrono::nanoseconds(*after), waiting)};
    }
  };
  const bool triggers_first = launch.trigger_ns.value_or(0) <= launch.memory_wait_ns.value_or(0);
  if (triggers_first) add(Step::kTrigger, launch.trigger_ns);
  add(Step::kWait, launch.memory_wait_ns);
  if (!triggers_first) add(Step::kTrigger, launch.trigger_ns);
}

// How blocks ask the host whether to leave.
struct Polling {
  uint32_t ask_bits;  // as in ProbeArguments
  uint32_t ask_sleep_ns;
  uint32_t look_sleep_ns;
};

// All launches together ask the host every 16 us.
constexpr Polling kTimedPolling{.ask_bits = 9, .ask_sleep_ns = 16'384, .look_sleep_ns = 16'384};

// Returns how blocks of a held sequence poll. One block of each launch asks, about twice a
// microsecond in total. Blocks read relays about once per nanosecond in total: all relays are in
// the same part of the cache, which can take little more.
Polling held_polling(const std::span<const PlannedLaunch> launches) {
  int64_t blocks = 0;
  for (const PlannedLaunch& planned : launches) blocks += planned.launch.blocks;
  const auto at_once = static_cast<uint32_t>(std::min<int64_t>(blocks, kMaxResidentBlocks));
  const auto asking = static_cast<uint32_t>(std::min(launches.size(), kMaxStreams));
  return {kFirstBlockAsks, 500 * asking, std::max(at_once, 500U)};
}

// Adds events to a plan, visiting them in order.
class Planner {
 public:
  Planner(const Sequence& sequence, const Groups& groups, const Context& context,
          PlanResources& plan_resources, const std::function<void()>& interrupted, Plan& plan)
      : meets_(launches_in_groups(groups)),
        context_(context),
        plan_resources_(plan_resources),
        interrupted_(interrupted),
        plan_(plan),
        timed_(sequence, context.driver(), plan_resources, plan) {}

  void operator()(const Launch& launch) {
    interrupted_();
    const size_t launch_index = plan_.launches.size();
    const Lane lane = plan_resources_.lane(launch);
    const CUstream stream =
        plan_.timed ? timed_.of(launch) : held_stream(launch, lane, launch_index);
    ProbeFunction& function =
        plan_resources_.probe.function(launch, meets_.contains(launch_index), lane.partition);
    PlannedLaunch& next = add(launch, lane, function, stream);
    next.stream = stream;
    if (launch.completion_event) next.completion = timed_.event(*launch.completion_event);
  }
  void operator()(const Release& release) {
    held_streams_.release(static_cast<size_t>(release.launch));
  }
  void operator()(const RecordEvent& record) { plan_.marks.push_back(timed_.mark(record)); }
  void operator()(const WaitEvent& wait) { plan_.marks.push_back(timed_.mark(wait)); }
  void operator()(const Synchronize& awaited) { plan_.marks.push_back(timed_.mark(awaited)); }
  void operator()(const HostCall& call) { plan_.marks.push_back(timed_.mark(call)); }
  void operator()(const HostFunction& function) {
    plan_.transfers.push_back({.transfer = function, .stream = timed_.of_transfer(function)});
  }
  void operator()(const WriteValue& write) { add_value(write, /*waits=*/false); }
  void operator()(const WaitValue& wait) { add_value(wait, /*waits=*/true); }
  void operator()(const GraphLaunch& launched) {
    const CUstream stream = timed_.of(launched);
    const Graph& graph = *launched.graph;
    for (const Node& node : graph.nodes) {
      if (const auto* const record = std::get_if<RecordEvent>(&node)) timed_.event(record->event);
      if (const auto* const wait = std::get_if<WaitEvent>(&node)) timed_.event(wait->event);
    }
    plan_.graphs.push_back(
        {.graph = launched.graph, .stream = stream, .first = plan_.launches.size()});
    if (graph.parts.empty()) {
      for_each_launch(graph, [&](const Launch& node) { add_node(node, stream); });
      return;
    }
    size_t runs = first_runs_.try_emplace(&graph, plan_.runs.size()).first->second;
    for (const auto& part : graph.parts) {
      if (const auto* const node = std::get_if<Launch>(&part)) add_node(*node, stream);
      const auto* const conditional = std::get_if<Conditional>(&part);
      if (conditional != nullptr) runs = add_runs(*conditional, runs, stream);
    }
  }

  void operator()(const Copy& copy) {
    plan_.transfers.push_back({.transfer = copy, .stream = timed_.of_transfer(copy)});
  }
  void operator()(const Memset& memset) {
    plan_.transfers.push_back({.transfer = memset, .stream = timed_.of_transfer(memset)});
  }

 private:
  // Returns the stream of a launch of a held sequence.
  CUstream held_stream(const Launch& launch, const Lane& lane, const size_t launch_index) {
    return plan_resources_.streams.at(context_.driver(), lane,
                                      held_streams_.index_for(launch_index, launch, lane));
  }

  // Plans a write of a value, or a wait for one.
  template <typename Value>
  void add_value(const Value& value, const bool waits) {
    const size_t slot = slots_.try_emplace(value.name, slots_.size()).first->second;
    plan_.values.push_back(
        {.waits = waits, .value = value.value, .slot = slot, .stream = timed_.of_value(value)});
  }

  // Plans a kernel node outside of bodies.
  void add_node(const Launch& node, const CUstream stream) {
    interrupted_();
    const Lane lane = plan_resources_.lane(node);
    const CUstream of_partition =
        lane.partition ? plan_resources_.streams.at(context_.driver(), lane, 0) : nullptr;
    const bool meets = meets_.contains(plan_.launches.size());
    ProbeFunction& function = plan_resources_.probe.node_function(node, meets, lane.partition);
    add(node, lane, function, of_partition).stream = stream;
  }

  // Adds the launches of all runs of a body. `first`: the index of its first kernel in plan.runs.
  // Returns the index behind its last one.
  size_t add_runs(const Conditional& conditional, const size_t first, const CUstream stream) {
    const Graph& body = *conditional.body;
    size_t kernel = first;
    for (int32_t run = 0; run < conditional.times; ++run) {
      kernel = first;
      if (body.parts.empty()) {
        for_each_launch(body, [&](const Launch& node) { add_run(node, kernel++, stream); });
      }
      for (const auto& part : body.parts) {
        if (const auto* const node = std::get_if<Launch>(&part)) add_run(*node, kernel++, stream);
        const auto* const inner = std::get_if<Conditional>(&part);
        if (inner != nullptr) kernel = add_runs(*inner, kernel, stream);
      }
    }
    return kernel;
  }

  // Plans one run of a kernel in a body. `kernel`: its index in plan.runs.
  void add_run(const Launch& node, const size_t kernel, const CUstream stream) {
    interrupted_();
    refuse_meeting(plan_.launches.size());
    plan_.runs.resize(std::max(plan_.runs.size(), kernel + 1));
    plan_.runs[kernel].launches.push_back(plan_.launches.size());
    PlannedLaunch& planned =
        add(node, plan_resources_.lane(node), plan_resources_.probe.body_function(node), nullptr);
    planned.stream = stream;
    planned.in_body = true;
  }

  // Throws std::invalid_argument if a launch in a body is in a group.
  void refuse_meeting(const size_t launch_index) const {
    if (!meets_.contains(launch_index)) return;
    throw std::invalid_argument("launch " + std::to_string(launch_index) +
                                ": a node in the body of a Conditional meets no others on a GPU");
  }

  // Adds a launch to the plan. `stream`: one of those whose SMs it uses. Throws
  // std::invalid_argument if the launch never fits.
  PlannedLaunch& add(const Launch& launch, const Lane& lane, ProbeFunction& function,
                     const CUstream stream) {
    const int32_t sms = lane.partition ? lane.partition->sms() : context_.properties().sms;
    check_resident(plan_.launches.size(), launch, function.resident(launch, stream), sms);
    PlannedLaunch& next = plan_.launches.emplace_back();
    next.launch = launch;
    next.function = &function;
    return next;
  }

  const std::set<size_t> meets_;  // launches that are in groups
  const Context& context_;
  PlanResources& plan_resources_;
  const std::function<void()>& interrupted_;
  Plan& plan_;
  HeldStreams held_streams_;
  TimedStreams timed_;
  std::map<std::string, size_t> slots_;        // of values, by name
  std::map<const Graph*, size_t> first_runs_;  // index in plan.runs of a graph's first kernel
};

}  // namespace

void PlanResources::trim() {
  probe.trim();
  if (partitions.size() <= kMaxPartitions) return;
  streams.drop_partitions();
  probe.drop_partitions();
  partitions.clear();
}

bool waits_for_local_memory(const Plan& plan, const size_t local_memory) {
  auto grown = static_cast<int32_t>(local_memory);
  return std::ranges::any_of(plan.launches, [&](const PlannedLaunch& planned) {
    const bool grows = planned.launch.local_memory > grown;
    grown = std::max(grown, planned.launch.local_memory);
    // A held launch that comes first finds the GPU idle, and its duration does not matter.
    return grows && (plan.timed || &planned != &plan.launches.front());
  });
}

Plan plan_sequence(const Sequence& sequence, const Groups& groups, const Context& context,
                   PlanResources& plan_resources, const std::function<void()>& interrupted) {
  check_limits(sequence, context);
  Plan plan{.timed = is_timed(sequence)};
  for (const std::vector<size_t>& group : groups) plan.meetings.push_back({.launches = group});
  Planner planner(sequence, groups, context, plan_resources, interrupted, plan);
  for (const Event& event : sequence) std::visit(planner, event);
  plan.calls.resize(sequence.size());
  return plan;
}

void RunMemory::lay_out(Plan& plan, const bool warp_slots, const std::chrono::nanoseconds hold) {
  Waiting waiting = plan.timed ? kTimed : kHeld;
  // Blocks are released then, and blocks that take their room must be distinguishable.
  if (!plan.meetings.empty()) waiting.linger_ns = kLingerNs;
  const Polling asking = plan.timed ? kTimedPolling : held_polling(plan.launches);
  run_ = std::max(run_ + 1, 1U);
  lay_out_memory(plan, warp_slots);
  for (PlannedLaunch& planned : plan.launches) {
    planned.ticks = ticks_of(planned.launch, waiting, hold);
    planned.arguments = {
        .records = memory_->on_device(planned.records.data()),
        .warp_slots = memory_->on_device(planned.warp_slots.data()),
        .release = memory_->on_device(planned.release),
        .relay = nullptr,
        .ticks = nullptr,
        .same_ticks = planned.ticks.front(),
        .run = run_,
        .ask_bits = asking.ask_bits,
        .ask_sleep_ns = asking.ask_sleep_ns,
        .look_sleep_ns = asking.look_sleep_ns,
        .waiting = waiting,
        .steps = {},
        .meeting = {},
        .runs = {},
    };
    if (takes_steps(planned.launch)) lay_out_steps(planned.launch, waiting, planned.arguments);
  }
  lay_out_relays(plan);
  lay_out_meetings(plan, to_ticks(std::min(hold, kMaxWait), waiting));
  lay_out_ticks(plan.launches);
  lay_out_runs(plan);
  for (const PlannedGraph& planned : plan.graphs) transfers_.reserve(*planned.graph);
  for (const PlannedTransfer& planned : plan.transfers) {
    std::visit([&](const auto& transfer) { transfers_.reserve(transfer); }, planned.transfer);
  }
  for (PlannedTransfer& planned : plan.transfers) transfers_.lay_out(planned);
  values_.lay_out(plan.values);
}

void RunMemory::lay_out_memory(Plan& plan, const bool warp_slots) {
  const std::span<PlannedLaunch> launches = plan.launches;
  size_t size = (launches.size() + plan.meetings.size()) * kLineBytes;
  for (const PlannedLaunch& planned : launches) {
    size += round_up(static_cast<size_t>(planned.launch.blocks) * sizeof(BlockRecord), kLineBytes);
    if (warp_slots) size += round_up(warps_of(planned.launch) * sizeof(int32_t), kLineBytes);
  }
  if (!memory_ || memory_->bytes().size() < size) {
    const size_t grown = memory_ ? 2 * memory_->bytes().size() : size_t{1} << 20;
    memory_.reset();
    memory_ = std::make_unique<MappedMemory>(driver_, std::max(size, grown));
  }
  std::byte* next = memory_->bytes().data();
  std::memset(next, 0, size);
  const auto take = [&next]<typename Value>(const size_t count, Value*) {
    auto* const begin = reinterpret_cast<Value*>(next);
    next += round_up(count * sizeof(Value), kLineBytes);
    return std::span<Value>(begin, count);
  };
  const auto take_memory_for = [&](PlannedLaunch& planned) {
    planned.release = take(1, static_cast<uint32_t*>(nullptr)).data();
    planned.records =
        take(static_cast<size_t>(planned.launch.blocks), static_cast<BlockRecord*>(nullptr));
    if (warp_slots) {
      planned.warp_slots = take(warps_of(planned.launch), static_cast<int32_t*>(nullptr));
    }
  };
  for (PlannedLaunch& planned : launches) {
    if (!planned.in_body) take_memory_for(planned);
  }
  // Records of the runs of a kernel in a body lie at equal distances.
  for (const PlannedRuns& runs : plan.runs) {
    for (const size_t launch : runs.launches) take_memory_for(launches[launch]);
  }
  for (PlannedMeeting& meeting : plan.meetings) {
    meeting.met = take(1, static_cast<uint32_t*>(nullptr)).data();
  }
}

void RunMemory::lay_out_meetings(Plan& plan, const uint32_t wait_ticks) {
  if (plan.meetings.empty()) return;
  MeetingPoint* point = points_.take_unused(plan.meetings.size());
  plan.points.clear();
  for (const PlannedMeeting& planned : plan.meetings) {
    Meeting meeting{.point = point++,
                    .met = memory_->on_device(planned.met),
                    .blocks = 0,
                    .wait_ticks = wait_ticks};
    for (const size_t launch_index : planned.launches) {
      meeting.blocks += static_cast<uint32_t>(plan.launches[launch_index].launch.blocks);
    }
    for (const size_t launch_index : planned.launches) {
      plan.launches[launch_index].arguments.meeting = meeting;
    }
    plan.points.push_back(meeting);
  }
}

void RunMemory::lay_out_relays(Plan& plan) {
  if (relays_.reserve(plan.launches.size())) relays_.write(std::vector<Relay>(relays_.size()));
  for (size_t launch_index = 0; launch_index < plan.launches.size(); ++launch_index) {
    PlannedLaunch& planned = plan.launches[launch_index];
    planned.arguments.relay = relays_.at(plan.timed ? 0 : launch_index);
    if (!plan.timed) continue;
    planned.release = plan.launches.front().release;
    planned.arguments.release = plan.launches.front().arguments.release;
  }
}

void RunMemory::lay_out_ticks(const std::span<PlannedLaunch> launches) {
  std::vector<uint32_t> all;
  for (const PlannedLaunch& planned : launches) {
    if (planned.ticks.size() > 1) all.insert(all.end(), planned.ticks.begin(), planned.ticks.end());
  }
  if (all.empty()) return;
  ticks_.reserve(all.size());
  ticks_.write(all);
  size_t next = 0;
  for (PlannedLaunch& planned : launches) {
    if (planned.ticks.size() == 1) continue;
    planned.arguments.ticks = ticks_.at(next);
    next += planned.ticks.size();
  }
}

void RunMemory::lay_out_runs(Plan& plan) {
  std::vector<uint32_t> next;
  std::vector<size_t> begins;
  for (const PlannedRuns& runs : plan.runs) {
    begins.push_back(next.size());
    const size_t blocks = plan.launches[runs.launches.front()].records.size();
    next.resize(next.size() + blocks);
    std::iota(next.end() - static_cast<std::ptrdiff_t>(blocks), next.end(), 0U);
  }
  if (next.empty()) return;
  next_records_.reserve(next.size());
  next_records_.write(next);
  for (size_t kernel = 0; kernel < plan.runs.size(); ++kernel) {
    const PlannedRuns& runs = plan.runs[kernel];
    PlannedLaunch& first = plan.launches[runs.launches.front()];
    const auto apart = runs.launches.size() > 1
                           ? plan.launches[runs.launches[1]].records.data() - first.records.data()
                           : std::ssize(first.records);
    first.arguments.runs = {.record = next_records_.at(begins[kernel]),
                            .apart = static_cast<uint32_t>(apart),
                            .decisions = 0,
                            .decides = {}};
  }
}

}  // namespace tbsched::cuda
