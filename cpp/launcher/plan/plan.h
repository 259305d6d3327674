// Everything that a run needs, prepared before its first launch: while blocks are held, other
// driver calls might block.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/driver/partitions.h"
#include "launcher/driver/resources.h"
#include "launcher/plan/graphs.h"
#include "launcher/plan/meetings.h"
#include "launcher/plan/transfers.h"
#include "launcher/plan/values.h"
#include "launcher/probe/probe.h"
#include "launcher/probe/probe_abi.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

// A launch, or one run of a kernel node.
struct PlannedLaunch {
  Launch launch;
  ProbeFunction* function = nullptr;
  CUstream stream = nullptr;                     // for a node, that of its graph
  CUevent completion = nullptr;                  // the launch's completion event, or nullptr
  std::span<BlockRecord> records;                // one per block
  std::span<int32_t> warp_slots;                 // per block and warp; empty: not requested
  std::vector<uint32_t> ticks;                   // one for all blocks, or one per block
  uint32_t* release = nullptr;                   // the number of the run: every block leaves
  ProbeArguments arguments{};                    // the same memory, with the GPU's addresses
  bool in_body = false;                          // of a conditional node
  std::chrono::steady_clock::time_point issued;  // time of the launch call
};

// A recorded or awaited event, or what a host waits for: an event, a stream, or all work.
struct PlannedMark {
  CUevent event = nullptr;
  CUstream stream = nullptr;
  bool is_of_stream = true;
};

// When a call of a worker began and returned.
struct PlannedCall {
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

// A kernel in the body of a conditional node.
struct PlannedRuns {
  std::vector<size_t> launches;  // one for each run of the body, in all launches of its graph
};

// A sequence, ready to be run.
struct Plan {
  // Returns the launches of a graph's launch.
  std::span<PlannedLaunch> nodes_of(const PlannedGraph& planned) {
    return std::span(launches).subspan(planned.first, count_launches(*planned.graph));
  }

  bool timed = false;  // launches end by themselves
  std::vector<PlannedLaunch> launches;
  std::vector<PlannedMark> marks;  // in the order of their events
  std::map<int32_t, std::unique_ptr<StreamEvent>>
      events;  // by number; before graphs, which use them
  std::vector<PlannedGraph> graphs;
  std::vector<PlannedRuns> runs;           // of kernels in bodies
  std::vector<PlannedTransfer> transfers;  // except those in graphs
  std::vector<PlannedValue> values;
  std::vector<PlannedCall> calls;        // by event
  std::vector<PlannedMeeting> meetings;  // by group
  std::vector<Meeting> points;           // by group, laid out
  // Streams of a timed sequence by first use: that order may determine their hardware queues.
  std::vector<std::unique_ptr<CudaStream>> streams;
};

// Calls visit(stream) for the stream of every piece of work of the plan, possibly repeatedly.
template <typename Visit>
void for_each_stream(const Plan& plan, const Visit& visit) {
  for (const PlannedLaunch& planned : plan.launches) visit(planned.stream);
  for (const PlannedTransfer& planned : plan.transfers) visit(planned.stream);
  for (const PlannedValue& planned : plan.values) visit(planned.stream);
}

// Returns whether a launch of the plan may wait, or take longer, because it needs more local memory
// than the context has by then. `local_memory`: bytes per thread that it has now.
bool waits_for_local_memory(const Plan& plan, size_t local_memory);

// The kernels and streams of plans, created when first needed and kept.
struct PlanResources {
  PlanResources(const Context& context, bool from_ptx)
      : probe(context, from_ptx), partitions(context), context_(context) {}

  // Returns a launch's lane. Throws std::invalid_argument for a partition that the driver does not
  // make.
  Lane lane(const Launch& launch) {
    return {launch.partition ? &partitions.of(*launch.partition) : nullptr,
            context_.clamped(launch.priority)};
  }
  // Destroys kernels and partitions if there are too many. Nothing may run.
  void trim();

  Probe probe;
  Partitions partitions;
  StreamPool streams;

 private:
  const Context& context_;
};

// The memory of runs, kept from run to run. It never shrinks.
class RunMemory {
 public:
  explicit RunMemory(const Driver& driver)
      : driver_(driver),
        relays_(driver),
        points_(driver),
        ticks_(driver),
        next_records_(driver),
        transfers_(driver),
        values_(driver) {}

  // Gives the launches of a plan memory, initialised for one run. No block stays longer than
  // `hold`.
  void lay_out(Plan& plan, bool warp_slots, std::chrono::nanoseconds hold);
  const TransferMemory& transfers() const { return transfers_; }

 private:
  // Gives each launch and group zeroed host memory for release flags, records and warp slots.
  void lay_out_memory(Plan& plan, bool warp_slots);
  // Gives each launch a relay. The state of relays from earlier runs is meaningless in this one. In
  // a timed run all blocks are released together, if at all: any block may find out for the others.
  void lay_out_relays(Plan& plan);
  // Gives each group a point at which its blocks meet. `wait_ticks`: how long a block waits.
  void lay_out_meetings(Plan& plan, uint32_t wait_ticks);
  // Puts times that differ from block to block into memory of the GPU.
  void lay_out_ticks(std::span<PlannedLaunch> launches);
  // Lets the kernels of bodies find the records of each run: the driver launches them with the
  // arguments of their first run.
  void lay_out_runs(Plan& plan);

  const Driver& driver_;
  std::unique_ptr<MappedMemory> memory_;
  DeviceMemory<Relay> relays_;
  MeetingPoints points_;
  DeviceMemory<uint32_t> ticks_;
  DeviceMemory<uint32_t> next_records_;  // per block of kernels in bodies
  TransferMemory transfers_;
  ValueMemory values_;
  uint32_t run_ = 0;  // number of the last run; 0: none
};

// Plans a sequence. Throws std::invalid_argument for what this GPU refuses, and what `interrupted`
// throws, which is called before each launch, since kernels may have to be loaded. The context must
// be current.
Plan plan_sequence(const Sequence& sequence, const Groups& groups, const Context& context,
                   PlanResources& plan_resources, const std::function<void()>& interrupted);

}  // namespace tbsched::cuda
