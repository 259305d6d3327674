#include "tbsched/engine/neighbours/paces.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tbsched {

Paces::Paces(const Neighbours& neighbours, const int32_t sms)
    : of_launch_(neighbours.of_launch),
      contention_(neighbours.kernels, neighbours.sharing, sms),
      expected_(neighbours.kernels.size()),
      alone_(neighbours.kernels.size(), 1),
      blocks_(sms, std::vector<int32_t>(neighbours.kernels.size())),
      rows_(sms) {}

int32_t Paces::kernel(const int32_t launch) const {
  return static_cast<size_t>(launch) < of_launch_.size() ? of_launch_[launch] : -1;
}

void Paces::expect(const int32_t launch, const std::span<const Alike> alone) {
  const int32_t own = kernel(launch);
  if (own < 0 || expected_[own]) return;
  expected_[own] = true;
  contention_.measured_alone(own, alone);
  const std::vector<double>& times = contention_.times(alone);
  double work = 0, sum = 0;
  for (size_t row = 0; row < alone.size(); ++row) {
    const double blocks = static_cast<double>(alone[row].sms) * alone[row].blocks[own];
    work += blocks;
    sum += blocks * times[row * kernels() + own];
  }
  alone_[own] = sum / work;
}

void Paces::change(const int32_t launch, const int32_t sm, const int32_t by) {
  const int32_t own = kernel(launch);
  if (own < 0) return;
  blocks_[sm][own] += by;
  changed_ = true;
}

void Paces::settle() {
  changed_ = false;
  std::map<std::vector<int32_t>, int32_t> alike;
  for (const std::vector<int32_t>& blocks : blocks_) {
    if (std::ranges::any_of(blocks, [](const int32_t count) { return count > 0; })) ++alike[blocks];
  }
  std::vector<Alike> rows;
  for (const auto& [blocks, sms] : alike) rows.push_back({blocks, sms});
  times_ = contention_.times(rows);
  for (size_t sm = 0; sm < blocks_.size(); ++sm) {
    const auto found = alike.find(blocks_[sm]);
    if (found != alike.end()) rows_[sm] = std::distance(alike.begin(), found);
  }
}

double Paces::pace(const int32_t launch, const int32_t sm) const {
  const int32_t own = kernel(launch);
  return own < 0 ? 1 : alone_[own] / times_[rows_[sm] * kernels() + own];
}

}  // namespace tbsched
