// Runs launches and releases against the state of a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/listener.h"
#include "model/device_spec.h"
#include "model/sequence.h"
#include "policy/policy.h"
#include "sm/footprint.h"
#include "sm/gpu_state.h"

namespace tbsched {

class Engine {
 public:
  Engine(const DeviceSpec& spec, const PolicyRow& policy, InitialState state,
         std::vector<Listener*> listeners);

  // Throws std::invalid_argument for a launch that can never fit, and for a release of a launch
  // that is not there or is released already; the state is then as before.
  void step(const Event& event);

 private:
  struct Kernel {
    Demand demand;
    int32_t blocks;
    int32_t priority;
    int32_t predecessor;  // the launch before it in its stream, or -1
    int32_t placed = 0;
    bool released = false;
    std::vector<Footprint> resident;

    int32_t waiting() const { return blocks - placed; }
    bool finished() const { return released && waiting() == 0; }
  };

  void launch(const Launch& launch);
  void check_cluster(const Launch& launch, const std::string& who) const;
  void release(int32_t index);
  void place_waiting();
  Refusal try_to_place(int32_t index);
  Refusal what_refuses(const Demand& demand) const;
  void leave(Kernel& kernel);
  template <typename Call>
  void tell(Call call) const;

  std::string_view policy_name_;
  bool places_clusters_;
  GpuState gpu_;
  std::unique_ptr<Policy> policy_;
  std::vector<Listener*> listeners_;
  std::vector<Kernel> kernels_;
  std::vector<std::pair<int32_t, int32_t>> last_in_stream_;  // stream, launch
  std::vector<int32_t>
      waiting_;  // launches with blocks to place: by priority, then in order of launch
};

}  // namespace tbsched
