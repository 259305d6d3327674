#include "tbsched/sim/paces.h"

#include <algorithm>

namespace tbsched {
namespace {

// Returns the entry of a launch in the contents of an SM, or where to insert it.
SmContents::iterator entry_of(SmContents& contents, const int32_t launch) {
  return std::ranges::lower_bound(contents, launch, {}, &SmContents::value_type::first);
}

// Returns the contents of SMs if a launch has so many blocks on so many SMs, evenly.
std::vector<EqualSms> spread(const int32_t launch, const int32_t blocks, const int32_t sms) {
  std::vector<EqualSms> alike;
  const auto add = [&](const int32_t count, const int32_t per_sm) {
    if (count > 0 && per_sm > 0) alike.push_back({{{launch, per_sm}}, count});
  };
  add(blocks % sms, blocks / sms + 1);
  add(sms - blocks % sms, blocks / sms);
  return alike;
}

}  // namespace

Paces::Paces(const Neighbours& neighbours, const int32_t sms)
    : contention_(neighbours.launches, neighbours.sharing, sms),
      launches_(neighbours.launches.size()),
      contents_(sms),
      rows_(sms) {}

void Paces::set_alone_spread(const int32_t launch, const int32_t blocks, const int32_t sms) {
  launches_[launch] = {blocks, sms};
  contention_.correct_for_own_blocks(launch, spread(launch, blocks, sms));
}

std::map<int32_t, double> Paces::times_alone(const int32_t launch,
                                             const std::map<int32_t, int32_t>& sms,
                                             const bool placed_whole) {
  const AloneSpread& spread_alone = launches_[launch];
  const int32_t max_per_sm = (spread_alone.blocks + spread_alone.sms - 1) / spread_alone.sms;
  std::map<int32_t, int32_t> alike;
  for (const auto& [blocks, count] : sms) alike[std::min(blocks, max_per_sm)] += count;
  std::vector<EqualSms> alone;
  for (const auto& [blocks, count] : alike) alone.push_back({{{launch, blocks}}, count});
  if (!placed_whole) alone = spread(launch, spread_alone.blocks, spread_alone.sms);
  const std::vector<double>& times = contention_.times(alone);
  std::map<int32_t, double> time_of_blocks;
  for (const auto& [blocks, count] : sms) {
    size_t row = 0;
    while (row + 1 < alone.size() && alone[row].contents[0].second < std::min(blocks, max_per_sm)) {
      ++row;
    }
    time_of_blocks[blocks] = placed_whole ? times[row] : *std::ranges::max_element(times);
  }
  return time_of_blocks;
}

void Paces::change_count(const int32_t launch, const int32_t sm, const int32_t by) {
  if (!knows(launch)) return;
  SmContents& contents = contents_[sm];
  auto entry = entry_of(contents, launch);
  if (entry == contents.end() || entry->first != launch) {
    entry = contents.insert(entry, {launch, 0});
  }
  entry->second += by;
  if (entry->second == 0) contents.erase(entry);
  changed_ = true;
}

void Paces::settle(const std::function<bool(int32_t launch)>& placed_whole) {
  changed_ = false;
  std::map<SmContents, int32_t> alike;
  for (const SmContents& contents : contents_) {
    if (!contents.empty()) ++alike[contents];
  }
  std::vector<EqualSms> rows;
  std::map<int32_t, std::map<int32_t, int32_t>> sms_of;  // by launch and by its blocks there
  for (const auto& [contents, sms] : alike) {
    rows.push_back({contents, sms});
    for (const auto& [launch, count] : contents) sms_of[launch][count] += sms;
  }
  std::map<int32_t, std::map<int32_t, double>> alone;
  for (const auto& [launch, sms] : sms_of) {
    alone[launch] = times_alone(launch, sms, placed_whole(launch));
  }
  const std::vector<double>& times = contention_.times(rows);
  paces_.clear();
  size_t entry = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    for (const auto& [launch, count] : rows[row].contents) {
      paces_[{launch, static_cast<int32_t>(row)}] = alone[launch][count] / times[entry++];
    }
  }
  for (size_t sm = 0; sm < contents_.size(); ++sm) {
    if (contents_[sm].empty()) continue;
    rows_[sm] = static_cast<int32_t>(std::distance(alike.begin(), alike.find(contents_[sm])));
  }
}

double Paces::pace(const int32_t launch, const int32_t sm) const {
  return knows(launch) ? paces_.at({launch, rows_[sm]}) : 1;
}

}  // namespace tbsched
