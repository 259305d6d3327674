#include "tbsched/sim/paces.h"

#include <algorithm>

namespace tbsched {
namespace {

// Returns the place of a launch in the contents of an SM, or where to insert it.
Held::iterator place_of(Held& held, const int32_t launch) {
  return std::ranges::lower_bound(held, launch, {}, &Held::value_type::first);
}

std::vector<EqualSms> spread(const int32_t launch, const int32_t blocks, const int32_t sms) {
  std::vector<EqualSms> alike;
  const auto add = [&](const int32_t some, const int32_t per_sm) {
    if (some > 0 && per_sm > 0) alike.push_back({{{launch, per_sm}}, some});
  };
  add(blocks % sms, blocks / sms + 1);
  add(sms - blocks % sms, blocks / sms);
  return alike;
}

}  // namespace

Paces::Paces(const Neighbours& neighbours, const int32_t sms)
    : contention_(neighbours.launches, neighbours.sharing, sms),
      launches_(neighbours.launches.size()),
      held_(sms),
      rows_(sms) {}

void Paces::expect(const int32_t launch, const int32_t blocks, const int32_t sms) {
  launches_[launch] = {blocks, sms};
  contention_.measured_alone(launch, spread(launch, blocks, sms));
}

// Returns how many times as long the launch's blocks would take as without any other block, if the
// launch were alone, by the number of them on an SM. `sms`: the number of SMs by that number.
std::map<int32_t, double> Paces::times_alone(const int32_t launch,
                                             const std::map<int32_t, int32_t>& sms,
                                             const bool placed_whole) {
  const AloneSpread& own = launches_[launch];
  const int32_t most = (own.most + own.sms - 1) / own.sms;
  std::map<int32_t, int32_t> alike;
  for (const auto& [blocks, count] : sms) alike[std::min(blocks, most)] += count;
  std::vector<EqualSms> alone;
  for (const auto& [blocks, count] : alike) alone.push_back({{{launch, blocks}}, count});
  if (!placed_whole) alone = spread(launch, own.most, own.sms);
  const std::vector<double>& times = contention_.times(alone);
  std::map<int32_t, double> found;
  for (const auto& [blocks, count] : sms) {
    size_t row = 0;
    while (row + 1 < alone.size() && alone[row].held[0].second < std::min(blocks, most)) ++row;
    found[blocks] = placed_whole ? times[row] : *std::ranges::max_element(times);
  }
  return found;
}

void Paces::change(const int32_t launch, const int32_t sm, const int32_t by) {
  if (!knows(launch)) return;
  Held& held = held_[sm];
  auto own = place_of(held, launch);
  if (own == held.end() || own->first != launch) own = held.insert(own, {launch, 0});
  own->second += by;
  if (own->second == 0) held.erase(own);
  changed_ = true;
}

void Paces::settle(const std::function<bool(int32_t launch)>& placed_whole) {
  changed_ = false;
  std::map<Held, int32_t> alike;
  for (const Held& held : held_) {
    if (!held.empty()) ++alike[held];
  }
  std::vector<EqualSms> rows;
  std::map<int32_t, std::map<int32_t, int32_t>> own;  // SMs by launch and by its blocks there
  for (const auto& [held, sms] : alike) {
    rows.push_back({held, sms});
    for (const auto& [launch, count] : held) own[launch][count] += sms;
  }
  std::map<int32_t, std::map<int32_t, double>> before;
  for (const auto& [launch, sms] : own) {
    before[launch] = times_alone(launch, sms, placed_whole(launch));
  }
  const std::vector<double>& times = contention_.times(rows);
  paces_.clear();
  size_t entry = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    for (const auto& [launch, count] : rows[row].held) {
      paces_[{launch, static_cast<int32_t>(row)}] = before[launch][count] / times[entry++];
    }
  }
  for (size_t sm = 0; sm < held_.size(); ++sm) {
    if (held_[sm].empty()) continue;
    rows_[sm] = static_cast<int32_t>(std::distance(alike.begin(), alike.find(held_[sm])));
  }
}

double Paces::pace(const int32_t launch, const int32_t sm) const {
  return knows(launch) ? paces_.at({launch, rows_[sm]}) : 1;
}

}  // namespace tbsched
