#include "tbsched/hardware/gpu/partitions.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "tbsched/hardware/sm/units.h"
#include "tbsched/program/refuse.h"

namespace tbsched {
namespace {

using Tpcs = std::vector<int32_t>;

// The TPCs that nobody has yet: of each GPC, then each singleton by itself.
std::vector<Tpcs> all_tpcs(const DeviceSpec& spec) {
  std::vector<Tpcs> left(spec.gpcs.begin(), spec.gpcs.end());
  std::vector<bool> in_gpc(ceil_div(spec.sms, spec.sms_per_tpc));
  for (const Tpcs& gpc : left) {
    for (const int32_t tpc : gpc) in_gpc[tpc] = true;
  }
  for (size_t tpc = 0; tpc < in_gpc.size(); ++tpc) {
    if (!in_gpc[tpc]) left.push_back({static_cast<int32_t>(tpc)});
  }
  return left;
}

// Where pieces of so many TPCs begin, row by row.
struct Piece {
  size_t gpc;
  size_t first;
};
std::vector<Piece> pieces_of(const std::vector<Tpcs>& left, const size_t size) {
  std::vector<Piece> pieces;
  for (size_t first = 0, found = 1; found > 0; first += size) {
    found = 0;
    for (size_t gpc = 0; gpc < left.size(); ++gpc) {
      if (left[gpc].size() < first + size) continue;
      pieces.push_back({gpc, first});
      ++found;
    }
  }
  return pieces;
}

// Deals pieces of `size` in whole rounds; groups lack `lacking` TPCs each. Returns how many then.
size_t deal(std::vector<Tpcs>& left, std::vector<Tpcs>& groups, const size_t size,
            const size_t lacking) {
  const std::vector<Piece> pieces = pieces_of(left, size);
  const size_t rounds = std::min(pieces.size() / groups.size(), lacking / size);
  std::vector<size_t> dealt(left.size());  // of each GPC, from its first
  for (size_t k = 0; k < rounds * groups.size(); ++k) {
    const auto begin = left[pieces[k].gpc].begin() + static_cast<std::ptrdiff_t>(pieces[k].first);
    Tpcs& group = groups[k % groups.size()];
    group.insert(group.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
    dealt[pieces[k].gpc] += size;
  }
  for (size_t gpc = 0; gpc < left.size(); ++gpc) {
    left[gpc].erase(left[gpc].begin(), left[gpc].begin() + static_cast<std::ptrdiff_t>(dealt[gpc]));
  }
  return lacking - rounds * size;
}

std::vector<int32_t> sms_of(Tpcs tpcs, const DeviceSpec& spec) {
  std::ranges::sort(tpcs);
  std::vector<int32_t> sms;
  for (const int32_t tpc : tpcs) {
    const int32_t first = tpc * spec.sms_per_tpc;
    for (int32_t sm = first; sm < std::min(first + spec.sms_per_tpc, spec.sms); ++sm) {
      sms.push_back(sm);
    }
  }
  return sms;
}

void check(const DeviceSpec& spec, const SplitRequest& request) {
  if (spec.gpcs.empty() || spec.coscheduled_sms == 0) {
    refuse("split_sms: of " + spec.name + " it is not known " +
           (spec.gpcs.empty() ? "which TPCs are in which GPC (gpcs)"
                              : "how many SMs are coscheduled (coscheduled_sms)"));
  }
  if (request.ignore_coscheduling && request.max_cluster) {
    refuse("split_sms: ignore_coscheduling and max_cluster exclude each other");
  }
  if (request.min_sms < 0 || request.min_sms > spec.sms) {
    refuse("split_sms: min_sms: " + std::to_string(request.min_sms) + " is outside 0.." +
           std::to_string(spec.sms) + ", the SMs of " + spec.name);
  }
  if (request.groups && *request.groups < 1) {
    refuse("split_sms: groups: " + std::to_string(*request.groups) + " is less than 1");
  }
}

}  // namespace

Split split_sms(const DeviceSpec& spec, const SplitRequest& request) {
  check(spec, request);
  const int32_t unit = request.ignore_coscheduling ? spec.sms_per_tpc : spec.coscheduled_sms;
  const int32_t sms = std::min(std::max(unit, round_up(request.min_sms, unit)), spec.sms);
  std::vector<Tpcs> left = all_tpcs(spec);

  size_t size = unit / spec.sms_per_tpc;
  // At least one piece of each group is coscheduled.
  const auto pieces = static_cast<int32_t>(pieces_of(left, size).size());
  const int32_t most = std::min(spec.sms / sms, pieces);
  std::vector<Tpcs> groups(std::min(request.groups.value_or(most), most));
  if (request.max_cluster) {
    for (const Tpcs& gpc : spec.gpcs) size = std::max(size, gpc.size());
  }
  size_t lacking = sms / spec.sms_per_tpc;
  for (; size > 0 && !groups.empty(); --size) lacking = deal(left, groups, size, lacking);

  Split split;
  for (Tpcs& group : groups) split.groups.push_back(sms_of(std::move(group), spec));
  Tpcs rest;
  for (const Tpcs& gpc : left) rest.insert(rest.end(), gpc.begin(), gpc.end());
  split.rest = sms_of(std::move(rest), spec);
  return split;
}

}  // namespace tbsched
