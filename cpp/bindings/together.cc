#include "bindings/together.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/events.h"
#include "bindings/signals.h"
#include "tbsched/engine/together/capacity.h"
#include "tbsched/engine/together/coresident.h"
#include "tbsched/engine/together/histories/witness.h"

namespace py = pybind11;

namespace tbsched {
namespace {

std::vector<Launch> launches_of(const Sequence& sequence) {
  std::vector<Launch> launches;
  for (const Event& event : sequence) {
    const auto* const launch = std::get_if<Launch>(&event);
    if (launch == nullptr) throw std::invalid_argument("launches: one of them is another event");
    launches.push_back(*launch);
  }
  return launches;
}

py::tuple capacity_in_python(const Model& model, const Sequence& sequence,
                             const InitialState state) {
  FreeRoom found;
  {
    const py::gil_scoped_release unlocked;
    std::vector<Launch> beside = launches_of(sequence);
    if (beside.empty()) throw std::invalid_argument("launches: there is none");
    const Launch asked = std::move(beside.back());
    beside.pop_back();
    found = capacity(model, beside, asked, state);
  }
  std::vector<uint8_t> refusals;
  for (const Refusal refusal : found.refusals) refusals.push_back(static_cast<uint8_t>(refusal));
  return py::make_tuple(to_array(std::move(found.by_sm)), to_array(std::move(refusals)));
}

// The number of a state among those of the model.
size_t index_of(const InitialState& state, const Model& model) {
  return static_cast<size_t>(std::ranges::find(model.states(), state) - model.states().begin());
}

// A play takes microseconds, and Python's lock perhaps as long.
std::function<void()> signals_now_and_then() {
  using Clock = std::chrono::steady_clock;
  return [asked = Clock::now()]() mutable {
    if (Clock::now() - asked < std::chrono::milliseconds(50)) return;
    python_signals();
    asked = Clock::now();
  };
}

py::tuple coresident_in_python(const Model& model, const Sequence& sequence,
                               std::vector<std::vector<int32_t>> groups,
                               const std::vector<std::pair<int32_t, int32_t>>& after,
                               const int64_t plays, const bool only_to_prove) {
  TogetherAnswer answer;
  {
    const py::gil_scoped_release unlocked;
    TogetherQuestion question{launches_of(sequence), std::move(groups), {}, plays, only_to_prove};
    for (const auto& [first, second] : after) question.after.push_back({first, second});
    answer = coresident(model, question, signals_now_and_then());
  }
  py::list full_sms;
  for (const FullSms& full : answer.full_sms) {
    full_sms.append(py::make_tuple(full.launch, full.most, full.needed));
  }
  py::list steps;
  for (const Step& step : answer.witness) steps.append(py::make_tuple(step.launch, step.leaving));
  return py::make_tuple(kVerdictNames[static_cast<size_t>(answer.verdict)],
                        kProofNames[static_cast<size_t>(answer.proof)], full_sms, steps,
                        index_of(answer.state, model), answer.group, answer.stranded,
                        name(answer.cause), answer.behind, answer.plays);
}

}  // namespace

void bind_together(py::module_& module) {
  module.def(
      "capacity", &capacity_in_python, py::arg("model"), py::arg("launches"), py::arg("state"),
      "Of the last launch, beside the others in this order: how many of its blocks each SM "
      "takes, int32 (sms,), and the index among CAUSES of what refuses one more there, uint8 "
      "(sms,). However many blocks it has, as many as fit are tried.");
  module.def(
      "coresident", &coresident_in_python, py::arg("model"), py::arg("launches"), py::arg("groups"),
      py::arg("after"), py::arg("plays"), py::arg("only_to_prove"),
      "The verdict (safe, unsafe, undecided) and the proof (none, full_sms, played); for "
      "each launch (launch, most SMs that can be full, SMs that must be); the witness, as "
      "(launch, blocks that leave, none: it arrives), the index of its state, the group, the "
      "launch stranded, the cause, the launch that holds it up or -1; and the sequences "
      "played.");
}

}  // namespace tbsched
