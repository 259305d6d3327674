#include "engine/predict.h"

#include <algorithm>
#include <span>
#include <stdexcept>

#include "engine/engine.h"
#include "engine/timed_engine.h"
#include "sm/processing_blocks.h"

namespace tbsched {
namespace {

class TraceRecorder final : public Listener {
 public:
  explicit TraceRecorder(const bool warp_slots) : warp_slots_(warp_slots) {}

  void on_launch(int32_t, const int32_t blocks, const Demand& demand,
                 const GpuState& gpu) override {
    LaunchTrace& trace = traces.emplace_back();
    trace.final_smid.assign(blocks, kNotPlaced);
    if (!warp_slots_) return;
    trace.warp_slots.assign(static_cast<size_t>(blocks) * demand.warps, kNotPlaced);
    processing_blocks_ = gpu.spec().processing_blocks;
  }
  void on_place(const BlockScheduler::Placed& placed) override {
    LaunchTrace& trace = traces[placed.launch];
    std::ranges::copy(placed.sms, trace.final_smid.begin() + placed.first_block);
    if (warp_slots_ && trace.smid.empty()) list_slots(placed, trace);
  }
  void on_refuse(const int32_t launch, const Refusal refusal) override {
    if (traces[launch].smid.empty()) traces[launch].limiter = refusal;
  }
  void on_settled(const int32_t launch) override {
    traces[launch].smid = traces[launch].final_smid;
  }

  std::vector<LaunchTrace> traces;

 private:
  void list_slots(const BlockScheduler::Placed& placed, LaunchTrace& trace) const {
    const size_t warps = trace.warp_slots.size() / trace.final_smid.size();
    size_t row = placed.first_block * warps;
    for (const size_t k : placed.footprint_of_blocks()) {
      list_warp_slots(placed.footprints[k], processing_blocks_,
                      std::span(trace.warp_slots).subspan(row, warps));
      row += warps;
    }
  }

  bool warp_slots_;
  int32_t processing_blocks_ = 0;
};

class CapacityRecorder final : public Listener {
 public:
  void on_launch(int32_t, int32_t, const Demand& demand, const GpuState& gpu) override {
    auto& rooms = launches.emplace_back();
    for (int32_t sm = 0; sm < gpu.spec().topology.sms(); ++sm) {
      rooms.push_back(gpu.admits(demand) ? gpu.room(sm, demand) : Room{0, Refusal::local_memory});
    }
  }

  std::vector<std::vector<Room>> launches;
};

void run(const DeviceSpec& spec, const Sequence& sequence, const PolicyRow& policy,
         const InitialState state, Listener& listener) {
  Engine engine(spec, policy, state, {&listener});
  for (const Event& event : sequence) engine.step(event);
}

}  // namespace

std::vector<LaunchTrace> predict(const DeviceSpec& spec, const Sequence& sequence,
                                 const PolicyRow& policy, const InitialState state,
                                 const bool warp_slots) {
  if (warp_slots && !spec.mechanisms.strict_round_robin) {
    throw std::invalid_argument("warp_slots: " + spec.name +
                                " has strict_round_robin off; they need warps in strict turn");
  }
  TraceRecorder recorder(warp_slots);
  run(spec, sequence, policy, state, recorder);
  return std::move(recorder.traces);
}

Timeline predict_timeline(const DeviceSpec& spec, const Sequence& sequence, const PolicyRow& policy,
                          const InitialState state, const int64_t launch_interval_ns) {
  return TimedEngine(spec, policy, state, launch_interval_ns).run(sequence);
}

std::vector<std::vector<Room>> capacities(const DeviceSpec& spec, const Sequence& sequence,
                                          const PolicyRow& policy, const InitialState state) {
  CapacityRecorder recorder;
  run(spec, sequence, policy, state, recorder);
  return std::move(recorder.launches);
}

}  // namespace tbsched
