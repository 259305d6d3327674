#include "tbsched/engine/held/held_engine.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace tbsched {

HeldEngine::HeldEngine(const Model& model, const InitialState state,
                       std::vector<Observer*> observers, HeldOptions options)
    : scheduler_(model, state),
      leaving_(options.leaving),
      options_{.memory = std::move(options.memory)},
      observers_(std::move(observers)) {
  if (std::ranges::find(observers_, nullptr) != observers_.end()) {
    throw std::invalid_argument("observers: one of them is null");
  }
}

void HeldEngine::step(const Event& event) {
  const auto refuse = [] {
    throw std::invalid_argument("CUDA events and graphs need launches with durations");
  };
  std::visit(Overloaded{
                 [&](const Launch& started) { launch(started); },
                 [&](const Release& released) { release(released.launch); },
                 [&](const RecordEvent&) { refuse(); },
                 [&](const WaitEvent&) { refuse(); },
                 [&](const GraphLaunch&) { refuse(); },
             },
             event);
}

Snapshot HeldEngine::snapshot() const {
  const auto launches = static_cast<int32_t>(launches_.size());
  std::vector<ResidentBlocks> blocks;
  for (int32_t launch = 0; launch < launches; ++launch) {
    for (const Footprint& footprint : launches_[launch].resident) {
      blocks.push_back({launch, footprint});
    }
  }
  return snapshot_of(scheduler_, launches, std::move(blocks));
}

void HeldEngine::check(const Launch& launch) const {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("launch " + std::to_string(launches_.size()) + ": " + what);
  };
  if (!launch.duration_ns.empty()) {
    refuse("duration: here blocks stay until they are released");
  } else if (launch.stream == kLegacyStream) {
    refuse("stream: the legacy stream needs launches with durations");
  } else if (launch.stream && *launch.stream < 0) {
    refuse("stream: " + std::to_string(*launch.stream) + " must not be negative");
  }
}

void HeldEngine::launch(const Launch& launch) {
  check(launch);
  const int32_t index = scheduler_.add(launch, leaving_);
  int32_t predecessor = -1;
  if (launch.stream) {
    int32_t& last = last_in_stream_.try_emplace(*launch.stream, -1).first->second;
    predecessor = std::exchange(last, index);
  }
  launches_.push_back({.resident = {}});
  tell([&](Observer& observer) {
    observer.on_launch(index, launch.blocks, scheduler_.demand(index), scheduler_.gpu());
  });

  const bool waits_for_stream = predecessor >= 0 && !finished(predecessor);
  if (waits_for_stream) {
    launches_[predecessor].successor = index;
  } else {
    scheduler_.enqueue(index);
  }
  place_waiting();
  if (waits_for_stream && !finished(predecessor)) {
    tell([&](Observer& observer) { observer.on_refuse(index, Refusal::stream, predecessor); });
  }
  tell([&](Observer& observer) { observer.on_settled(index); });
}

void HeldEngine::release(const int32_t index) {
  if (index < 0 || index >= static_cast<int32_t>(launches_.size()) || launches_[index].released) {
    throw std::invalid_argument("release of launch " + std::to_string(index) +
                                ": not there or released already");
  }
  launches_[index].released = true;
  leave(index);
  tell([&](Observer& observer) { observer.on_release(index); });
  let_successor(index);
  place_waiting();
}

void HeldEngine::let_successor(const int32_t index) {
  const int32_t successor = launches_[index].successor;
  if (successor >= 0 && finished(index)) scheduler_.enqueue(successor);
}

// A released launch's blocks exit as soon as they are placed, which makes room for more, so it goes
// on until nothing moves.
void HeldEngine::place_waiting() {
  do {
    moved_ = false;
    scheduler_.place(*this, options_);
  } while (moved_);
}

void HeldEngine::on_place(const PlacedBlocks& placed) {
  tell([&](Observer& observer) { observer.on_place(placed); });
  LaunchState& state = launches_[placed.launch];
  if (state.resident.empty()) state.resident.swap(placed.footprints);
  state.resident.insert(state.resident.end(), placed.footprints.begin(), placed.footprints.end());
  if (!state.released) return;
  leave(placed.launch);
  let_successor(placed.launch);
  moved_ = true;
}

void HeldEngine::on_refuse(const int32_t launch, const Refusal refusal, const int32_t behind) {
  tell([&](Observer& observer) { observer.on_refuse(launch, refusal, behind); });
}

bool HeldEngine::finished(const int32_t index) const {
  return launches_[index].released && scheduler_.placed_whole(index);
}

void HeldEngine::leave(const int32_t index) {
  const std::vector<Footprint> leaving = std::exchange(launches_[index].resident, {});
  for (const Footprint& footprint : leaving) scheduler_.leave(index, footprint);
}

template <typename Call>
void HeldEngine::tell(Call call) const {
  for (Observer* const observer : observers_) call(*observer);
}

}  // namespace tbsched
