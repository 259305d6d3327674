#include "tbsched/engine/held/held_engine.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "tbsched/sim/interruption.h"

namespace tbsched {
namespace {

// Returns whether the block of a footprint has exited.
bool has_exited(const Footprint& footprint) { return footprint.blocks == 0; }

}  // namespace

HeldEngine::HeldEngine(const Model& model, const InitialState state,
                       std::vector<Observer*> observers, HeldOptions options)
    : scheduler_(model, state),
      leaving_(options.leaving),
      options_{.output_sms = std::move(options.output_sms)},
      race_(options.race),
      observers_(std::move(observers)) {
  if (race_) {
    options_.forced_sms = [this](const int32_t launch, const int32_t first_block) {
      return forced_sms(launch, first_block);
    };
    options_.may_turn = [this] { return race_->may_turn(); };
  }
  if (std::ranges::find(observers_, nullptr) != observers_.end()) {
    throw std::invalid_argument("observers: one of them is null");
  }
}

void HeldEngine::step(const Event& event) {
  if (race_) scheduler_.settle();
  const auto refuse = [&] {
    throw std::invalid_argument(
        "CUDA events, graphs and copies need launches with durations; got one after " +
        std::to_string(launches_.size()) + " launches");
  };
  std::visit(Overloaded{
                 [&](const Launch& started) { launch(started); },
                 [&](const Release& released) { release(released.launch); },
                 [&](const RecordEvent&) { refuse(); },
                 [&](const WaitEvent&) { refuse(); },
                 [&](const GraphLaunch&) { refuse(); },
                 [&](const Copy&) { refuse(); },
                 [&](const Memset&) { refuse(); },
                 [&](const Synchronize&) { refuse(); },
                 [&](const HostFunction&) { refuse(); },
                 [&](const HostCall&) { refuse(); },
                 [&](const WriteValue&) { refuse(); },
                 [&](const WaitValue&) { refuse(); },
             },
             event);
}

Snapshot HeldEngine::snapshot() const {
  const auto launches = static_cast<int32_t>(launches_.size());
  std::vector<ResidentBlocks> blocks;
  for (int32_t launch = 0; launch < launches; ++launch) {
    for (const Footprint& footprint : launches_[launch].resident) {
      if (!has_exited(footprint)) blocks.push_back({launch, footprint});
    }
  }
  return snapshot_of(scheduler_, launches, std::move(blocks));
}

void HeldEngine::check(const Launch& launch, const size_t index) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("launch " + std::to_string(index) + ": " + what);
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
  check(launch, launches_.size());
  const int32_t index = scheduler_.add(launch, leaving_);
  int32_t predecessor = -1;
  if (launch.stream) {
    int32_t& last = last_in_stream_.try_emplace(*launch.stream, -1).first->second;
    predecessor = std::exchange(last, index);
  }
  launches_.push_back({.resident = {}});
  notify([&](Observer& observer) {
    observer.on_launch(index, launch.blocks, scheduler_.demand(index), scheduler_.gpu());
  });

  const bool waits_for_stream = predecessor >= 0 && !is_finished(predecessor);
  if (waits_for_stream) {
    launches_[predecessor].successor = index;
  } else {
    scheduler_.enqueue(index);
  }
  place_waiting();
  if (waits_for_stream && !is_finished(predecessor)) {
    notify([&](Observer& observer) { observer.on_refuse(index, Refusal::stream, predecessor); });
  }
  notify([&](Observer& observer) { observer.on_settled(index); });
}

void HeldEngine::release(const int32_t index) {
  if (index < 0 || std::cmp_greater_equal(index, launches_.size())) {
    throw std::invalid_argument("release of launch " + std::to_string(index) + ": not there, of " +
                                std::to_string(launches_.size()) + " launches so far");
  }
  if (launches_[index].released) {
    throw std::invalid_argument("release of launch " + std::to_string(index) +
                                ": it is released already");
  }
  launches_[index].released = true;
  release_resident(index, true);
  enqueue_successor(index);
  place_waiting();
}

void HeldEngine::exit_block(const int32_t launch, const int32_t block) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument("block " + std::to_string(block) + " of launch " +
                                std::to_string(launch) + ": " + why);
  };
  if (leaving_ != BlockScheduler::Leaving::one_by_one) refuse("blocks leave together");
  if (launch < 0 || std::cmp_greater_equal(launch, launches_.size())) {
    refuse("the launch is not there, of " + std::to_string(launches_.size()) + " so far");
  }
  std::vector<Footprint>& resident = launches_[launch].resident;
  if (block < 0 || std::cmp_greater_equal(block, resident.size())) {
    refuse("not there, of " + std::to_string(resident.size()) + " blocks that have been placed");
  }
  if (has_exited(resident[block])) refuse("it has left already");
  scheduler_.leave(launch, resident[block]);
  resident[block].blocks = 0;
  if (scheduler_.placed_whole(launch) && std::ranges::all_of(resident, has_exited)) {
    launches_[launch].released = true;
    resident.clear();
    enqueue_successor(launch);
  }
  place_waiting();
}

void HeldEngine::enqueue_successor(const int32_t index) {
  const int32_t successor = launches_[index].successor;
  if (successor >= 0 && is_finished(index)) scheduler_.enqueue(successor);
}

void HeldEngine::place_waiting() {
  // Blocks of a released launch exit as soon as they are placed, which makes room for more.
  do {
    Interruptible::poll();
    released_ = false;
    if (race_) {
      for (const LeavingBlock& leaver : race_->take_exits()) exit_released(leaver);
    }
    scheduler_.place(*this, options_);
  } while (released_ || (race_ && !race_->is_over()));
}

// Notes the footprints of blocks that were placed; those of a released launch exit.
void HeldEngine::on_place(const PlacedBlocks& placed) {
  notify([&](Observer& observer) { observer.on_place(placed); });
  LaunchState& state = launches_[placed.launch];
  if (state.resident.empty()) state.resident.swap(placed.footprints);
  state.resident.insert(state.resident.end(), placed.footprints.begin(), placed.footprints.end());
  if (race_) race_->note_placed(placed.sms, scheduler_.demand(placed.launch).cluster);
  if (!state.released) return;
  release_resident(placed.launch, false);
  enqueue_successor(placed.launch);
  released_ = true;
}

// Tells the observers why a launch waits.
void HeldEngine::on_refuse(const int32_t launch, const Refusal refusal, const int32_t behind) {
  notify([&](Observer& observer) { observer.on_refuse(launch, refusal, behind); });
}

bool HeldEngine::is_finished(const int32_t index) const {
  const LaunchState& state = launches_[index];
  return state.released && state.leaving == 0 && scheduler_.placed_whole(index);
}

void HeldEngine::release_resident(const int32_t index, const bool have_started) {
  std::vector<Footprint> leaving = std::exchange(launches_[index].resident, {});
  std::erase_if(leaving, has_exited);
  if (!race_) {
    for (const Footprint& footprint : leaving) scheduler_.leave(index, footprint);
    return;
  }
  launches_[index].leaving += static_cast<int32_t>(leaving.size());
  std::vector<LeavingBlock> leavers;
  for (const Footprint& footprint : leaving) leavers.push_back({index, footprint});
  race_->release_blocks(leavers, have_started);
}

void HeldEngine::exit_released(const LeavingBlock& leaver) {
  scheduler_.leave(leaver.launch, leaver.footprint);
  --launches_[leaver.launch].leaving;
  enqueue_successor(leaver.launch);
}

std::optional<std::span<const int32_t>> HeldEngine::forced_sms(const int32_t launch,
                                                               const int32_t first_block) {
  const Demand& demand = scheduler_.demand(launch);
  const auto sms = race_->sms_of_next(launch, first_block, demand.cluster);
  if (!sms) return sms;
  for (const int32_t sm : *sms) {
    const auto blocks = std::ranges::count(*sms, sm);
    while (scheduler_.gpu().room(sm, demand).blocks < blocks) {
      const std::optional<LeavingBlock> leaver = race_->take_exit_from(sm);
      if (!leaver) return sms->first(0);
      exit_released(*leaver);
    }
  }
  return sms;
}

// Calls call(observer) for every observer.
template <typename Call>
void HeldEngine::notify(Call call) const {
  for (Observer* const observer : observers_) call(*observer);
}

}  // namespace tbsched
