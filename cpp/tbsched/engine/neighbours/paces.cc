#include "tbsched/engine/neighbours/paces.h"

#include <algorithm>

namespace tbsched {
namespace {

// Where a launch is in what an SM holds, or would be.
Held::iterator place_of(Held& held, const int32_t launch) {
  return std::ranges::lower_bound(held, launch, {}, &Held::value_type::first);
}

std::vector<Alike> spread(const int32_t launch, const int32_t blocks, const int32_t sms) {
  std::vector<Alike> alike;
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
  launches_[launch] = {blocks, sms, 0};
  contention_.measured_alone(launch, spread(launch, blocks, sms));
}

// How many times as long so many blocks take, in the mean, as with nobody beside them.
double Paces::time_alone(const int32_t launch, const int32_t blocks) {
  const std::vector<Alike> alone = spread(launch, blocks, launches_[launch].sms);
  const std::vector<double>& times = contention_.times(alone);
  double sum = 0;
  for (size_t row = 0; row < alone.size(); ++row) {
    sum += times[row] * alone[row].sms * alone[row].held[0].second;
  }
  return sum / blocks;
}

void Paces::change(const int32_t launch, const int32_t sm, const int32_t by) {
  if (!knows(launch)) return;
  Held& held = held_[sm];
  auto own = place_of(held, launch);
  if (own == held.end() || own->first != launch) own = held.insert(own, {launch, 0});
  own->second += by;
  launches_[launch].here += by;
  if (own->second == 0) held.erase(own);
  changed_ = true;
}

void Paces::settle(const std::function<bool(int32_t launch)>& placed_whole) {
  changed_ = false;
  std::map<Held, int32_t> alike;
  for (const Held& held : held_) {
    if (!held.empty()) ++alike[held];
  }
  std::vector<Alike> rows;
  std::map<int32_t, double> before;  // by launch
  for (const auto& [held, sms] : alike) {
    rows.push_back({held, sms});
    for (const auto& [launch, count] : held) before[launch] = 1;
  }
  for (auto& [launch, time] : before) {
    const Launched& own = launches_[launch];
    time = time_alone(launch, placed_whole(launch) ? std::min(own.here, own.most) : own.most);
  }
  const std::vector<double>& times = contention_.times(rows);
  paces_.clear();
  size_t entry = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    for (const auto& [launch, count] : rows[row].held) {
      paces_[{launch, static_cast<int32_t>(row)}] = before[launch] / times[entry++];
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
