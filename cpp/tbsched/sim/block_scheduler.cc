#include "tbsched/sim/block_scheduler.h"

#include <algorithm>
#include <numeric>

#include "tbsched/program/refuse.h"
#include "tbsched/sim/at_once.h"
#include "tbsched/sim/launch_check.h"

namespace tbsched {
BlockScheduler::BlockScheduler(const Model& model, const InitialState state)
    : model_(model),
      gpu_(model.device()),
      order_(model.order()),
      policy_(model.start(state)),
      rooms_(model.device()) {}

int32_t BlockScheduler::add(const Launch& launch, const Leaving leaving) {
  const auto index = static_cast<int32_t>(launches_.size());
  check(launch, index, model_);
  const DeviceSpec& spec = gpu_.spec();
  Demand demand = demand_of(launch, model_.device());
  if (demand.blocks_per_sm == 0) {
    const Room room =
        model_.device().empty_sm.room(spec, demand, spec.shared_memory_configurations.back());
    refuse(index, "one block is more than an empty SM of " + spec.name +
                      " holds: " + std::string(name(room.limiter)) + "; got " +
                      std::to_string(launch.threads) + " threads, " +
                      std::to_string(launch.registers) + " registers per thread and " +
                      std::to_string(launch.shared_memory) + " bytes of shared_memory");
  }
  const int32_t group = groups_.of(launch, model_.device());
  if (group != kWholeGpu) demand.partition = groups_[group].partition();
  if (launch.cooperative) check_cooperative(launch, demand, index);
  launches_.push_back({
      .demand = demand,
      .blocks = launch.blocks,
      .rank = urgency_of(launch, spec),
      .leaving = leaving,
      .group = group,
  });
  return index;
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
  new_launches_.push_back(launch);
  if (order_.head_of_line && gpu_.grows_for(state.demand)) growing_.insert({place, launch});
}

// Returns the first enqueued launch that needs more local memory than there is, or -1. The driver
// makes no other launch until it has that memory: even more urgent launches wait. Source: traces
// ways-holdout.
int32_t BlockScheduler::first_to_grow() {
  while (!growing_.empty()) {
    const LaunchState& first = launches_[growing_.begin()->second];
    if (first.placed == 0 && gpu_.grows_for(first.demand)) return growing_.begin()->second;
    growing_.erase(growing_.begin());
  }
  return -1;
}

BlockScheduler::Place BlockScheduler::place_of(const int32_t launch) const {
  const LaunchState& state = launches_[launch];
  return {order_.by_priority ? state.rank : 0, state.place, launch};
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
  if (options.every_refusal) unblock_all();
  unblock_if_any_sm_changed();
  const Cause cause = visit_waiting(pass);
  gpu_.release_reserved();
  report_unvisited(cause, pass);
}

// Visits the waiting launches in order, and returns the cause for which the rest wait. A launch
// that does not fit holds up the launches behind it on its SMs. If these are all SMs, no other
// launch is visited until it is placed.
BlockScheduler::Cause BlockScheduler::visit_waiting(const Pass& pass) {
  holders_.clear();
  int32_t blocks_all = -1;
  Cause cause;  // of launches behind one that needs more local memory
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const Place place = *next;
    if (place.launch != current_ && pass.options.may_turn && !pass.options.may_turn()) {
      if (current_ >= 0 && waiting_.contains(place_of(current_)) &&
          launches_[current_].visited_in != pass_) {
        for (; *next < place_of(current_); ++next) keep_holding(next->launch);
        visit(place_of(current_), pass);
      }
      return {Refusal::turn, current_};
    }
    if (blocks_all >= 0) return {Refusal::queue, blocks_all};
    const int32_t growing = first_to_grow();
    const bool is_behind = growing >= 0 && std::pair(place.place, place.launch) > *growing_.begin();
    if (is_behind || launches_[place.launch].visited_in == pass_) {
      if (is_behind) cause = {Refusal::queue, growing};
      ++next;
      continue;
    }
    if (visit(place, pass)) blocks_all = place.launch;
    // The launches behind it may be placed now.
    const bool has_grown = cause.behind == place.launch && launches_[place.launch].placed > 0;
    if (has_grown) cause = {};
    next = has_grown ? waiting_.begin() : waiting_.upper_bound(place);
  }
  return cause;
}

// Tries to place a launch. Returns whether it holds up all launches behind it.
bool BlockScheduler::visit(const Place& place, const Pass& pass) {
  const int32_t launch = place.launch;
  const int32_t placed_before = launches_[launch].placed;
  launches_[launch].visited_in = pass_;
  const Refusal refusal = try_to_place(launch, pass);
  const LaunchState& state = launches_[launch];
  if (state.placed > placed_before) current_ = launch;
  if (placed_whole(launch)) {
    spare_.push_back(waiting_.extract(place));
    if (state.group != kWholeGpu) unblock_next_for(groups_[state.group].sms);
  } else if (!pass.options.every_refusal && may_block(state)) {
    move_to_blocked(place);
  }
  unblock_if_any_sm_changed();
  if (refusal == Refusal::none) return false;

  const int32_t behind = refusal == Refusal::queue ? holder_before(state) : -1;
  // A launch that waits for an idle GPU needs all SMs.
  const bool for_all =
      state.group == kWholeGpu || !order_.on_own_sms || refusal == Refusal::local_memory;
  if (order_.head_of_line && !for_all) hold_sms_for(launch);
  pass.observer.on_refuse(launch, refusal, behind);
  return order_.head_of_line && for_all;
}

// Returns the last holder that holds an SM that the launch can use, or -1.
int32_t BlockScheduler::holder_before(const LaunchState& state) const {
  const auto holds_some = [&](const int32_t holder) {
    return state.group == kWholeGpu ||
           groups_[launches_[holder].group].sms.intersects(groups_[state.group].sms);
  };
  const auto found = std::find_if(holders_.rbegin(), holders_.rend(), holds_some);
  return found == holders_.rend() ? -1 : *found;
}

// Lets a launch hold the SMs of its group. One holder per group is enough: the last one.
void BlockScheduler::hold_sms_for(const int32_t launch) {
  const int32_t group = launches_[launch].group;
  std::erase_if(holders_, [&](const int32_t holder) { return launches_[holder].group == group; });
  holders_.push_back(launch);
  gpu_.reserve(groups_[group].sms);
}

// Lets a launch that this pass skips go on holding its SMs.
void BlockScheduler::keep_holding(const int32_t launch) {
  const LaunchState& state = launches_[launch];
  if (order_.head_of_line && order_.on_own_sms && state.group != kWholeGpu &&
      state.visited_in > 0) {
    hold_sms_for(launch);
  }
}

// Returns whether launches before it hold every SM that it can use.
bool BlockScheduler::all_held(const LaunchState& state) const {
  const SmSet& held = gpu_.reserved();
  if (held.empty()) return false;
  if (state.group == kWholeGpu) return held.size() == gpu_.spec().sms;
  return groups_[state.group].sms.is_within(held);
}

// Returns whether a launch that was refused need not be visited again for now. Without head-of-line
// blocking it stays refused until an SM changes. With it, a launch whose SMs are all held stays
// refused until a holder has been placed whole; until then it holds up nothing that is not held up
// anyway.
bool BlockScheduler::may_block(const LaunchState& state) const {
  return !order_.head_of_line || (state.group != kWholeGpu && all_held(state));
}

void BlockScheduler::move_to_blocked(const Place& place) {
  const auto line = static_cast<size_t>(launches_[place.launch].group - kWholeGpu);
  if (blocked_.size() <= line) blocked_.resize(line + 1);
  blocked_[line].insert(waiting_.extract(place));
}

void BlockScheduler::unblock_all() {
  for (Queue& line : blocked_) waiting_.merge(line);
}

void BlockScheduler::unblock_if_any_sm_changed() {
  if (order_.head_of_line || changes_seen_ == gpu_.changes()) return;
  unblock_all();
  changes_seen_ = gpu_.changes();
}

// Unblocks the first launch of each group that needs some of these SMs: launches that need the same
// SMs get them one after the other.
void BlockScheduler::unblock_next_for(const SmSet& sms) {
  if (!order_.head_of_line) return;
  for (size_t line = 0; line < blocked_.size(); ++line) {
    Queue& blocked = blocked_[line];
    if (blocked.empty() || !groups_[static_cast<int32_t>(line) + kWholeGpu].sms.intersects(sms))
      continue;
    waiting_.insert(blocked.extract(blocked.begin()));
  }
}

void BlockScheduler::report_unvisited(const Cause& cause, const Pass& pass) {
  const auto report = [&](const int32_t launch) {
    if (launches_[launch].visited_in == pass_) return;
    pass.observer.on_refuse(launch, cause.refusal, cause.behind);
  };
  // A pass that ends before the scheduler has turned says of no new launch why it waits.
  if (cause.refusal == Refusal::turn && !pass.options.every_refusal) {
    std::erase_if(new_launches_,
                  [&](const int32_t launch) { return launches_[launch].visited_in == pass_; });
    return;
  }
  // A launch that was visited before the scheduler turned to another one has not reported this
  // cause.
  const bool may_be_new = cause != cause_ || cause.refusal == Refusal::turn;
  if (cause.refusal != Refusal::none && pass.options.every_refusal && may_be_new) {
    for (const Place& place : waiting_) report(place.launch);
  } else if (cause.refusal != Refusal::none) {
    for (size_t k = 0; k < new_launches_.size(); ++k)
      report(new_launches_[k]);  // there may be more by then
  }
  new_launches_.clear();
  cause_ = cause;
}

Refusal BlockScheduler::try_to_place(const int32_t launch, const Pass& pass) {
  LaunchState& state = launches_[launch];
  if (all_held(state)) return Refusal::queue;
  if (!gpu_.admits(state.demand)) return Refusal::local_memory;
  if (state.demand.at_once) {
    rooms_.update(gpu_, state.demand);
    if (!has_room_for_all(state)) {
      return rooms_.max_room() > 0 ? Refusal::cooperative : rooms_.commonest_limiter();
    }
  }
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
    rooms_.update(gpu_, state.demand);
    refusal = model_.policy().may_decline && rooms_.max_room() > 0 ? Refusal::policy
                                                                   : rooms_.commonest_limiter();
  }
  if (count > 0) pass.observer.on_place(placed);
  return refusal;
}

// Chooses SMs for the next blocks and commits them. Returns how many blocks were placed.
size_t BlockScheduler::choose(const int32_t launch, const Pass& pass, const Commit& commit,
                              const std::span<int32_t> sms) {
  const LaunchState& state = launches_[launch];
  if (!pass.options.forced_sms) return policy_->place(state.demand, gpu_, rooms_, commit, sms);
  size_t count = 0;
  bool waits = false;
  while (count < sms.size() && !waits) {
    const auto next = pass.options.forced_sms(launch, state.placed + static_cast<int32_t>(count));
    if (!next) break;
    waits = next->empty();
    for (const int32_t sm : *next) {
      commit(sm, 1);
      sms[count++] = sm;
    }
  }
  policy_->note_placed(sms.first(count));
  if (waits) return count;
  return count + policy_->place(state.demand, gpu_, rooms_, commit, sms.subspan(count));
}

// Returns whether all blocks fit at once. rooms_ must be up to date for the launch; its sum is a
// fast upper bound.
bool BlockScheduler::has_room_for_all(const LaunchState& state) const {
  if (room_falls_by_one(gpu_.spec()) && rooms_.total_room() < state.blocks) return false;
  return fitting(model_, state.demand, state.blocks, gpu_) == state.blocks;
}

void BlockScheduler::check_cooperative(const Launch& launch, const Demand& demand,
                                       const int32_t index) const {
  if (model_.policy().may_decline) {
    refuse(index, "cooperative: policy '" + std::string(model_.policy().name) +
                      "' may place some of its blocks and not the others");
  }
  const int32_t allowed = allowed_at_once(model_, launch, demand, launch.blocks);
  if (allowed >= launch.blocks) return;
  const std::string where = demand.partition != nullptr ? "this partition of " : "an idle ";
  refuse(index, "cooperative: all blocks must be resident at once, and " + where +
                    gpu_.spec().name + " holds " + std::to_string(allowed) + "; got " +
                    std::to_string(launch.blocks));
}

// Returns room for as many SMs as blocks wait, or as the GPU holds at most.
std::span<int32_t> BlockScheduler::memory(const int32_t launch, const Pass& pass) {
  const LaunchState& state = launches_[launch];
  const auto waiting = static_cast<size_t>(state.waiting());
  if (pass.options.output_sms) {
    const std::span<int32_t> given = pass.options.output_sms(launch, state.placed);
    if (!given.empty() && given.size() < waiting) {
      refuse(launch, "memory: " + std::to_string(given.size()) + " is less than for all " +
                         std::to_string(waiting) + " blocks that wait");
    }
    if (!given.empty()) return given.first(waiting);
  }
  const DeviceSpec& spec = gpu_.spec();
  const size_t most = std::min(waiting, static_cast<size_t>(spec.sms) * spec.blocks_per_sm);
  if (sms_.size() < most) sms_.resize(most);
  return std::span(sms_).first(most);
}

// Gives each block its footprint. Blocks of a launch on one SM are alike, so an SM's footprints go
// to its blocks in order.
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
