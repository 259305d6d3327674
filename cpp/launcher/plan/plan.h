// Everything that a run needs, got ready before its first launch: while blocks are held, any other
// driver call might block.
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
#include "launcher/probe/probe.h"
#include "launcher/probe/probe_abi.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

struct PlannedLaunch {
  Launch launch;
  ProbeFunction* function = nullptr;
  CUstream stream = nullptr;     // of a node: that of its graph
  CUevent completion = nullptr;  // happens after the launch's turn; null: none does
  std::span<BlockRecord> records;
  std::span<int32_t> warp_slots;
  std::vector<uint32_t> ticks;  // one for all blocks, or one per block
  uint32_t* release = nullptr;
  ProbeArguments arguments{};                    // the same places, as the GPU sees them
  std::chrono::steady_clock::time_point issued;  // the launch call
};

// An event that is recorded or waited for, or what the host waits for: an event, a stream, or all.
struct PlannedMark {
  CUevent event = nullptr;
  CUstream stream = nullptr;
  bool is_of_stream = true;
};

// When a worker called, and when the call had returned.
struct PlannedCall {
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

struct Plan {
  std::span<PlannedLaunch> nodes_of(const PlannedGraph& planned) {
    return std::span(launches).subspan(planned.first, count_launches(*planned.graph));
  }

  bool timed = false;  // launches end by themselves
  std::vector<PlannedLaunch> launches;
  std::vector<PlannedMark> marks;
  std::vector<PlannedGraph> graphs;
  std::vector<PlannedTransfer> transfers;  // but for those in graphs
  std::vector<PlannedCall> calls;          // of each event
  std::vector<PlannedMeeting> meetings;    // of each group
  // Of a timed sequence, in the order of first use, which may decide about their hardware queues.
  std::vector<std::unique_ptr<CudaStream>> streams;
  std::map<int32_t, std::unique_ptr<StreamEvent>> events;
};

// Calls visit(stream) for the stream of all work of the plan, for some more than once.
template <typename Visit>
void for_each_stream(const Plan& plan, const Visit& visit) {
  for (const PlannedLaunch& planned : plan.launches) visit(planned.stream);
  for (const PlannedTransfer& planned : plan.transfers) visit(planned.stream);
}

// Whether some launch may wait, or takes longer, because the context has not grown for it before.
bool waits_for_local_memory(const Plan& plan, size_t local_memory);

// What plans take their kernels and streams from: made when first needed and kept.
struct Supplies {
  Supplies(const Context& context, bool from_ptx) : probe(context, from_ptx), partitions(context) {}

  // Throws std::invalid_argument for a partition that the driver does not make.
  Lane lane(const Launch& launch) {
    return {launch.partition ? &partitions.of(*launch.partition) : nullptr, launch.priority};
  }
  // Forgets what has become much. Nothing may run.
  void trim();

  Probe probe;
  Partitions partitions;
  StreamPool streams;
};

// Kept from run to run; nothing in it shrinks.
class RunMemory {
 public:
  explicit RunMemory(const Driver& driver)
      : driver_(driver), relays_(driver), points_(driver), ticks_(driver), transfers_(driver) {}

  // Points the launches at memory of their own, as it is before a launch. No block stays longer
  // than `hold`.
  void lay_out(Plan& plan, bool warp_slots, std::chrono::nanoseconds hold);
  const TransferMemory& transfers() const { return transfers_; }

 private:
  void lay_out_memory(Plan& plan, bool warp_slots);
  void lay_out_relays(Plan& plan);
  void lay_out_meetings(Plan& plan, uint32_t wait_ticks);
  void lay_out_ticks(std::span<PlannedLaunch> launches);

  const Driver& driver_;
  std::unique_ptr<MappedMemory> memory_;
  DeviceMemory<Relay> relays_;
  MeetingPoints points_;
  DeviceMemory<uint32_t> ticks_;
  TransferMemory transfers_;
  uint32_t run_ = 0;
};

// Throws std::invalid_argument for what this GPU refuses, and what `interrupted` throws, which is
// asked before each launch: kernels may have to be loaded. The context is current.
Plan plan_sequence(const Sequence& sequence, const Groups& groups, const Context& context,
                   Supplies& supplies, const std::function<void()>& interrupted);

}  // namespace tbsched::cuda
