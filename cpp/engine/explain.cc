#include "engine/explain.h"

#include <algorithm>

#include "engine/engine.h"
#include "model/trace.h"

namespace tbsched {
namespace {

class Comparison final : public Listener {
 public:
  explicit Comparison(const std::span<const std::vector<int32_t>> seen) : seen_(seen) {}

  void on_launch(const int32_t launch, const int32_t blocks, const Demand&,
                 const GpuState&) override {
    newest_ = launch;
    placed_.assign(blocks, kNotPlaced);
  }
  void on_place(const BlockScheduler::Placed& placed) override {
    if (placed.launch != newest_) return;
    std::ranges::copy(placed.sms, placed_.begin() + placed.first_block);
  }
  void on_settled(const int32_t launch) override {
    same_ = same_ && std::ranges::equal(placed_, seen_[launch]);
  }

  bool same() const { return same_; }

 private:
  std::span<const std::vector<int32_t>> seen_;
  std::vector<int32_t> placed_;
  int32_t newest_ = -1;
  bool same_ = true;
};

bool explains(const Model& model, const Sequence& sequence, const InitialState state,
              const std::span<const std::vector<int32_t>> smid) {
  Comparison comparison(smid);
  Engine engine(model, state, {&comparison});
  for (const Event& event : sequence) {
    engine.step(event);
    if (!comparison.same()) return false;
  }
  return true;
}

}  // namespace

std::optional<size_t> explaining_state(const Model& model, const Sequence& sequence,
                                       const std::span<const InitialState> states,
                                       const std::span<const std::vector<int32_t>> smid) {
  const auto found = std::ranges::find_if(
      states, [&](const InitialState& state) { return explains(model, sequence, state, smid); });
  if (found == states.end()) return std::nullopt;
  return static_cast<size_t>(found - states.begin());
}

}  // namespace tbsched
