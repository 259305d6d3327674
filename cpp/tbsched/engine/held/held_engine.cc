#include "tbsched/engine/held/held_engine.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace tbsched {

Engine::Engine(const Model& model, const InitialState state, std::vector<Listener*> listeners,
               const BlockScheduler::Leaving leaving)
    : scheduler_(model, state), leaving_(leaving), listeners_(std::move(listeners)) {}

void Engine::step(const Event& event) {
  if (const auto* const started = std::get_if<Launch>(&event)) {
    launch(*started);
  } else if (const auto* const released = std::get_if<Release>(&event)) {
    release(released->launch);
  } else {
    throw std::invalid_argument("CUDA events need launches with durations");
  }
}

void Engine::launch(const Launch& launch) {
  if (!launch.duration_ns.empty()) {
    throw std::invalid_argument("launch " + std::to_string(kernels_.size()) +
                                ": duration: here blocks stay until they are released");
  }
  const int32_t index = scheduler_.add(launch, leaving_);
  int32_t predecessor = -1;
  if (launch.stream) {
    int32_t& last = last_in_stream_.try_emplace(*launch.stream, -1).first->second;
    predecessor = std::exchange(last, index);
  }
  kernels_.push_back({.resident = {}});
  tell([&](Listener& listener) {
    listener.on_launch(index, launch.blocks, scheduler_.demand(index), scheduler_.gpu());
  });

  const bool waits_for_stream = predecessor >= 0 && !finished(predecessor);
  if (waits_for_stream) {
    kernels_[predecessor].successor = index;
  } else {
    scheduler_.enqueue(index);
  }
  place_waiting();
  if (waits_for_stream && !finished(predecessor)) {
    tell([&](Listener& listener) { listener.on_refuse(index, Refusal::stream); });
  }
  tell([&](Listener& listener) { listener.on_settled(index); });
}

void Engine::release(const int32_t index) {
  if (index < 0 || index >= static_cast<int32_t>(kernels_.size()) || kernels_[index].released) {
    throw std::invalid_argument("release of launch " + std::to_string(index) +
                                ": not there or released already");
  }
  kernels_[index].released = true;
  leave(index);
  tell([&](Listener& listener) { listener.on_release(index); });
  let_successor(index);
  place_waiting();
}

void Engine::let_successor(const int32_t index) {
  const int32_t successor = kernels_[index].successor;
  if (successor >= 0 && finished(index)) scheduler_.enqueue(successor);
}

// A released launch's blocks exit as soon as they are placed, which makes room for more, so it goes
// on until nothing moves.
void Engine::place_waiting() {
  bool moved = true;
  const BlockScheduler::Hooks hooks{
      .placed =
          [&](const BlockScheduler::Placed& placed) {
            tell([&](Listener& listener) { listener.on_place(placed); });
            Kernel& kernel = kernels_[placed.launch];
            if (kernel.resident.empty()) kernel.resident.swap(placed.footprints);
            kernel.resident.insert(kernel.resident.end(), placed.footprints.begin(),
                                   placed.footprints.end());
            if (!kernel.released) return;
            leave(placed.launch);
            let_successor(placed.launch);
            moved = true;
          },
      .refused =
          [&](const int32_t index, const Refusal refusal, int32_t) {
            tell([&](Listener& listener) { listener.on_refuse(index, refusal); });
          },
      .memory = [&](const int32_t index, const int32_t block) { return memory(index, block); },
  };
  while (std::exchange(moved, false)) scheduler_.place(hooks);
}

std::span<int32_t> Engine::memory(const int32_t launch, const int32_t first_block) const {
  for (Listener* const listener : listeners_) {
    const std::span<int32_t> memory = listener->memory(launch, first_block);
    if (!memory.empty()) return memory;
  }
  return {};
}

bool Engine::finished(const int32_t index) const {
  return kernels_[index].released && scheduler_.placed_whole(index);
}

void Engine::leave(const int32_t index) {
  const std::vector<Footprint> leaving = std::exchange(kernels_[index].resident, {});
  for (const Footprint& footprint : leaving) scheduler_.leave(index, footprint);
}

template <typename Call>
void Engine::tell(Call call) const {
  for (Listener* const listener : listeners_) call(*listener);
}

}  // namespace tbsched
