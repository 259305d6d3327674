#include "engine/block_scheduler.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "sm/clusters.h"

namespace tbsched {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw std::invalid_argument(message); }

}  // namespace

std::vector<size_t> BlockScheduler::Placed::footprint_of_blocks() const {
  const auto by_sm = [](const size_t count, const auto& sm) {
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, sm);
    return order;
  };
  const auto blocks = by_sm(sms.size(), [&](const size_t block) { return sms[block]; });
  const auto held = by_sm(sms.size(), [&](const size_t k) { return footprints[k].sm; });
  std::vector<size_t> found(sms.size());
  for (size_t k = 0; k < sms.size(); ++k) found[blocks[k]] = held[k];
  return found;
}

BlockScheduler::BlockScheduler(const DeviceSpec& spec, const PolicyRow& policy,
                               const InitialState state)
    : policy_name_(policy.name),
      places_clusters_(policy.places_clusters),
      gpu_(policy.sees(spec)),
      order_(launch_order_named(spec.launch_order)),
      policy_(policy.make(gpu_.spec(), state)) {}

int32_t BlockScheduler::add(const Launch& launch) {
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
  const Demand demand = demand_of(launch, spec);
  if (demand.blocks_per_sm == 0) {
    const Room room = SmState(spec).room(demand, spec.shared_memory_configurations.back());
    refuse(who + "one block is more than an empty SM of " + spec.name +
           " holds: " + std::string(name(room.limiter)));
  }
  launches_.push_back({
      .demand = demand,
      .blocks = launch.blocks,
      .priority = launch.priority,
      .in_gpcs_only = launch.cluster > 1 && !fits_a_singleton(spec.topology, launch.cluster),
  });
  return index;
}

void BlockScheduler::check_cluster(const Launch& launch, const std::string& who) const {
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
  Placed placed{.launch = launch, .first_block = kernel.placed, .sms = {}, .footprints = {}};
  placed.sms = policy_->place(kernel.demand, kernel.waiting(), gpu_, [&](const int32_t sm) {
    placed.footprints.push_back(gpu_.commit(sm, kernel.demand));
  });
  kernel.placed += static_cast<int32_t>(placed.sms.size());
  const Refusal refusal = kernel.waiting() == 0 ? Refusal::none : what_refuses(kernel.demand);
  if (!placed.sms.empty()) hooks.placed(placed);
  return refusal;
}

// What refuses a block on most of the SMs.
Refusal BlockScheduler::what_refuses(const Demand& demand) const {
  std::array<int32_t, kRefusalNames.size()> votes{};
  for (int32_t sm = 0; sm < gpu_.spec().topology.sms(); ++sm) {
    ++votes[static_cast<size_t>(gpu_.room(sm, demand).limiter)];
  }
  return static_cast<Refusal>(std::ranges::max_element(votes) - votes.begin());
}

void BlockScheduler::leave(const int32_t launch, const Footprint& footprint) {
  gpu_.release(launches_[launch].demand, footprint);
}

}  // namespace tbsched
