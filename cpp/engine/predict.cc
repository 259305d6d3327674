#include "engine/predict.h"

#include <algorithm>

#include "engine/engine.h"
#include "engine/timed_engine.h"

namespace tbsched {
namespace {

class TraceRecorder final : public Listener {
 public:
  void on_launch(int32_t, const int32_t blocks, const Demand&, const GpuState&) override {
    traces.push_back({.smid = {}, .final_smid = std::vector<int32_t>(blocks, kNotPlaced)});
  }
  void on_place(const int32_t launch, const int32_t first_block,
                const std::span<const int32_t> sms) override {
    std::ranges::copy(sms, traces[launch].final_smid.begin() + first_block);
  }
  void on_refuse(const int32_t launch, const Refusal refusal) override {
    if (traces[launch].smid.empty()) traces[launch].limiter = refusal;
  }
  void on_settled(const int32_t launch) override {
    traces[launch].smid = traces[launch].final_smid;
  }

  std::vector<LaunchTrace> traces;
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
                                 const PolicyRow& policy, const InitialState state) {
  TraceRecorder recorder;
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
