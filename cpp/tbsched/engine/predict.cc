#include "tbsched/engine/predict.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "tbsched/engine/bulk/parallel.h"
#include "tbsched/engine/held/held_engine.h"
#include "tbsched/hardware/sm/processing_blocks.h"

namespace tbsched {
namespace {

// Records where blocks go, and their warp slots if requested.
class TraceRecorder final : public Observer {
 public:
  explicit TraceRecorder(const bool warp_slots) : warp_slots_(warp_slots) {}

  void on_launch(int32_t, const int32_t blocks, const Demand& demand,
                 const GpuState& gpu) override {
    LaunchTrace& trace = traces.emplace_back();
    trace.smid.assign(blocks, kNotPlaced);
    if (!warp_slots_) return;
    trace.warp_slots.assign(static_cast<size_t>(blocks) * demand.warps, kNotPlaced);
    processing_blocks_ = gpu.spec().processing_blocks;
  }
  void on_place(const PlacedBlocks& placed) override {
    if (warp_slots_ && !is_settled(placed.launch)) add_slots(placed, traces[placed.launch]);
  }
  void on_refuse(const int32_t launch, const Refusal refusal, int32_t) override {
    if (!is_settled(launch)) traces[launch].limiter = refusal;
  }
  void on_settled(const int32_t launch) override {
    settled_ = launch + 1;
    if (traces[launch].smid.back() != kNotPlaced) traces[launch].limiter = Refusal::none;
  }

  // Returns where the scheduler is to write the SMs of the launch's blocks from `first_block` on.
  std::span<int32_t> output_sms(const int32_t launch, const int32_t first_block) {
    LaunchTrace& trace = traces[launch];
    if (is_settled(launch) && trace.final_smid.empty()) trace.final_smid = trace.smid;
    return std::span(is_settled(launch) ? trace.final_smid : trace.smid).subspan(first_block);
  }

  std::vector<LaunchTrace> traces;

 private:
  // Returns whether an event has come after the launch.
  bool is_settled(const int32_t launch) const { return launch < settled_; }

  // Writes the warp slots of blocks to their trace.
  void add_slots(const PlacedBlocks& placed, LaunchTrace& trace) const {
    const size_t warps = trace.warp_slots.size() / trace.smid.size();
    size_t row = placed.first_block * warps;
    for (const Footprint& footprint : placed.footprints) {
      list_warp_slots(footprint, processing_blocks_,
                      std::span(trace.warp_slots).subspan(row, warps));
      row += warps;
    }
  }

  bool warp_slots_;
  int32_t settled_ = 0;  // number of launches that do not change any more before the next event
  int32_t processing_blocks_ = 0;
};

// Records the room of every SM for each launch when it arrives.
class CapacityRecorder final : public Observer {
 public:
  void on_launch(int32_t, int32_t, const Demand& demand, const GpuState& gpu) override {
    auto& rooms = launches.emplace_back();
    for (int32_t sm = 0; sm < gpu.spec().sms; ++sm) {
      rooms.push_back(gpu.admits(demand)
                          ? LimitedRoom{gpu.room(sm, demand), gpu.limiters(sm, demand)}
                          : LimitedRoom{{0, Refusal::local_memory}, set_of(Refusal::local_memory)});
    }
  }

  std::vector<std::vector<LimitedRoom>> launches;
};

// Runs a sequence of held launches on an idle GPU.
void run(const Model& model, const Sequence& sequence, const InitialState state, Observer& observer,
         HeldOptions options = {}) {
  HeldEngine engine(model, state, {&observer}, std::move(options));
  for (const Event& event : sequence) engine.step(event);
}

// Returns where blocks go. `race`: the order in which blocks leave; nullptr: all at once.
std::vector<LaunchTrace> predict_traces(const Model& model, const Sequence& sequence,
                                        const InitialState state, const bool warp_slots,
                                        Race* const race) {
  TraceRecorder recorder(warp_slots);
  using Leaving = BlockScheduler::Leaving;
  run(model, sequence, state, recorder,
      {.leaving = warp_slots || race ? Leaving::one_by_one : Leaving::together,
       .output_sms =
           [&](const int32_t launch, const int32_t first_block) {
             return recorder.output_sms(launch, first_block);
           },
       .race = race});
  return std::move(recorder.traces);
}

}  // namespace

std::vector<LaunchTrace> predict(const Model& model, const Sequence& sequence,
                                 const InitialState state, const bool warp_slots) {
  const DeviceSpec& spec = model.device().spec;
  if (warp_slots && !spec.mechanisms.strict_round_robin) {
    throw std::invalid_argument("warp_slots: " + spec.name +
                                " has strict_round_robin off; they need warps in strict turn");
  }
  return predict_traces(model, sequence, state, warp_slots, nullptr);
}

std::vector<LaunchTrace> predict(const Model& model, const Sequence& sequence,
                                 const InitialState state, Race& race) {
  return predict_traces(model, sequence, state, false, &race);
}

Timeline predict_timeline(const Model& model, const Sequence& sequence, const InitialState state,
                          HostCalls calls, std::vector<int32_t> turns,
                          const Neighbours* const neighbours, const Detail detail) {
  Simulation engine(model, state, std::move(calls));
  engine.take_turns(std::move(turns));
  engine.keep(detail);
  if (neighbours != nullptr) engine.slow(*neighbours);
  return std::move(engine).run(sequence);
}

Timeline predict_timeline(const std::vector<StartingGpu>& gpus, const Sequence& sequence,
                          HostCalls calls) {
  return Simulation(gpus, std::move(calls)).run(sequence);
}

std::vector<Prediction> predict_many(const Model& model,
                                     const std::span<const Sequence* const> sequences,
                                     const InitialState state, const int64_t launch_interval_ns,
                                     const bool warp_slots, const int32_t threads) {
  std::vector<Prediction> predictions(sequences.size());
  for_each_sequence(sequences.size(), threads, [&](const size_t k) {
    const Sequence& sequence = *sequences[k];
    if (is_timed(sequence)) {
      predictions[k] = predict_timeline(model, sequence, state, CallIntervals{launch_interval_ns});
    } else {
      predictions[k] = predict(model, sequence, state, warp_slots);
    }
  });
  return predictions;
}

std::vector<std::vector<LimitedRoom>> capacities(const Model& model, const Sequence& sequence,
                                                 const InitialState state) {
  CapacityRecorder recorder;
  run(model, sequence, state, recorder);
  return std::move(recorder.launches);
}

Snapshot snapshot_after(const Model& model, const Sequence& sequence, const InitialState state,
                        const size_t event_count) {
  HeldEngine engine(model, state, {});
  for (const Event& event : std::span(sequence).first(std::min(event_count, sequence.size()))) {
    engine.step(event);
  }
  return engine.snapshot();
}

Snapshot snapshot_at(const Model& model, const Sequence& sequence, const InitialState state,
                     HostCalls calls, const int64_t at_ns, const Neighbours* const neighbours) {
  Simulation engine(model, state, std::move(calls));
  if (neighbours != nullptr) engine.slow(*neighbours);
  return std::move(engine).snapshot(sequence, 0, at_ns);
}

Snapshot snapshot_at(const std::vector<StartingGpu>& gpus, const Sequence& sequence,
                     HostCalls calls, const int32_t gpu, const int64_t at_ns) {
  return Simulation(gpus, std::move(calls)).snapshot(sequence, gpu, at_ns);
}

}  // namespace tbsched
