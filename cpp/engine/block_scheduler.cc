#include "engine/block_scheduler.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "sm/cluster_domains.h"

namespace tbsched {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw std::invalid_argument(message); }

}  // namespace

BlockScheduler::BlockScheduler(const Model& model, const InitialState state)
    : model_(model),
      gpu_(model.device()),
      order_(model.order()),
      policy_(model.start(state)),
      rooms_(model.device()) {}

int32_t BlockScheduler::add(const Launch& launch, const Leaving leaving) {
  const auto index = static_cast<int32_t>(launches_.size());
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
  const Demand demand = demand_of(launch, model_.device());
  if (demand.blocks_per_sm == 0) {
    const Room room =
        model_.device().empty_sm.room(spec, demand, spec.shared_memory_configurations.back());
    refuse(who + "one block is more than an empty SM of " + spec.name +
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

void BlockScheduler::check_cluster(const Launch& launch, const std::string& who) const {
  if (launch.cluster == 1) return;
  const std::string got = "; got " + std::to_string(launch.cluster);
  if (launch.cluster < 1 || launch.blocks % launch.cluster != 0) {
    refuse(who + "cluster: must be positive and divide blocks" + got);
  }
  if (!model_.policy().places_clusters) {
    refuse(who + "cluster: policy '" + std::string(model_.policy().name) +
           "' places single blocks only" + got);
  }
  if (const int32_t largest = largest_cluster(model_.device().cluster_domains);
      launch.cluster > largest) {
    refuse(who + "cluster: an idle " + gpu_.spec().name + " takes up to " +
           std::to_string(largest) + " blocks" + got);
  }
}

void BlockScheduler::enqueue(const int32_t launch) {
  const auto rank = [&](const int32_t k) { return order_.by_priority ? launches_[k].priority : 0; };
  waiting_.insert(std::ranges::upper_bound(waiting_, rank(launch), {}, rank), launch);
}

// A launch that does not fit holds up those behind it: all of them, or, where it is one of clusters
// that no singleton TPC can take, only in the GPCs.
void BlockScheduler::place(const Hooks& hooks) {
  int32_t in_the_way = -1;
  int32_t holds_gpcs = -1;
  for (const int32_t launch : waiting_) {
    Refusal refusal = hooks.gate(launch);
    int32_t behind = -1;
    if (refusal == Refusal::none && in_the_way >= 0) {
      refusal = Refusal::queue;
      behind = in_the_way;
    } else if (refusal == Refusal::none) {
      refusal = try_to_place(launch, hooks);
      if (refusal == Refusal::queue) behind = holds_gpcs;
      if (refusal != Refusal::none && order_.head_of_line) {
        (launches_[launch].in_gpcs_only ? holds_gpcs : in_the_way) = launch;
        gpu_.hold_gpcs(holds_gpcs >= 0);
      }
    }
    if (refusal != Refusal::none) hooks.refused(launch, refusal, behind);
  }
  gpu_.hold_gpcs(false);
  std::erase_if(waiting_, [&](const int32_t launch) { return placed_whole(launch); });
}

Refusal BlockScheduler::try_to_place(const int32_t launch, const Hooks& hooks) {
  Kernel& kernel = launches_[launch];
  if (!gpu_.admits(kernel.demand)) return Refusal::local_memory;
  footprints_.clear();
  footprints_.reserve(std::min<size_t>(kernel.waiting(), gpu_.spec().topology.sms()));
  const Commit commit(gpu_, kernel.demand, kernel.leaving == Leaving::one_by_one, footprints_);
  const std::span<int32_t> sms = memory(launch, hooks);
  const size_t count = policy_->place(kernel.demand, gpu_, rooms_, commit, sms);
  const Placed placed{launch, kernel.placed, sms.first(count), footprints_};
  kernel.placed += static_cast<int32_t>(count);
  if (kernel.leaving == Leaving::one_by_one) sort_by_block(placed.sms);
  Refusal refusal = Refusal::none;
  if (kernel.waiting() > 0) {
    rooms_.ask(gpu_, kernel.demand);
    refusal = rooms_.commonest_limiter();
  }
  if (count > 0) hooks.placed(placed);
  return refusal;
}

// As many as wait, or as the GPU holds at most.
std::span<int32_t> BlockScheduler::memory(const int32_t launch, const Hooks& hooks) {
  const Kernel& kernel = launches_[launch];
  const auto waiting = static_cast<size_t>(kernel.waiting());
  if (hooks.memory) {
    const std::span<int32_t> given = hooks.memory(launch, kernel.placed);
    if (!given.empty()) return given.first(waiting);
  }
  const DeviceSpec& spec = gpu_.spec();
  const size_t most = std::min(waiting, spec.topology.tpc_of_sm.size() * spec.blocks_per_sm);
  if (sms_.size() < most) sms_.resize(most);
  return std::span(sms_).first(most);
}

// Blocks of a launch on one SM are alike, so that SM's footprints go to them in order.
void BlockScheduler::sort_by_block(const std::span<const int32_t> sms) {
  if (sms.size() < 2) return;
  end_of_sm_.assign(gpu_.spec().topology.sms(), 0);
  for (const int32_t sm : sms) ++end_of_sm_[sm];
  std::exclusive_scan(end_of_sm_.begin(), end_of_sm_.end(), end_of_sm_.begin(), 0);
  by_sm_.resize(sms.size());
  for (const Footprint& footprint : footprints_) by_sm_[end_of_sm_[footprint.sm]++] = footprint;
  for (size_t block = sms.size(); block-- > 0;) {
    footprints_[block] = by_sm_[--end_of_sm_[sms[block]]];
  }
}

void BlockScheduler::leave(const int32_t launch, const Footprint& footprint) {
  gpu_.release(launches_[launch].demand, footprint);
}

}  // namespace tbsched
