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
  const int32_t subset = subsets_.of(launch, model_.device());
  if (subset != kWholeGpu) demand.partition = subsets_[subset].partition();
  if (launch.cooperative) check_cooperative(launch, demand, index);
  launches_.push_back({
      .demand = demand,
      .blocks = launch.blocks,
      .urgency = urgency_of(launch, spec),
      .leaving = leaving,
      .subset = subset,
  });
  return index;
}

void BlockScheduler::refuse_unknown(const int32_t launch) const {
  refuse(launch, "there is none; " + std::to_string(launches_.size()) + " have been added");
}

void BlockScheduler::refuse_footprint(const int32_t launch) const {
  refuse(checked(launch), "it does not hold this footprint: that has left, or is another launch's");
}

void BlockScheduler::enqueue(const int32_t launch, const int64_t order) {
  LaunchState& state = launches_[checked(launch)];
  if (state.enqueued) refuse(launch, "it is enqueued already");
  state.enqueued = true;
  state.order = order;
  if (spare_nodes_.empty()) {
    waiting_.insert(key_of(launch));
  } else {
    spare_nodes_.back().value() = key_of(launch);
    waiting_.insert(std::move(spare_nodes_.back()));
    spare_nodes_.pop_back();
  }
  new_launches_.push_back(launch);
  if (order_.head_of_line && gpu_.grows_for(state.demand)) growing_.insert({order, launch});
}

int32_t BlockScheduler::first_to_grow() {
  while (!growing_.empty()) {
    const LaunchState& first = launches_[growing_.begin()->second];
    if (first.placed == 0 && gpu_.grows_for(first.demand)) return growing_.begin()->second;
    growing_.erase(growing_.begin());
  }
  return -1;
}

BlockScheduler::QueueKey BlockScheduler::key_of(const int32_t launch) const {
  const LaunchState& state = launches_[launch];
  return {order_.by_priority ? state.urgency : 0, state.order, launch};
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

BlockScheduler::Cause BlockScheduler::visit_waiting(const Pass& pass) {
  reservers_.clear();
  int32_t reserves_all = -1;  // the launch that reserves all SMs
  Cause cause;                // of launches behind one that needs more local memory
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const QueueKey key = *next;
    if (key.launch != current_ && pass.options.may_turn && !pass.options.may_turn()) {
      if (current_ >= 0 && waiting_.contains(key_of(current_)) &&
          launches_[current_].last_pass != pass_) {
        for (; *next < key_of(current_); ++next) keep_reserved(next->launch);
        visit(key_of(current_), pass);
      }
      return {Refusal::turn, current_};
    }
    if (reserves_all >= 0) return {Refusal::queue, reserves_all};
    const int32_t growing = first_to_grow();
    const bool is_behind = growing >= 0 && std::pair(key.order, key.launch) > *growing_.begin();
    if (is_behind || launches_[key.launch].last_pass == pass_) {
      if (is_behind) cause = {Refusal::queue, growing};
      ++next;
      continue;
    }
    if (visit(key, pass)) reserves_all = key.launch;
    // If local memory has grown, the launches behind it may be placed now.
    const bool has_grown = cause.behind == key.launch && launches_[key.launch].placed > 0;
    if (has_grown) cause = {};
    next = has_grown ? waiting_.begin() : waiting_.upper_bound(key);
  }
  return cause;
}

bool BlockScheduler::visit(const QueueKey& key, const Pass& pass) {
  const int32_t launch = key.launch;
  const int32_t placed_before = launches_[launch].placed;
  launches_[launch].last_pass = pass_;
  const Refusal refusal = try_to_place(launch, pass);
  const LaunchState& state = launches_[launch];
  if (state.placed > placed_before) current_ = launch;
  if (placed_whole(launch)) {
    spare_nodes_.push_back(waiting_.extract(key));
    if (state.subset != kWholeGpu) unblock_next_for(subsets_[state.subset].sms);
  } else if (!pass.options.every_refusal && may_block(state)) {
    move_to_blocked(key);
  }
  unblock_if_any_sm_changed();
  if (refusal == Refusal::none) return false;

  const int32_t behind = refusal == Refusal::queue ? last_reserver_of_any(state) : -1;
  // A launch that waits for an idle GPU needs all SMs.
  const bool needs_all =
      state.subset == kWholeGpu || !order_.on_own_sms || refusal == Refusal::local_memory;
  if (order_.head_of_line && !needs_all) reserve_sms_for(launch);
  pass.observer.on_refuse(launch, refusal, behind);
  return order_.head_of_line && needs_all;
}

int32_t BlockScheduler::last_reserver_of_any(const LaunchState& state) const {
  const auto reserves_any = [&](const int32_t reserver) {
    return state.subset == kWholeGpu ||
           subsets_[launches_[reserver].subset].sms.intersects(subsets_[state.subset].sms);
  };
  const auto last = std::find_if(reservers_.rbegin(), reservers_.rend(), reserves_any);
  return last == reservers_.rend() ? -1 : *last;
}

void BlockScheduler::reserve_sms_for(const int32_t launch) {
  // One reserving launch per subset is enough: the last one.
  const int32_t subset = launches_[launch].subset;
  std::erase_if(reservers_,
                [&](const int32_t reserver) { return launches_[reserver].subset == subset; });
  reservers_.push_back(launch);
  gpu_.reserve(subsets_[subset].sms);
}

void BlockScheduler::keep_reserved(const int32_t launch) {
  const LaunchState& state = launches_[launch];
  if (order_.head_of_line && order_.on_own_sms && state.subset != kWholeGpu &&
      state.last_pass > 0) {
    reserve_sms_for(launch);
  }
}

bool BlockScheduler::all_reserved(const LaunchState& state) const {
  const SmSet& reserved = gpu_.reserved();
  if (reserved.empty()) return false;
  if (state.subset == kWholeGpu) return reserved.size() == gpu_.spec().sms;
  return subsets_[state.subset].sms.is_within(reserved);
}

bool BlockScheduler::may_block(const LaunchState& state) const {
  // Without head-of-line blocking a launch that was refused stays so until an SM changes. With it,
  // a launch whose SMs are all reserved stays refused until a launch that reserves some has been
  // placed whole; until then it holds up nothing that is not held up anyway.
  return !order_.head_of_line || (state.subset != kWholeGpu && all_reserved(state));
}

void BlockScheduler::move_to_blocked(const QueueKey& key) {
  const auto line = static_cast<size_t>(launches_[key.launch].subset - kWholeGpu);
  if (blocked_.size() <= line) blocked_.resize(line + 1);
  blocked_[line].insert(waiting_.extract(key));
}

void BlockScheduler::unblock_all() {
  for (Queue& line : blocked_) waiting_.merge(line);
}

void BlockScheduler::unblock_if_any_sm_changed() {
  if (order_.head_of_line || changes_seen_ == gpu_.changes()) return;
  unblock_all();
  changes_seen_ = gpu_.changes();
}

void BlockScheduler::unblock_next_for(const SmSet& sms) {
  if (!order_.head_of_line) return;
  for (size_t line = 0; line < blocked_.size(); ++line) {
    Queue& blocked = blocked_[line];
    if (blocked.empty() || !subsets_[static_cast<int32_t>(line) + kWholeGpu].sms.intersects(sms))
      continue;
    waiting_.insert(blocked.extract(blocked.begin()));
  }
}

void BlockScheduler::report_unvisited(const Cause& cause, const Pass& pass) {
  const auto report = [&](const int32_t launch) {
    if (launches_[launch].last_pass == pass_) return;
    pass.observer.on_refuse(launch, cause.refusal, cause.behind);
  };
  // A pass that ends before the scheduler has turned reports no cause for new launches.
  if (cause.refusal == Refusal::turn && !pass.options.every_refusal) {
    std::erase_if(new_launches_,
                  [&](const int32_t launch) { return launches_[launch].last_pass == pass_; });
    return;
  }
  // A launch that was visited before the scheduler turned to another one has not reported this
  // cause.
  const bool may_be_new = cause != cause_ || cause.refusal == Refusal::turn;
  if (cause.refusal != Refusal::none && pass.options.every_refusal && may_be_new) {
    for (const QueueKey& key : waiting_) report(key.launch);
  } else if (cause.refusal != Refusal::none) {
    for (size_t k = 0; k < new_launches_.size(); ++k)
      report(new_launches_[k]);  // there may be more by then
  }
  new_launches_.clear();
  cause_ = cause;
}

Refusal BlockScheduler::try_to_place(const int32_t launch, const Pass& pass) {
  LaunchState& state = launches_[launch];
  if (all_reserved(state)) return Refusal::queue;
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
  const std::span<int32_t> sms = output_sms(launch, pass);
  const size_t count = choose_sms(launch, pass, commit, sms);
  const PlacedBlocks placed{launch, state.placed, sms.first(count), footprints_};
  state.placed += static_cast<int32_t>(count);
  if (state.leaving == Leaving::one_by_one) sort_footprints_by_block(placed.sms);
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

size_t BlockScheduler::choose_sms(const int32_t launch, const Pass& pass, const Commit& commit,
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

bool BlockScheduler::has_room_for_all(const LaunchState& state) const {
  // The room of all SMs together is a fast upper bound.
  if (room_falls_by_one(gpu_.spec()) && rooms_.total_room() < state.blocks) return false;
  return count_fitting(model_, state.demand, state.blocks, gpu_) == state.blocks;
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

std::span<int32_t> BlockScheduler::output_sms(const int32_t launch, const Pass& pass) {
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
  const size_t count = std::min(waiting, static_cast<size_t>(spec.sms) * spec.blocks_per_sm);
  if (sms_.size() < count) sms_.resize(count);
  return std::span(sms_).first(count);
}

void BlockScheduler::sort_footprints_by_block(const std::span<const int32_t> sms) {
  // Counting sort: blocks of a launch on one SM are alike, so an SM's footprints go to its blocks
  // in order.
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
