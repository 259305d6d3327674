#include "tbsched/hardware/gpu/clusters.h"

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <span>
#include <tuple>
#include <utility>

namespace tbsched {
namespace {

// Returns the room of an SM for single blocks of the launch's clusters.
ClusterRoom room_on(const int32_t sm, const Demand& demand, const GpuState& gpu) {
  const int32_t blocks = gpu.room(sm, demand).blocks;
  const bool seeks_idle =
      gpu.spec().mechanisms.clusters_seek_idle_sms && !is_balanced(demand, gpu.spec());
  return {blocks > 0 && seeks_idle && gpu.idle(sm), blocks};
}

}  // namespace

bool is_balanced(const Demand& demand, const DeviceSpec& spec) {
  return spec.mechanisms.clusters_balance && demand.blocks_at_minimum == 1;
}

bool takes_clusters(const ClusterDomain& domain, const Demand& demand, const DeviceSpec& spec) {
  const bool shares_sms =
      is_balanced(demand, spec) && (domain.gpc >= 0 || demand.partition != nullptr);
  if (domain.gpc < 0 && !spec.mechanisms.clusters_use_singletons) return false;
  return domain.sms() >= (shares_sms ? 1 : demand.cluster);
}

void ClusterSearch::begin(const ClusterDomain& domain, const Demand& demand, const GpuState& gpu) {
  demand_ = &demand;
  gpu_ = &gpu;
  candidates_.clear();
  tpcs_.clear();
  chosen_.clear();
  fit_.room = {};
  fit_.sms.clear();
  if (!takes_clusters(domain, demand, gpu.spec())) return;
  for (const std::vector<int32_t>& sms : domain.tpcs) {
    const Tpc tpc{candidates_.size(), candidates_.size() + sms.size()};
    for (const int32_t sm : sms) candidates_.push_back({sm, tpc.first, tpc.end});
    update_room(tpc.first, tpc.end);
    tpcs_.push_back(tpc);
  }
  sms_per_tpc_ = tpcs_.front().sms();
  least_sms_ = std::ranges::min(tpcs_ | std::views::transform(&Tpc::sms));
  find_sms();
}

void ClusterSearch::next() {
  for (const Candidate& candidate : chosen_)
    update_room(candidate.first_of_tpc, candidate.end_of_tpc);
  find_sms();
}

void ClusterSearch::fill_without_placing(const std::span<int32_t> by_sm) {
  // The choice depends only on differences of room between SMs. So a sequence of clusters that
  // takes equally much from all SMs is repeated as long as all have room.
  std::vector<Candidate> before;
  while (fit_.room.blocks > 0) {
    before = candidates_;
    size_t blocks = 0;  // of the clusters since `before`
    do {
      for (const int32_t sm : fit_.sms) ++by_sm[sm];
      blocks += fit_.sms.size();
      take_without_placing();
    } while (fit_.room.blocks > 0 && blocks % candidates_.size() != 0);
    if (!has_taken_evenly(before)) continue;
    const auto blocks_per_sm = static_cast<int32_t>(blocks / candidates_.size());
    const int32_t least_room = std::ranges::min(
        candidates_ | std::views::transform([](const Candidate& c) { return c.room.blocks; }));
    const int32_t repeated = std::max(least_room - 1, 0) / blocks_per_sm * blocks_per_sm;
    for (Candidate& candidate : candidates_) {
      candidate.room.blocks -= repeated;
      by_sm[candidate.sm] += repeated;
    }
    for (const Tpc& tpc : tpcs_) update_least_room(tpc.first, tpc.end);
    find_sms();
  }
}

bool ClusterSearch::has_taken_evenly(const std::span<const Candidate> before) const {
  const int32_t taken = before.front().room.blocks - candidates_.front().room.blocks;
  return std::ranges::equal(before, candidates_, [&](const Candidate& was, const Candidate& is) {
    return !was.room.idle && was.room.blocks - is.room.blocks == taken;
  });
}

void ClusterSearch::take_without_placing() {
  for (const int32_t sm : fit_.sms) {
    Candidate& candidate = *std::ranges::lower_bound(candidates_, sm, {}, &Candidate::sm);
    candidate.room = {false, candidate.room.blocks - 1};
  }
  for (const Candidate& candidate : chosen_) {
    update_least_room(candidate.first_of_tpc, candidate.end_of_tpc);
  }
  find_sms();
}

void ClusterSearch::update_room(const size_t first, const size_t end) {
  for (size_t k = first; k < end; ++k) {
    candidates_[k].room = room_on(candidates_[k].sm, *demand_, *gpu_);
  }
  update_least_room(first, end);
}

void ClusterSearch::update_least_room(const size_t first, const size_t end) {
  const std::span tpc = std::span(candidates_).subspan(first, end - first);
  const ClusterRoom least = std::ranges::min_element(tpc, {}, &Candidate::room)->room;
  for (Candidate& candidate : tpc) candidate.least_room_of_tpc = least;
}

void ClusterSearch::choose_first_free(const size_t wanted) {
  for (const Candidate& candidate : candidates_) {
    if (candidate.room.blocks > 0 && chosen_.size() < wanted) chosen_.push_back(candidate);
  }
}

void ClusterSearch::choose_balanced(const size_t wanted) {
  // A heap would be slower: candidates are few, and among equals the first one counts.
  for (size_t block = 0; block < wanted; ++block) {
    Candidate& roomiest = *std::ranges::max_element(candidates_, {}, &Candidate::room);
    if (roomiest.room.blocks == 0) break;
    chosen_.push_back(roomiest);
    --roomiest.room.blocks;
    ++roomiest.taken;
  }
  for (Candidate& candidate : candidates_) {
    candidate.room.blocks += std::exchange(candidate.taken, 0);
  }
  std::ranges::sort(chosen_, {}, [](const Candidate& c) { return std::tuple(c.taken, c.sm); });
}

void ClusterSearch::choose_whole_tpcs_first(const size_t wanted) {
  const auto room = [&](const Tpc& tpc) { return candidates_[tpc.first].least_room_of_tpc; };
  // The order among equals is part of the key: a stable sort would allocate memory. The order of
  // the rest does not matter.
  const auto compared = static_cast<ptrdiff_t>(std::min(tpcs_.size(), wanted / least_sms_ + 1));
  std::ranges::partial_sort(tpcs_, tpcs_.begin() + compared, [&](const Tpc& a, const Tpc& b) {
    return std::tuple(room(b), a.first) < std::tuple(room(a), b.first);
  });
  size_t remaining = wanted;
  // The first TPC that is not taken whole.
  const auto single = std::ranges::find_if(tpcs_, [&](const Tpc& tpc) {
    if (room(tpc).blocks == 0 || tpc.sms() > remaining) return true;
    remaining -= tpc.sms();
    return false;
  });
  if (remaining >= sms_per_tpc_) return;

  const auto append = [&](std::vector<Candidate>& to, const Tpc& tpc) {
    to.insert(to.end(), candidates_.begin() + static_cast<std::ptrdiff_t>(tpc.first),
              candidates_.begin() + static_cast<std::ptrdiff_t>(tpc.end));
  };
  std::ranges::sort(tpcs_.begin(), single, {}, &Tpc::first);
  std::for_each(tpcs_.begin(), single, [&](const Tpc& tpc) { append(chosen_, tpc); });
  if (remaining == 0) return;
  singles_.clear();
  std::for_each(single, tpcs_.end(), [&](const Tpc& tpc) { append(singles_, tpc); });
  std::ranges::sort(singles_, [](const Candidate& a, const Candidate& b) {
    return std::tuple(b.room, b.least_room_of_tpc < b.room, a.sm) <
           std::tuple(a.room, a.least_room_of_tpc < a.room, b.sm);
  });
  for (const Candidate& candidate : singles_) {
    if (candidate.room.blocks > 0 && chosen_.size() < wanted) chosen_.push_back(candidate);
  }
}

void ClusterSearch::find_sms() {
  chosen_.clear();
  fit_.room = {};
  fit_.sms.clear();
  const auto wanted = static_cast<size_t>(demand_->cluster);
  if (is_balanced(*demand_, gpu_->spec())) {
    choose_balanced(wanted);
  } else if (gpu_->spec().mechanisms.clusters_take_whole_tpcs) {
    choose_whole_tpcs_first(wanted);
  } else {
    choose_first_free(wanted);
  }
  if (chosen_.size() < wanted) return;
  fit_.room = std::ranges::min_element(chosen_, {}, &Candidate::room)->room;
  for (const Candidate& candidate : chosen_) fit_.sms.push_back(candidate.sm);
}

}  // namespace tbsched
