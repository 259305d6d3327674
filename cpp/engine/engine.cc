#include "engine/engine.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "sm/clusters.h"

namespace tbsched {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw std::invalid_argument(message); }

}  // namespace

Engine::Engine(const DeviceSpec& spec, const PolicyRow& policy, const InitialState state,
               std::vector<Listener*> listeners)
    : policy_name_(policy.name),
      places_clusters_(policy.places_clusters),
      gpu_(policy.sees(spec)),
      policy_(policy.make(gpu_.spec(), state)),
      listeners_(std::move(listeners)) {}

void Engine::step(const Event& event) {
  if (const auto* const started = std::get_if<Launch>(&event)) {
    launch(*started);
  } else if (const auto* const released = std::get_if<Release>(&event)) {
    release(released->launch);
  } else {
    refuse("events need launches with durations");
  }
}

void Engine::launch(const Launch& launch) {
  const auto index = static_cast<int32_t>(kernels_.size());
  const DeviceSpec& spec = gpu_.spec();
  const std::string who = "launch " + std::to_string(index) + ": ";
  if (launch.blocks < 1 || launch.threads < 1 || launch.registers < 1 || launch.shared_memory < 0) {
    refuse(who + "blocks, threads and registers must be positive, shared_memory not negative");
  }
  if (launch.threads > spec.threads_per_block || launch.registers > spec.registers_per_thread ||
      launch.shared_memory > spec.shared_memory_configurations.back()) {
    refuse(who + "threads, registers or shared_memory are more than " + spec.name +
           " allows a block");
  }
  check_cluster(launch, who);
  const Demand demand = demand_of(launch, spec);
  if (demand.blocks_per_sm == 0) {
    const Room room = SmState(spec).room(demand, spec.shared_memory_configurations.back());
    refuse(who + "one block is more than an empty SM of " + spec.name +
           " holds: " + std::string(name(room.limiter)));
  }

  int32_t predecessor = -1;
  if (launch.stream) {
    const auto known =
        std::ranges::find(last_in_stream_, *launch.stream, &std::pair<int32_t, int32_t>::first);
    if (known == last_in_stream_.end()) {
      last_in_stream_.emplace_back(*launch.stream, index);
    } else {
      predecessor = std::exchange(known->second, index);
    }
  }
  kernels_.push_back({.demand = demand,
                      .blocks = launch.blocks,
                      .priority = launch.priority,
                      .predecessor = predecessor,
                      .resident = {}});
  tell([&](Listener& listener) { listener.on_launch(index, launch.blocks, demand, gpu_); });

  const auto behind = std::ranges::upper_bound(
      waiting_, launch.priority, {}, [&](const int32_t k) { return kernels_[k].priority; });
  waiting_.insert(behind, index);
  place_waiting();
  tell([&](Listener& listener) { listener.on_settled(index); });
}

void Engine::check_cluster(const Launch& launch, const std::string& who) const {
  if (launch.cluster == 1) return;
  const std::string got = "; got " + std::to_string(launch.cluster);
  if (launch.cluster < 1 || launch.blocks % launch.cluster != 0) {
    refuse(who + "cluster: must be positive and divide blocks" + got);
  }
  if (!places_clusters_) {
    refuse(who + "cluster: policy '" + std::string(policy_name_) + "' places single blocks only" +
           got);
  }
  if (const int32_t largest = largest_cluster(gpu_.spec().topology); launch.cluster > largest) {
    refuse(who + "cluster: an idle " + gpu_.spec().name + " takes up to " +
           std::to_string(largest) + " blocks" + got);
  }
}

void Engine::release(const int32_t index) {
  if (index < 0 || index >= static_cast<int32_t>(kernels_.size()) || kernels_[index].released) {
    refuse("release of launch " + std::to_string(index) + ": not there or released already");
  }
  kernels_[index].released = true;
  leave(kernels_[index]);
  tell([&](Listener& listener) { listener.on_release(index); });
  place_waiting();
}

// Blocks that wait for room go first come, first served within a priority, and a launch that cannot
// be placed whole holds up all behind it. A released launch's blocks exit as soon as they are
// placed, which makes room for more, so it goes on until nothing moves.
void Engine::place_waiting() {
  for (bool moved = true; moved && !waiting_.empty();) {
    moved = false;
    bool held_up = false;
    for (const int32_t index : waiting_) {
      Kernel& kernel = kernels_[index];
      const int32_t before = kernel.placed;
      Refusal refusal = Refusal::queue;
      if (kernel.predecessor >= 0 && !kernels_[kernel.predecessor].finished()) {
        refusal = Refusal::stream;
      } else if (!held_up) {
        refusal = try_to_place(index);
        held_up = refusal != Refusal::none && gpu_.spec().mechanisms.head_of_line;
      }
      moved |= kernel.placed > before && kernel.released;
      if (kernel.waiting() > 0) {
        tell([&](Listener& listener) { listener.on_refuse(index, refusal); });
      }
    }
    std::erase_if(waiting_, [&](const int32_t k) { return kernels_[k].waiting() == 0; });
  }
}

Refusal Engine::try_to_place(const int32_t index) {
  Kernel& kernel = kernels_[index];
  if (!gpu_.admits(kernel.demand)) return Refusal::local_memory;
  const std::vector<int32_t> sms = policy_->place(
      kernel.demand, kernel.waiting(), gpu_,
      [&](const int32_t sm) { kernel.resident.push_back(gpu_.commit(sm, kernel.demand)); });
  tell([&](Listener& listener) { listener.on_place(index, kernel.placed, sms); });
  kernel.placed += static_cast<int32_t>(sms.size());
  const Refusal refusal = kernel.waiting() == 0 ? Refusal::none : what_refuses(kernel.demand);
  if (kernel.released) leave(kernel);
  return refusal;
}

// What refuses a block on most of the SMs.
Refusal Engine::what_refuses(const Demand& demand) const {
  std::array<int32_t, kRefusalNames.size()> votes{};
  for (int32_t sm = 0; sm < gpu_.spec().topology.sms(); ++sm) {
    ++votes[static_cast<size_t>(gpu_.room(sm, demand).limiter)];
  }
  return static_cast<Refusal>(std::ranges::max_element(votes) - votes.begin());
}

void Engine::leave(Kernel& kernel) {
  for (const Footprint& footprint : kernel.resident) gpu_.release(kernel.demand, footprint);
  kernel.resident.clear();
}

template <typename Call>
void Engine::tell(Call call) const {
  for (Listener* const listener : listeners_) call(*listener);
}

}  // namespace tbsched
