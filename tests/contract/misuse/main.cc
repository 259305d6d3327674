// Uses the C++ interface wrongly in the way that is named, on the model of an H200, and prints what
// the exception says: see tests/contract/test_misuse.py. Without a name it prints all.
#include <array>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "h200.h"
#include "tbsched/engine/bulk/bulk.h"
#include "tbsched/engine/bulk/parallel.h"
#include "tbsched/engine/held/held_engine.h"
#include "tbsched/engine/predict.h"
#include "tbsched/program/event_table.h"
#include "tbsched/sim/block_scheduler.h"
#include "tbsched/sim/simulation.h"

namespace {

using tbsched::BlockScheduler;
using tbsched::Copy;
using tbsched::Event;
using tbsched::Footprint;
using tbsched::GraphLaunch;
using tbsched::HeldEngine;
using tbsched::Launch;
using tbsched::Memset;
using tbsched::RecordEvent;
using tbsched::Release;
using tbsched::Sequence;
using tbsched::WaitEvent;

constexpr auto kOneByOne = BlockScheduler::Leaving::one_by_one;

const tbsched::Model& model() {
  static const tbsched::Model model(h200(), "hopper");
  return model;
}

// A scheduler whose launches are kept with their blocks.
struct Simulator : tbsched::Observer {
  void on_place(const tbsched::PlacedBlocks& placed) override {
    footprints.resize(placed.launch + 1);
    auto& own = footprints[placed.launch];
    own.insert(own.end(), placed.footprints.begin(), placed.footprints.end());
    sms.insert(sms.end(), placed.sms.begin(), placed.sms.end());
  }
  int32_t start(const Launch& launch) {
    const int32_t number = scheduler.add(launch, kOneByOne);
    scheduler.enqueue(number);
    scheduler.place(*this);
    return number;
  }

  BlockScheduler scheduler{model(), {}};
  std::vector<std::vector<Footprint>> footprints;
  std::vector<int32_t> sms;
};

void add(const Launch& launch) { Simulator().start(launch); }

void hold(const Sequence& sequence) {
  HeldEngine engine(model(), {}, {});
  for (const Event& event : sequence) engine.step(event);
}

void time(const Sequence& sequence, std::vector<int64_t> issue_ns) {
  predict_timeline(model(), sequence, {}, tbsched::CallTimes{std::move(issue_ns)});
}

const Launch kTimed{.duration_ns = {1000}};

// A launch of a graph of two nodes.
GraphLaunch graph(std::vector<std::array<int32_t, 2>> edges) {
  return {.graph = std::make_shared<const tbsched::Graph>(
              tbsched::Graph{.nodes = {kTimed, kTimed}, .edges = std::move(edges)})};
}

GraphLaunch graph_of(const tbsched::Node& node) {
  return {.graph = std::make_shared<tbsched::Graph>(tbsched::Graph{.nodes = {kTimed, node}})};
}

// The makespan of a graph in which a copy waits for two launches, or is all there is. Python asks
// for the makespan of launches alone.
int64_t makespan(const bool any_launch) {
  const Copy copy{.bytes = 1 << 20, .kind = tbsched::CopyKind::d2h};
  const tbsched::Graph joined{.nodes = {kTimed, kTimed, copy}, .edges = {{0, 2}, {1, 2}}};
  const Sequence sequence{GraphLaunch{.graph = std::make_shared<const tbsched::Graph>(
                                          any_launch ? joined : tbsched::Graph{.nodes = {copy}})}};
  std::vector<int64_t> issue_ns(any_launch ? 2 : 0);
  const tbsched::CallTimes calls{std::move(issue_ns)};
  return tbsched::Simulation(model(), {}, calls).makespan(sequence, tbsched::kNever);
}

// The SMs of a launch that comes after others have left, whose blocks somebody lets go again or
// not.
std::vector<int32_t> sms_after(const bool misused) {
  Simulator simulator;
  for (const int32_t launch : {simulator.start({.blocks = 50}), simulator.start({.blocks = 70})}) {
    for (const Footprint& footprint : simulator.footprints[launch]) {
      simulator.scheduler.leave(launch, footprint);
      for (const int32_t whose : {launch, 1 - launch, 7}) {
        try {
          if (misused) simulator.scheduler.leave(whose, footprint);
        } catch (const std::invalid_argument&) {
          continue;
        }
        if (misused) throw std::logic_error("it left twice");
      }
    }
  }
  if (!simulator.scheduler.gpu().idle()) throw std::logic_error("blocks are left");
  simulator.sms.clear();
  simulator.start({.blocks = 500, .threads = 96});
  return simulator.sms;
}

const std::map<std::string, std::function<void()>> kSchedulerCases = {
    {"leave twice",
     [] {
       Simulator simulator;
       simulator.start({.blocks = 2});
       const Footprint footprint = simulator.footprints[0][0];
       simulator.scheduler.leave(0, footprint);
       simulator.scheduler.leave(0, footprint);
     }},
    {"leave twice, the room taken",
     [] {
       Simulator simulator;
       simulator.start({.blocks = 1});
       const Footprint footprint = simulator.footprints[0][0];
       simulator.scheduler.leave(0, footprint);
       simulator.start({.blocks = 5000});
       simulator.scheduler.leave(0, footprint);
     }},
    {"leave of another launch",
     [] {
       Simulator simulator;
       simulator.start({});
       simulator.start({});
       simulator.scheduler.leave(1, simulator.footprints[0][0]);
     }},
    {"leave of no block",
     [] {
       Simulator simulator;
       simulator.start({});
       simulator.scheduler.leave(0, {.sm = 5, .owner = 99});
     }},
    {"leave before any block came",
     [] {
       BlockScheduler scheduler(model(), {});
       scheduler.leave(scheduler.add({}, kOneByOne), {});
     }},
    {"leave of an unknown launch", [] { Simulator().scheduler.leave(7, {}); }},
    {"leave of a negative launch", [] { Simulator().scheduler.leave(-1, {}); }},
    {"enqueue an unknown launch", [] { Simulator().scheduler.enqueue(0); }},
    {"enqueue twice",
     [] {
       BlockScheduler scheduler(model(), {});
       const int32_t launch = scheduler.add({}, kOneByOne);
       scheduler.enqueue(launch);
       scheduler.enqueue(launch);
     }},
    {"enqueue what has run",
     [] {
       Simulator simulator;
       simulator.scheduler.enqueue(simulator.start({}));
     }},
    {"demand of an unknown launch", [] { Simulator().scheduler.demand(1); }},
    {"placed_whole of an unknown launch", [] { Simulator().scheduler.placed_whole(-2); }},
    {"add 128 warps", [] { add({.threads = 4096}); }},
    {"add no blocks", [] { add({.blocks = 0}); }},
    {"add negative local memory", [] { add({.local_memory = -1}); }},
    {"add 2 GB of local memory", [] { add({.local_memory = INT32_MAX}); }},
    {"add a carveout beyond 100 percent", [] { add({.carveout = 101}); }},
    {"add a cluster that does not divide", [] { add({.blocks = 4, .cluster = 3}); }},
    {"place while it places",
     [] {
       struct Again final : Simulator {
         void on_place(const tbsched::PlacedBlocks&) override { scheduler.place(*this); }
       };
       Again().start({});
     }},
    {"memory for too few blocks",
     [] {
       Simulator simulator;
       simulator.scheduler.enqueue(simulator.scheduler.add({.blocks = 3}, kOneByOne));
       std::vector<int32_t> sms(2);
       simulator.scheduler.place(simulator,
                                 {.output_sms = [&](int32_t, int32_t) { return std::span(sms); }});
     }},
};

const std::map<std::string, std::function<void()>> kEngineCases = {
    {"held: no observer", [] { HeldEngine(model(), {}, {nullptr}); }},
    {"held: release an unknown launch", [] { hold({Launch{}, Release{1}}); }},
    {"held: release a negative launch", [] { hold({Launch{}, Release{-1}}); }},
    {"held: release twice", [] { hold({Launch{}, Release{0}, Release{0}}); }},
    {"held: a duration", [] { hold({kTimed}); }},
    {"held: the legacy stream", [] { hold({Launch{.stream = tbsched::kLegacyStream}}); }},
    {"held: a negative stream", [] { hold({Launch{.stream = -5}}); }},
    {"held: record an event", [] { hold({RecordEvent{}}); }},
    {"held: wait for an event", [] { hold({WaitEvent{}}); }},
    {"held: launch a graph", [] { hold({GraphLaunch{}}); }},
    {"held: synchronize", [] { hold({tbsched::Synchronize{}}); }},
    {"held: copy", [] { hold({Copy{}}); }},
    {"held: set memory", [] { hold({Memset{}}); }},
    {"held: call a host function", [] { hold({tbsched::HostFunction{}}); }},
    {"held: a host call", [] { hold({tbsched::HostCall{}}); }},
    {"held: write a value", [] { hold({tbsched::WriteValue{}}); }},
    {"held: wait for a value", [] { hold({tbsched::WaitValue{}}); }},
    {"timed: a copy in a negative stream", [] { time({Copy{.stream = -2}}, {}); }},
    {"timed: a release", [] { time({kTimed, Release{0}}, {0}); }},
    {"timed: no duration", [] { time({Launch{}}, {0}); }},
    {"timed: a duration too few", [] { time({Launch{.blocks = 3, .duration_ns = {1, 2}}}, {0}); }},
    {"timed: a negative duration", [] { time({Launch{.duration_ns = {-1}}}, {0}); }},
    {"timed: no time of issue", [] { time({kTimed}, {}); }},
    {"timed: times of issue descend", [] { time({kTimed, kTimed}, {5, 4}); }},
    {"timed: a negative time of issue", [] { time({kTimed}, {-1}); }},
    {"timed: a negative stream", [] { time({Launch{.stream = -2, .duration_ns = {1}}}, {0}); }},
    {"timed: record in a negative stream", [] { time({RecordEvent{.stream = -2}}, {}); }},
    {"timed: wait in a negative stream", [] { time({WaitEvent{.stream = -2}}, {}); }},
    {"timed: synchronize in a negative stream",
     [] { time({tbsched::Synchronize{.stream = -2}}, {}); }},
    {"timed: a gap too few",
     [] { predict_timeline(model(), {kTimed, kTimed}, {}, tbsched::CallGaps{{0}}); }},
    {"timed: a negative gap",
     [] { predict_timeline(model(), {kTimed}, {}, tbsched::CallGaps{{-1}}); }},
    {"timed: a negative interval",
     [] { predict_timeline(model(), {kTimed}, {}, tbsched::CallIntervals{-1}); }},
    {"timed: no graph", [] { time({GraphLaunch{}}, {}); }},
    {"timed: an edge to a node that is not there", [] { time({graph({{0, 2}})}, {0, 0}); }},
    {"timed: nodes that wait for each other", [] { time({graph({{0, 1}, {1, 0}})}, {0, 0}); }},
    {"timed: more blocks than a timeline holds",
     [] { time({Launch{.blocks = 1 << 30, .duration_ns = {1}}}, {0}); }},
    {"timed: more waits than are kept",
     [] {
       const Launch whole{.blocks = 132, .threads = 1024, .registers = 64, .duration_ns = {1}};
       tbsched::Simulation(model(), {}, tbsched::CallIntervals{}, 20).run(Sequence(9, whole));
     }},
    {"timed: a copy of no bytes", [] { time({graph_of(Copy{.bytes = 0})}, {0}); }},
    {"timed: a memset of too many bytes",
     [] { time({graph_of(Memset{.bytes = tbsched::kMaxTransferBytes + 1})}, {0}); }},
    {"timed: a copy of a negative duration",
     [] { time({graph_of(Copy{.bytes = 1, .duration_ns = -1})}, {0}); }},
    {"timed: a host function in a negative stream",
     [] { time({tbsched::HostFunction{.stream = -2}}, {}); }},
    {"timed: a host function of a negative duration",
     [] { time({graph_of(tbsched::HostFunction{.duration_ns = -1})}, {0}); }},
    {"timed: a host call of a negative duration",
     [] { time({tbsched::HostCall{.duration_ns = -1}}, {}); }},
    {"timed: write a value in a negative stream",
     [] { time({tbsched::WriteValue{.name = "x", .stream = -2}}, {}); }},
    {"many: a fault that has no words",
     [] {
       tbsched::for_each_sequence(9, 2, [](const size_t k) {
         if (k == 7) throw std::bad_alloc();
       });
     }},
    {"table: an unknown sequence", [] { tbsched::EventTable().sequence(0); }},
    {"table: bounds beyond it",
     [] {
       const std::vector<int64_t> bounds = {0, 1};
       tbsched::EventTable{.cells = {}, .bounds = bounds}.sequence(0);
     }},
    {"table: an unknown kind",
     [] {
       const std::vector<int32_t> cells = {9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
       const std::vector<int64_t> bounds = {0, 1};
       tbsched::EventTable{.cells = cells, .bounds = bounds}.sequence(0);
     }},
    {"table: an unknown partition",
     [] {
       const std::vector<int32_t> cells = {0, 1, 32, 16, 0, 0, -1, 1, 0, 2, 0};
       const std::vector<int64_t> bounds = {0, 1};
       tbsched::EventTable{.cells = cells, .bounds = bounds}.sequence(0);
     }},
    {"matching states: an array too many",
     [] {
       const std::vector<std::span<const int32_t>> seen(1);
       const std::vector<tbsched::InitialState> states(1);
       matching_states(model(), {}, states, seen, 1);
     }},
};

std::string refusal(const std::function<void()>& misuse) {
  try {
    misuse();
  } catch (const std::invalid_argument& error) {
    return error.what();
  } catch (const std::bad_alloc&) {
    return "out of memory";
  }
  return "nothing was thrown";
}

}  // namespace

int main() {
  for (const auto* const cases : {&kSchedulerCases, &kEngineCases}) {
    // Each is named before it runs, so that the last line says which one crashed.
    for (const auto& [name, misuse] : *cases) {
      std::cout << name << " -> " << std::flush << refusal(misuse) << '\n';
    }
  }
  std::cout << "a refusal changes nothing -> " << (sms_after(true) == sms_after(false)) << '\n';
  std::cout << "makespan of a graph -> " << makespan(true) << '\n';
  std::cout << "makespan of a copy -> " << makespan(false) << '\n';
}
