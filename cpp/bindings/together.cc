#include "bindings/together.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/events.h"
#include "bindings/signals.h"
#include "tbsched/coresidency/capacity.h"
#include "tbsched/coresidency/coresident.h"
#include "tbsched/coresidency/ended_work.h"
#include "tbsched/coresidency/outcomes/outcome_program.h"

namespace py = pybind11;

namespace tbsched {
namespace {

// Returns the launches of a sequence; refuses other events.
std::vector<Launch> launches_of(const Sequence& sequence) {
  std::vector<Launch> launches;
  for (const Event& event : sequence) {
    const auto* const launch = std::get_if<Launch>(&event);
    if (launch == nullptr) throw std::invalid_argument("launches: one of them is another event");
    launches.push_back(*launch);
  }
  return launches;
}

// Returns, by SM, how many blocks of the last launch fit beside the others, what refuses one more,
// and all that does.
py::tuple capacity_in_python(const Model& model, const Sequence& sequence,
                             const InitialState state) {
  FreeRoom room;
  {
    const py::gil_scoped_release unlocked;
    std::vector<Launch> beside = launches_of(sequence);
    if (beside.empty()) throw std::invalid_argument("launches: there is none");
    const Launch asked = std::move(beside.back());
    beside.pop_back();
    room = capacity(model, beside, asked, state);
  }
  std::vector<uint8_t> refusals;
  for (const Refusal refusal : room.refusals) refusals.push_back(static_cast<uint8_t>(refusal));
  return py::make_tuple(to_array(std::move(room.by_sm)), to_array(std::move(refusals)),
                        to_array(std::move(room.all)));
}

// Returns the index of a state among those of the model.
size_t index_of(const InitialState& state, const Model& model) {
  return static_cast<size_t>(std::ranges::find(model.states(), state) - model.states().begin());
}

constexpr std::array<std::string_view, 4> kWayNames = {"single", "whole_tpcs", "balanced", "other"};

// Returns two arrays: of each outcome the blocks, the room and the barred launches; and by outcome,
// stage and SM the blocks taken, the room left, and whether the TPC was idle.
py::tuple to_python(const SmOutcomes& outcomes) {
  std::vector<int32_t> rows;
  std::vector<int32_t> at;
  size_t stages = 0;
  size_t sms = 1;
  for (const auto& [outcome, least] : outcomes) {
    rows.insert(rows.end(), outcome.blocks.begin(), outcome.blocks.end());
    rows.push_back(least.room);
    rows.push_back(outcome.barred);
    stages = outcome.at.size();
    for (const std::vector<TakenOnSm>& stage : outcome.at) {
      sms = stage.size();
      for (const TakenOnSm& on_sm : stage) {
        at.insert(at.end(), {on_sm.taken, on_sm.room_left, on_sm.was_idle ? 1 : 0});
      }
    }
  }
  return py::make_tuple(to_array(std::move(rows)).reshape({outcomes.size(), kMaxCounted + 2}),
                        to_array(std::move(at)).reshape({outcomes.size(), stages, sms, size_t{3}}));
}

// Returns the outcomes, groups, stages and waiting launches of a program.
py::tuple to_python(const OutcomeProgram& program) {
  py::list outcomes;
  for (const SmOutcomes* const of_unit : program.outcomes) outcomes.append(to_python(*of_unit));
  py::list groups;
  for (const OutcomeProgram::Group& group : program.groups) {
    groups.append(py::make_tuple(group.domain, group.outcomes, group.units.size(),
                                 to_array(std::vector<int32_t>(group.ranks)),
                                 to_array(std::vector<int32_t>(group.positions))));
  }
  py::list stages;
  for (const OutcomeProgram::Stage& stage : program.stages) {
    stages.append(py::make_tuple(kWayNames[static_cast<size_t>(stage.way)], stage.blocks,
                                 stage.parts, stage.on_part, stage.most_room, stage.waits,
                                 stage.waits_whole));
  }
  py::list entering;
  for (const WaitingLaunch& waiting : program.entering) {
    entering.append(py::make_tuple(waiting.blocks, waiting.cluster, waiting.on_tpc, waiting.index));
  }
  return py::make_tuple(outcomes, groups, stages, entering);
}

// Returns a solver that calls a Python function, or none for None. The function returns False if it
// does not know, None if there is no solution, or a solution.
Solver solver_in_python(const py::object& solve) {
  if (solve.is_none()) return nullptr;
  return [&solve](const OutcomeProgram& program) -> Solution {
    const py::gil_scoped_acquire locked;
    const py::object answer = solve(*to_python(program));
    if (answer.is_none()) return NoSolution{};
    if (py::isinstance<py::bool_>(answer)) return NotSolved{};
    return answer.cast<Counts>();
  };
}

// Decides whether groups become resident. Returns what bind_together() says of coresident.
py::tuple coresident_in_python(const Model& model, const Sequence& sequence,
                               std::vector<std::vector<int32_t>> groups,
                               const std::vector<std::pair<int32_t, int32_t>>& after,
                               const int64_t plays, const bool only_to_prove, const double seconds,
                               const py::object& solve) {
  TogetherAnswer answer;
  const Solver solver = solver_in_python(solve);
  {
    const py::gil_scoped_release unlocked;
    TogetherQuestion question{
        launches_of(sequence), std::move(groups), {}, plays, only_to_prove, seconds};
    for (const auto& [first, second] : after) question.after.push_back({first, second});
    answer = coresident(model, question, signals_now_and_then(), solver);
  }
  py::list full_sms;
  for (const FullSms& full : answer.full_sms) {
    full_sms.append(py::make_tuple(full.launch, full.max_full, full.needed));
  }
  py::list steps;
  for (const Step& step : answer.witness) steps.append(py::make_tuple(step.launch, step.leaving));
  return py::make_tuple(kVerdictNames[static_cast<size_t>(answer.verdict)],
                        kProofNames[static_cast<size_t>(answer.proof)], full_sms, steps,
                        index_of(answer.state, model), answer.group, answer.stranded,
                        name(answer.cause), answer.behind, answer.plays);
}

// Returns whether the last of the staying launches is proved to find room; refuses rows that do not
// agree with the launches.
bool finds_room_after_in_python(const Model& model, const Sequence& sequence, const size_t staying,
                                std::vector<std::vector<int32_t>> configured_by,
                                std::vector<std::vector<int32_t>> beside,
                                std::vector<std::vector<int32_t>> on_sm) {
  const py::gil_scoped_release unlocked;
  const EndedWork work{launches_of(sequence), staying, std::move(configured_by), std::move(beside),
                       std::move(on_sm)};
  const auto count = static_cast<int32_t>(work.launches.size());
  if (staying == 0 || staying > work.launches.size() || work.configured_by.size() != staying ||
      work.beside.size() != staying) {
    throw std::invalid_argument("staying: each of that many launches needs a row");
  }
  for (const auto* const rows : {&work.configured_by, &work.beside}) {
    for (const std::vector<int32_t>& row : *rows) {
      if (std::ranges::any_of(row, [&](const int32_t k) { return k < 0 || k >= count; })) {
        throw std::invalid_argument("rows: there is no such launch");
      }
    }
  }
  const auto sms = static_cast<size_t>(model.device().spec.sms);
  if (!work.on_sm.empty() && work.on_sm.size() != sms) {
    throw std::invalid_argument("on_sm: each SM needs a row");
  }
  for (const std::vector<int32_t>& row : work.on_sm) {
    if (row.size() >= staying || row.size() != work.on_sm.front().size()) {
      throw std::invalid_argument("on_sm: fewer launches than stay, of each SM as many");
    }
  }
  return finds_room_after(model, work);
}

}  // namespace

void bind_together(py::module_& module) {
  module.def(
      "capacity", &capacity_in_python, py::arg("model"), py::arg("launches"), py::arg("state"),
      "Of the last launch, beside the others in this order: how many of its blocks each SM "
      "takes, int32 (sms,), and the index among CAUSES of what refuses one more there, uint8 "
      "(sms,), and all that does, a bit of that index each, uint32 (sms,). However many blocks it "
      "has, as many as fit are tried.");
  module.def(
      "coresident", &coresident_in_python, py::arg("model"), py::arg("launches"), py::arg("groups"),
      py::arg("after"), py::arg("plays"), py::arg("only_to_prove"), py::arg("seconds"),
      py::arg("solve"),
      "The verdict (safe, unsafe, undecided) and the proof (none, full_sms, played); for "
      "each launch (launch, most SMs that can be full, SMs that must be); the witness, as "
      "(launch, blocks that leave, none: it arrives), the index of its state, the group, the "
      "launch stranded, the cause, the launch that holds it up or -1; and the sequences "
      "played. `solve` takes the outcomes, groups, stages and waiting launches of an integer "
      "program, and returns False, None or for each group pairs (outcome, units); or it is None.");
  module.def(
      "finds_room_after", &finds_room_after_in_python, py::arg("model"), py::arg("launches"),
      py::arg("staying"), py::arg("configured_by"), py::arg("beside"), py::arg("on_sm"),
      "Whether the last of the launches that stay, the first ones, is proved to find room when the "
      "others have ended. `configured_by`: of each staying launch the numbers of those that may "
      "have configured an SM on which its block is the first that stays; `beside`: of those that "
      "may be on an SM when its blocks come; `on_sm`: of each SM how many blocks it has of each of "
      "the first launches, if that is known.");
}

}  // namespace tbsched
