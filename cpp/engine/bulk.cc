#include "engine/bulk.h"

#include <algorithm>
#include <variant>

#include "engine/engine.h"
#include "engine/explain.h"
#include "engine/parallel.h"
#include "model/trace.h"

namespace tbsched {
namespace {

class Places final : public Listener {
 public:
  explicit Places(std::vector<int32_t>& smid) : smid_(smid) {}

  void on_launch(const int32_t launch, const int32_t blocks, const Demand&,
                 const GpuState&) override {
    newest_ = launch;
    begin_ = smid_.size();
    smid_.resize(begin_ + static_cast<size_t>(blocks), kNotPlaced);
  }
  void on_place(const BlockScheduler::Placed& placed) override {
    if (placed.launch != newest_) return;
    std::ranges::copy(placed.sms,
                      smid_.begin() + static_cast<ptrdiff_t>(begin_) + placed.first_block);
  }

  bool whole() const { return smid_.empty() || smid_.back() != kNotPlaced; }

 private:
  std::vector<int32_t>& smid_;
  int32_t newest_ = -1;
  size_t begin_ = 0;
};

UntilRefused predict_until_refused(const Model& model, const Sequence& sequence,
                                   const InitialState state) {
  UntilRefused found;
  Places places(found.smid);
  Engine engine(model, state, {&places});
  for (const Event& event : sequence) {
    if (!places.whole()) break;
    engine.step(event);
    ++found.events;
  }
  return found;
}

std::vector<std::vector<int32_t>> by_launch(const Sequence& sequence,
                                            const std::span<const int32_t> smid) {
  std::vector<std::vector<int32_t>> rows;
  auto next = smid.begin();
  for (const Event& event : sequence) {
    const auto* const launch = std::get_if<Launch>(&event);
    if (launch == nullptr) continue;
    const auto end = next + std::min<ptrdiff_t>(launch->blocks, smid.end() - next);
    rows.emplace_back(next, end);
    next = end;
  }
  return rows;
}

}  // namespace

std::vector<UntilRefused> predict_until_refused(const Model& model, const EventTable& table,
                                                const InitialState state, const int32_t threads) {
  std::vector<UntilRefused> found(table.sequences());
  for_each_sequence(found.size(), threads, [&](const size_t k) {
    found[k] = predict_until_refused(model, table.sequence(k), state);
  });
  return found;
}

std::vector<int32_t> explaining_states(const Model& model, const EventTable& table,
                                       const std::span<const InitialState> states,
                                       const std::span<const std::span<const int32_t>> seen,
                                       const int32_t threads) {
  std::vector<int32_t> found(table.sequences(), -1);
  for_each_sequence(found.size(), threads, [&](const size_t k) {
    const Sequence sequence = table.sequence(k);
    const auto index = explaining_state(model, sequence, states, by_launch(sequence, seen[k]));
    if (index) found[k] = static_cast<int32_t>(*index);
  });
  return found;
}

}  // namespace tbsched
