// A policy of the program's own: each block goes to the last SM that has room.
#include <cstdint>
#include <iostream>
#include <memory>
#include <span>
#include <vector>

#include "rtx3090.h"
#include "tbsched/tbsched.h"

namespace {

class LastFit final : public tbsched::Policy {
 public:
  size_t place(const tbsched::Demand& demand, const tbsched::GpuState& gpu, tbsched::Rooms&,
               const tbsched::Commit& commit, const std::span<int32_t> sms) override {
    return tbsched::place_one_by_one(sms, commit, [&] {
      int32_t sm = gpu.spec().sms - 1;
      while (sm >= 0 && gpu.room(sm, demand).blocks == 0) --sm;
      return sm;
    });
  }
};

}  // namespace

int main() {
  const tbsched::Model model(rtx3090(),
                             [](tbsched::InitialState) { return std::make_unique<LastFit>(); });
  const tbsched::Launch launch{.blocks = 4, .threads = 1024, .registers = 32};
  const std::vector<tbsched::LaunchTrace> traces = tbsched::predict(model, {launch}, {});
  for (const int32_t sm : traces.at(0).smid) std::cout << sm << ' ';
  std::cout << '\n';
}
