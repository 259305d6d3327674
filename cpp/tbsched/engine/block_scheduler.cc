#include "tbsched/engine/block_scheduler.h"

#include <algorithm>
#include <numeric>

#include "tbsched/hardware/gpu/cluster_domains.h"
#include "tbsched/program/refuse.h"

namespace tbsched {
BlockScheduler::BlockScheduler(const Model& model, const InitialState state)
    : model_(model),
      gpu_(model.device()),
      order_(model.order()),
      policy_(model.start(state)),
      rooms_(model.device()) {}

int32_t BlockScheduler::add(const Launch& launch, const Leaving leaving) {
  const auto index = static_cast<int32_t>(launches_.size());
  check(launch, index);
  const DeviceSpec& spec = gpu_.spec();
  const Demand demand = demand_of(launch, model_.device());
  if (demand.blocks_per_sm == 0) {
    const Room room =
        model_.device().empty_sm.room(spec, demand, spec.shared_memory_configurations.back());
    refuse(index, "one block is more than an empty SM of " + spec.name +
                      " holds: " + std::string(name(room.limiter)));
  }
  launches_.push_back({
      .demand = demand,
      .blocks = launch.blocks,
      .priority = launch.priority,
      .leaving = leaving,
      .in_gpcs_only =
          launch.cluster > 1 && !fits_a_singleton(model_.device().cluster_domains, launch.cluster),
  });
  return index;
}

void BlockScheduler::check(const Launch& launch, const int32_t index) const {
  const DeviceSpec& spec = gpu_.spec();
  if (launch.blocks < 1 || launch.threads < 1 || launch.registers < 1 || launch.shared_memory < 0) {
    refuse(index, "blocks, threads and registers must be positive, shared_memory not negative");
  }
  if (launch.threads > spec.threads_per_block || launch.registers > spec.registers_per_thread ||
      launch.shared_memory > spec.shared_memory_configurations.back()) {
    refuse(index,
           "threads, registers or shared_memory are more than " + spec.name + " allows a block");
  }
  if (const int32_t carveout = launch.carveout.value_or(0); carveout < 0 || carveout > 100) {
    refuse(index, "carveout: " + std::to_string(carveout) + " is outside 0..100 percent");
  }
  if (const Range range = ranges::local_memory_initial; !range.holds(launch.local_memory)) {
    refuse(index, "local_memory: " + std::to_string(launch.local_memory) + " is outside 0.." +
                      std::to_string(range.high) + " bytes");
  }
  if (launch.cluster == 1) return;
  const std::string got = "; got " + std::to_string(launch.cluster);
  if (launch.cluster < 1 || launch.blocks % launch.cluster != 0) {
    refuse(index, "cluster: must be positive and divide blocks" + got);
  }
  if (!model_.policy().places_clusters) {
    refuse(index, "cluster: policy '" + std::string(model_.policy().name) +
                      "' places single blocks only" + got);
  }
  if (const int32_t largest = largest_cluster(model_.device().cluster_domains);
      launch.cluster > largest) {
    refuse(index, "cluster: an idle " + spec.name + " takes up to " + std::to_string(largest) +
                      " blocks" + got);
  }
}

void BlockScheduler::refuse_unknown(const int32_t launch) const {
  refuse(launch, "there is none; " + std::to_string(launches_.size()) + " have been added");
}

void BlockScheduler::refuse_footprint(const int32_t launch) const {
  refuse(checked(launch), "it does not hold this footprint: that has left, or is another launch's");
}

void BlockScheduler::enqueue(const int32_t launch, const int64_t place) {
  LaunchState& state = launches_[checked(launch)];
  if (state.enqueued) refuse(launch, "it is enqueued already");
  state.enqueued = true;
  state.place = place;
  if (spare_.empty()) {
    waiting_.insert(place_of(launch));
  } else {
    spare_.back().value() = place_of(launch);
    waiting_.insert(std::move(spare_.back()));
    spare_.pop_back();
  }
  news_.push_back(launch);
}

BlockScheduler::Place BlockScheduler::place_of(const int32_t launch) const {
  const LaunchState& state = launches_[launch];
  return {order_.by_priority ? state.priority : 0, state.place, launch};
}

void BlockScheduler::place(Observer& observer, const PlaceOptions& options) {
  if (placing_) refuse("place: it is under way; an observer must not begin another");
  const struct UnderWay {
    explicit UnderWay(bool& flag) : placing(flag) { placing = true; }
    ~UnderWay() { placing = false; }
    bool& placing;
  } under_way(placing_);
  const Pass pass{observer, options};
  ++pass_;
  if (options.every_refusal) waiting_.merge(asleep_);
  wake_if_any_sm_changed();
  const Cause cause = go_through_line(pass);
  gpu_.hold_gpcs(false);
  tell_the_rest(cause, pass);
}

// A launch that does not fit holds up those behind it: until it moves, nobody looks at them.
BlockScheduler::Cause BlockScheduler::go_through_line(const Pass& pass) {
  Obstacles obstacles;
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const Place place = *next;
    if (place.launch != current_ && pass.options.may_turn && !pass.options.may_turn()) {
      if (current_ >= 0 && waiting_.contains(place_of(current_)) &&
          launches_[current_].looked_at != pass_) {
        look_at(place_of(current_), pass, obstacles);
      }
      return {Refusal::turn, current_};
    }
    if (obstacles.to_all >= 0) return {Refusal::queue, obstacles.to_all};
    look_at(place, pass, obstacles);
    next = waiting_.upper_bound(place);
  }
  return {};
}

void BlockScheduler::look_at(const Place& place, const Pass& pass, Obstacles& obstacles) {
  const int32_t launch = place.launch;
  const int32_t placed_before = launches_[launch].placed;
  launches_[launch].looked_at = pass_;
  const Refusal refusal = try_to_place(launch, pass);
  const LaunchState& state = launches_[launch];
  if (state.placed > placed_before) current_ = launch;
  if (placed_whole(launch)) {
    spare_.push_back(waiting_.extract(place));
    if (state.in_gpcs_only) wake_next_for_gpcs();
  } else if (const bool stuck = state.in_gpcs_only && obstacles.to_gpcs >= 0;
             !pass.options.every_refusal && (stuck || !order_.head_of_line)) {
    asleep_.insert(waiting_.extract(place));
  }
  wake_if_any_sm_changed();
  if (refusal == Refusal::none) return;

  const int32_t behind = refusal == Refusal::queue ? obstacles.to_gpcs : -1;
  if (order_.head_of_line) {
    // What waits for an idle GPU waits for all of it.
    const bool in_gpcs = state.in_gpcs_only && refusal != Refusal::local_memory;
    (in_gpcs ? obstacles.to_gpcs : obstacles.to_all) = launch;
    gpu_.hold_gpcs(obstacles.to_gpcs >= 0);
  }
  pass.observer.on_refuse(launch, refusal, behind);
}

// Where launches may pass each other, one that was refused is so until an SM changes.
void BlockScheduler::wake_if_any_sm_changed() {
  if (order_.head_of_line || changes_seen_ == gpu_.changes()) return;
  waiting_.merge(asleep_);
  changes_seen_ = gpu_.changes();
}

// Launches that need the GPCs get them one after the other.
void BlockScheduler::wake_next_for_gpcs() {
  if (order_.head_of_line && !asleep_.empty()) {
    waiting_.insert(asleep_.extract(asleep_.begin()));
  }
}

void BlockScheduler::tell_the_rest(const Cause& cause, const Pass& pass) {
  const auto tell = [&](const int32_t launch) {
    if (launches_[launch].looked_at == pass_) return;
    pass.observer.on_refuse(launch, cause.refusal, cause.behind);
  };
  // The same cause is new to a launch that was looked at before the scheduler turned to another.
  const bool may_be_new = cause != cause_ || cause.refusal == Refusal::turn;
  if (cause.refusal != Refusal::none && pass.options.every_refusal && may_be_new) {
    for (const Place& place : waiting_) tell(place.launch);
  } else if (cause.refusal != Refusal::none) {
    for (size_t k = 0; k < news_.size(); ++k) tell(news_[k]);  // there may be more by then
  }
  news_.clear();
  cause_ = cause;
}

Refusal BlockScheduler::try_to_place(const int32_t launch, const Pass& pass) {
  LaunchState& state = launches_[launch];
  if (!gpu_.admits(state.demand)) return Refusal::local_memory;
  footprints_.clear();
  footprints_.reserve(std::min<size_t>(state.waiting(), gpu_.spec().sms));
  const Commit commit(gpu_, state.demand, state.leaving == Leaving::one_by_one, footprints_);
  const std::span<int32_t> sms = memory(launch, pass);
  const size_t count = choose(launch, pass, commit, sms);
  const PlacedBlocks placed{launch, state.placed, sms.first(count), footprints_};
  state.placed += static_cast<int32_t>(count);
  if (state.leaving == Leaving::one_by_one) sort_by_block(placed.sms);
  for (const Footprint& footprint : footprints_) residents_.add(footprint.owner, launch);
  Refusal refusal = Refusal::none;
  if (state.waiting() > 0) {
    rooms_.ask(gpu_, state.demand);
    refusal = rooms_.commonest_limiter();
  }
  if (count > 0) pass.observer.on_place(placed);
  return refusal;
}

// How many blocks of the launch were placed, and where.
size_t BlockScheduler::choose(const int32_t launch, const Pass& pass, const Commit& commit,
                              const std::span<int32_t> sms) {
  const LaunchState& state = launches_[launch];
  size_t count = 0;
  while (pass.options.where && count < sms.size()) {
    const auto next = pass.options.where(launch, state.placed + static_cast<int32_t>(count));
    if (!next) break;
    if (next->empty()) return count;
    for (const int32_t sm : *next) {
      commit(sm, 1);
      sms[count++] = sm;
    }
  }
  return count + policy_->place(state.demand, gpu_, rooms_, commit, sms.subspan(count));
}

// As many as wait, or as the GPU holds at most.
std::span<int32_t> BlockScheduler::memory(const int32_t launch, const Pass& pass) {
  const LaunchState& state = launches_[launch];
  const auto waiting = static_cast<size_t>(state.waiting());
  if (pass.options.memory) {
    const std::span<int32_t> given = pass.options.memory(launch, state.placed);
    if (!given.empty() && given.size() < waiting) refuse("memory: less than for all that wait");
    if (!given.empty()) return given.first(waiting);
  }
  const DeviceSpec& spec = gpu_.spec();
  const size_t most = std::min(waiting, static_cast<size_t>(spec.sms) * spec.blocks_per_sm);
  if (sms_.size() < most) sms_.resize(most);
  return std::span(sms_).first(most);
}

// Blocks of a launch on one SM are alike, so that SM's footprints go to them in order.
void BlockScheduler::sort_by_block(const std::span<const int32_t> sms) {
  if (sms.size() < 2) return;
  end_of_sm_.assign(gpu_.spec().sms, 0);
  for (const int32_t sm : sms) ++end_of_sm_[sm];
  std::exclusive_scan(end_of_sm_.begin(), end_of_sm_.end(), end_of_sm_.begin(), 0);
  by_sm_.resize(sms.size());
  for (const Footprint& footprint : footprints_) by_sm_[end_of_sm_[footprint.sm]++] = footprint;
  for (size_t block = sms.size(); block-- > 0;) {
    footprints_[block] = by_sm_[--end_of_sm_[sms[block]]];
  }
}

void BlockScheduler::leave(const int32_t launch, const Footprint& footprint) {
  if (!residents_.remove(footprint.owner, launch)) refuse_footprint(launch);
  gpu_.release(launches_[launch].demand, footprint);
}

}  // namespace tbsched
