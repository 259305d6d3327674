#include "bindings/sm_sim.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/signals.h"
#include "tbsched/sm_sim/caches/cache.h"
#include "tbsched/sm_sim/dram/timing_check.h"
#include "tbsched/sm_sim/simulate.h"

namespace py = pybind11;

namespace tbsched {
namespace {

using sm_sim::Command;
using sm_sim::CommandKind;
using sm_sim::Config;

template <typename Value>
using Array = py::array_t<Value, py::array::c_style | py::array::forcecast>;
using Values = std::map<std::string, int64_t>;

// Returns the values of an array, which must outlive the result.
template <typename Value>
std::span<const Value> span_of(const Array<Value>& array) {
  return {array.data(), static_cast<size_t>(array.size())};
}

// Returns the configuration with these values by name; refuses unknown names and invalid values.
Config config_of(const Values& values) {
  Config config;
  size_t known = 0;
  for (const sm_sim::Parameter& parameter : sm_sim::parameters()) {
    const auto value = values.find(std::string(parameter.name));
    if (value == values.end()) continue;
    ++known;
    // A value that does not fit is outside the range of every parameter.
    config.*parameter.member = static_cast<int32_t>(
        std::min<int64_t>(std::max<int64_t>(value->second, INT32_MIN), INT32_MAX));
  }
  if (known != values.size()) {
    for (const auto& [name, value] : values) {
      const auto is_named = [&](const sm_sim::Parameter& row) { return row.name == name; };
      if (std::ranges::none_of(sm_sim::parameters(), is_named)) {
        throw std::invalid_argument("config." + name + ": no such parameter; there are " +
                                    std::to_string(sm_sim::parameters().size()));
      }
    }
  }
  sm_sim::check(config);
  return config;
}

// A scheduler written in Python: an object with `pick`, and perhaps `block_started`.
class PythonScheduler final : public sm_sim::Scheduler {
 public:
  explicit PythonScheduler(py::object scheduler)
      : scheduler_(std::move(scheduler)), wants_blocks_(py::hasattr(scheduler_, "block_started")) {
    if (!py::hasattr(scheduler_, "pick")) {
      throw py::type_error("simulate.scheduler: an object with pick is needed, got " +
                           py::repr(scheduler_).cast<std::string>());
    }
  }

  ~PythonScheduler() override {
    const py::gil_scoped_acquire locked;
    scheduler_ = {};
  }

  int32_t pick(const sm_sim::Situation& now) override {
    const py::gil_scoped_acquire locked;
    const py::object picked =
        scheduler_.attr("pick")(now.ready, now.waiting, now.resident, now.cycle);
    try {
      const auto warp = picked.cast<int32_t>();
      empty_slots_ = warp < 0 ? empty_slots_ + 1 : 0;
      if (empty_slots_ > kMaxEmptySlots) {
        throw std::invalid_argument("scheduler.pick: no warp was picked " +
                                    std::to_string(kMaxEmptySlots) +
                                    " times in a row, though some were ready");
      }
      return warp;
    } catch (const py::cast_error&) {
      throw py::type_error("scheduler.pick: the number of a warp is needed, got " +
                           py::repr(picked).cast<std::string>());
    }
  }

  void block_started(const int32_t place) override {
    if (!wants_blocks_) return;
    const py::gil_scoped_acquire locked;
    scheduler_.attr("block_started")(place);
  }

 private:
  // Far more than a scheduler may wait for a warp's memory: one that never picks ends.
  static constexpr int64_t kMaxEmptySlots = 1'000'000;

  py::object scheduler_;
  bool wants_blocks_;
  int64_t empty_slots_ = 0;
};

// Returns the columns of DRAM commands as arrays.
py::tuple columns_of(const std::vector<Command>& commands) {
  std::vector<uint8_t> kinds, prefetches;
  for (const Command& command : commands) {
    kinds.push_back(static_cast<uint8_t>(command.kind));
    prefetches.push_back(command.prefetch ? 1 : 0);
  }
  return py::make_tuple(column(commands, &Command::cycle), column(commands, &Command::controller),
                        column(commands, &Command::bank), to_array(std::move(kinds)),
                        column(commands, &Command::row), column(commands, &Command::column),
                        to_array(std::move(prefetches)));
}

// Returns the columns of when warps could issue as arrays.
py::tuple columns_of(const std::vector<sm_sim::WarpTime>& warps) {
  using sm_sim::WarpTime;
  return py::make_tuple(column(warps, &WarpTime::core), column(warps, &WarpTime::warp),
                        column(warps, &WarpTime::begin), column(warps, &WarpTime::end));
}

// Runs a workload. Returns what bind_sm_sim() says of sm_simulate.
py::tuple simulate_in_python(const std::pair<int32_t, int32_t> sizes, const Array<int64_t>& rows,
                             const Array<int32_t>& compute, const Array<uint8_t>& access,
                             const Array<uint64_t>& address, const Array<uint8_t>& sectors,
                             const Values& config, const std::string& scheduler,
                             const std::optional<py::function>& make,
                             const Array<int32_t>& cores_of, const bool commands, const bool warps,
                             const bool checked) {
  const sm_sim::Workload workload{sizes.first,      sizes.second,    span_of(rows),
                                  span_of(compute), span_of(access), span_of(address),
                                  span_of(sectors)};
  sm_sim::Options options{.scheduler = sm_sim::scheduler_named(scheduler),
                          .log_commands = commands,
                          .log_warps = warps,
                          .checked = checked,
                          .cores_of = span_of(cores_of),
                          .now_and_then = python_signals};
  if (make) {
    options.make = [&make](const Config&, const sm_sim::CoreShape& shape) {
      const py::gil_scoped_acquire locked;
      return std::make_unique<PythonScheduler>(
          (*make)(shape.core, shape.places, shape.warps_per_block));
    };
  }
  sm_sim::Simulation simulated;
  {
    const Config values = config_of(config);
    const py::gil_scoped_release unlocked;
    simulated = sm_sim::simulate(workload, values, options);
  }
  py::dict counts;
  for (const sm_sim::Counter& counter : sm_sim::counters()) {
    counts[py::str(counter.name.data(), counter.name.size())] =
        simulated.statistics.*counter.member;
  }
  using sm_sim::BlockTime;
  return py::make_tuple(counts, column(simulated.blocks, &BlockTime::core),
                        column(simulated.blocks, &BlockTime::start),
                        column(simulated.blocks, &BlockTime::end), columns_of(simulated.commands),
                        columns_of(simulated.warps));
}

// Returns the columns of the DRAM commands for memory requests.
py::tuple dram_commands_in_python(const Array<int64_t>& cycle, const Array<uint64_t>& address,
                                  const Array<uint8_t>& write, const Values& config,
                                  const bool prefetch) {
  std::vector<sm_sim::MemoryRequest> requests;
  for (py::ssize_t at = 0; at < cycle.size(); ++at) {
    requests.push_back({cycle.at(at), address.at(at), write.at(at) != 0});
  }
  return columns_of(sm_sim::dram_commands(requests, config_of(config), prefetch));
}

// Raises if a command of a controller breaks a constraint of time.
void check_commands_in_python(const Array<int64_t>& cycle, const Array<int32_t>& bank,
                              const Array<uint8_t>& kind, const Array<int64_t>& row,
                              const Values& config) {
  sm_sim::TimingCheck check(config_of(config));
  for (py::ssize_t at = 0; at < cycle.size(); ++at) {
    check.check({cycle.at(at), row.at(at), 0, bank.at(at), 0, static_cast<CommandKind>(kind.at(at)),
                 false});
  }
}

// Returns, for each access, the sectors that hit, the line that left with dirty sectors or -1, and
// these sectors.
py::tuple cache_in_python(const std::pair<int64_t, int32_t> size, const int32_t replacement,
                          const bool hashed, const Array<uint64_t>& lines,
                          const Array<uint8_t>& sectors, const Array<uint8_t>& writes) {
  sm_sim::Cache cache(
      {size.first, size.second, static_cast<sm_sim::Replacement>(replacement), hashed});
  std::vector<uint8_t> hits, dirty;
  std::vector<int64_t> evicted;
  for (py::ssize_t at = 0; at < lines.size(); ++at) {
    const bool write = writes.at(at) != 0;
    const sm_sim::Part part{lines.at(at), sectors.at(at)};
    hits.push_back(cache.touch(part, write));
    const auto victim = hits.back() == part.sectors ? std::nullopt : cache.fill(part, write);
    evicted.push_back(victim ? static_cast<int64_t>(victim->line) : -1);
    dirty.push_back(victim ? victim->sectors : 0);
  }
  return py::make_tuple(to_array(std::move(hits)), to_array(std::move(evicted)),
                        to_array(std::move(dirty)));
}

// Returns (section, name, least, greatest, default, meaning) of each parameter.
py::list parameters_in_python() {
  py::list rows;
  for (const sm_sim::Parameter& parameter : sm_sim::parameters()) {
    rows.append(py::make_tuple(parameter.section, parameter.name, parameter.least,
                               parameter.greatest, Config{}.*parameter.member, parameter.doc));
  }
  return rows;
}

// Returns (name, meaning) of each counter.
py::list counters_in_python() {
  py::list rows;
  for (const sm_sim::Counter& counter : sm_sim::counters()) {
    rows.append(py::make_tuple(counter.name, counter.doc));
  }
  return rows;
}

// Returns (name, summary) of each warp scheduler.
py::list schedulers_in_python() {
  py::list rows;
  for (const sm_sim::SchedulerRow& row : sm_sim::scheduler_table()) {
    rows.append(py::make_tuple(row.name, row.summary));
  }
  return rows;
}

}  // namespace

void bind_sm_sim(py::module_& module) {
  module.def("sm_parameters", &parameters_in_python,
             "Of each parameter (section, name, least, greatest, default, meaning).");
  module.def("sm_counters", &counters_in_python, "Of each counter (name, meaning).");
  module.def("sm_schedulers", &schedulers_in_python, "Of each warp scheduler (name, summary).");
  module.def(
      "sm_simulate", &simulate_in_python, py::arg("sizes"), py::arg("rows"), py::arg("compute"),
      py::arg("access"), py::arg("address"), py::arg("sectors"), py::arg("config"),
      py::arg("scheduler"), py::arg("make"), py::arg("cores_of"), py::arg("commands"),
      py::arg("warps"), py::arg("checked"),
      "Runs a workload; sizes is (warps per block, blocks per core). Returns the counts, the "
      "core, start and end of each block, the columns of the DRAM commands, and when warps "
      "could issue: core, warp, begin, end.");
  module.def("sm_dram_commands", &dram_commands_in_python, py::arg("cycle"), py::arg("address"),
             py::arg("write"), py::arg("config"), py::arg("prefetch"),
             "The columns of the commands: cycle, controller, bank, kind, row, column, prefetch.");
  module.def("sm_check_commands", &check_commands_in_python, py::arg("cycle"), py::arg("bank"),
             py::arg("kind"), py::arg("row"), py::arg("config"),
             "Raises where a command of a controller breaks a constraint.");
  module.def(
      "sm_cache", &cache_in_python, py::arg("size"), py::arg("replacement"), py::arg("hashed"),
      py::arg("lines"), py::arg("sectors"), py::arg("writes"),
      "A cache of (sets, ways). Of each access, the sectors that hit, uint8, which line with "
      "dirty sectors left, int64, or -1, and those sectors, uint8.");
}

}  // namespace tbsched
