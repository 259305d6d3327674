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

// Adjacent TPCs of a GPC. A singleton counts as a GPC of its own.
struct Piece {
  size_t gpc;
  size_t first;  // position of the first TPC in the GPC
  Tpcs tpcs;
};

// Returns all TPCs of the device: a piece for each GPC, then one for each singleton.
std::vector<Piece> all_tpcs(const DeviceSpec& spec) {
  std::vector<Piece> remaining;
  std::vector<bool> in_gpc(ceil_div(spec.sms, spec.sms_per_tpc));
  for (const Tpcs& gpc : spec.gpcs) {
    remaining.push_back({remaining.size(), 0, gpc});
    for (const int32_t tpc : gpc) in_gpc[tpc] = true;
  }
  for (size_t tpc = 0; tpc < in_gpc.size(); ++tpc) {
    if (!in_gpc[tpc]) remaining.push_back({remaining.size(), 0, {static_cast<int32_t>(tpc)}});
  }
  return remaining;
}

// Returns the part of a piece that has `size` TPCs from position `from` on.
Piece part_of(const Piece& whole, const size_t from, const size_t size) {
  const auto begin = whole.tpcs.begin() + static_cast<std::ptrdiff_t>(from);
  return {whole.gpc, whole.first + from, {begin, begin + static_cast<std::ptrdiff_t>(size)}};
}

// Returns the remaining TPCs in pieces of `size` TPCs, row by row: the first piece of each GPC,
// then the second.
std::vector<Piece> pieces_of(const std::vector<Piece>& remaining, const size_t size) {
  std::vector<Piece> pieces;
  for (size_t from = 0, in_row = 1; in_row > 0; from += size) {
    in_row = 0;
    for (const Piece& gpc : remaining) {
      if (gpc.tpcs.size() < from + size) continue;
      pieces.push_back(part_of(gpc, from, size));
      ++in_row;
    }
  }
  return pieces;
}

// Moves pieces of `size` TPCs from `remaining` to the groups, in whole rounds. Each group lacks
// `lacking` TPCs; returns how many each still lacks.
size_t deal(std::vector<Piece>& remaining, std::vector<std::vector<Piece>>& groups,
            const size_t size, const size_t lacking) {
  std::vector<Piece> pieces = pieces_of(remaining, size);
  const size_t rounds = std::min(pieces.size() / groups.size(), lacking / size);
  for (size_t k = 0; k < rounds * groups.size(); ++k) {
    Piece& from = remaining[pieces[k].gpc];
    from = part_of(from, size, from.tpcs.size() - size);
    groups[k % groups.size()].push_back(std::move(pieces[k]));
  }
  return lacking - rounds * size;
}

// Returns the SMs of all pieces, ascending.
std::vector<int32_t> sms_of(const std::vector<Piece>& pieces, const DeviceSpec& spec) {
  std::vector<int32_t> sms;
  for (const Piece& piece : pieces) {
    for (const int32_t tpc : piece.tpcs) {
      const int32_t first = tpc * spec.sms_per_tpc;
      for (int32_t sm = first; sm < std::min(first + spec.sms_per_tpc, spec.sms); ++sm) {
        sms.push_back(sm);
      }
    }
  }
  std::ranges::sort(sms);
  return sms;
}

// Returns a set of these SMs.
SmSet sm_set(const std::vector<int32_t>& sms) {
  SmSet set;
  for (const int32_t sm : sms) set.add(sm);
  return set;
}

// Returns the group that has these pieces, with the parts within which the driver places clusters.
SplitGroup group_of(std::vector<Piece> pieces, const DeviceSpec& spec) {
  SplitGroup group{.sms = sms_of(pieces, spec), .parts = {}};
  if (std::cmp_equal(group.sms.size(), spec.sms)) {
    group.parts.push_back(sm_set(group.sms));
    return group;
  }
  std::ranges::sort(pieces, {},
                    [](const Piece& piece) { return std::pair(piece.gpc, piece.first); });
  bool may_grow = false;  // whether the last part may grow: it is not the first piece of its row
  for (size_t k = 0; k < pieces.size(); ++k) {
    const SmSet sms = sm_set(sms_of({pieces[k]}, spec));
    const bool follows = k > 0 && pieces[k].gpc == pieces[k - 1].gpc &&
                         pieces[k].first == pieces[k - 1].first + pieces[k - 1].tpcs.size();
    if (follows && may_grow) {
      group.parts.back().add(sms);
    } else {
      group.parts.push_back(sms);
    }
    may_grow = follows;
  }
  return group;
}

// Refuses a request that the driver refuses, and a device whose topology is not known.
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
  std::vector<Piece> remaining = all_tpcs(spec);

  size_t size = unit / spec.sms_per_tpc;
  // Each group has at least one coscheduled piece.
  const auto pieces = static_cast<int32_t>(pieces_of(remaining, size).size());
  const int32_t max_groups = std::min(spec.sms / sms, pieces);
  std::vector<std::vector<Piece>> groups(std::min(request.groups.value_or(max_groups), max_groups));
  if (request.max_cluster) {
    for (const Tpcs& gpc : spec.gpcs) size = std::max(size, gpc.size());
  }
  size_t lacking = sms / spec.sms_per_tpc;
  for (; size > 0 && !groups.empty(); --size) lacking = deal(remaining, groups, size, lacking);

  Split split{.groups = {}, .rest = sms_of(remaining, spec)};
  for (std::vector<Piece>& pieces : groups) {
    split.groups.push_back(group_of(std::move(pieces), spec));
  }
  return split;
}

std::optional<std::vector<SmSet>> parts_of(const Partition& partition, const DeviceSpec& spec) {
  if (!partition.split) return std::nullopt;
  const SplitRequest& split_request = *partition.split;
  const bool is_refused = split_request.ignore_coscheduling && split_request.max_cluster;
  if (is_refused || split_request.min_sms > spec.sms || spec.gpcs.empty() ||
      spec.coscheduled_sms == 0) {
    return std::nullopt;
  }
  if (!partition.group) return std::vector{sm_set(partition.sms)};
  Split split = split_sms(spec, split_request);
  if (std::cmp_greater_equal(*partition.group, split.groups.size())) return std::nullopt;
  SplitGroup& group = split.groups[*partition.group];
  if (group.sms != partition.sms) return std::nullopt;
  return std::move(group.parts);
}

}  // namespace tbsched
