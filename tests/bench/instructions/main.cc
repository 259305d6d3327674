// Runs one fixed case: of the predictor on the model of an H200, or of the simulator of SMs. Only
// what happens within measured() is counted.
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <string>

#include "h200.h"
#include "simulator.h"
#include "tbsched/engine/predict.h"

namespace {

using tbsched::Launch;
using tbsched::Release;
using tbsched::Sequence;

// A grid that drains in waves.
Sequence waves() {
  return {Launch{.blocks = 100'000, .threads = 64, .registers = 16, .duration_ns = {1000}}};
}

// Launches of all sizes, each of which a release lets go some launches later. The generator's
// output is fixed by the standard, that of its distributions is not.
Sequence mixed() {
  std::mt19937 generator(1);
  const auto below = [&](const int32_t limit) {
    return static_cast<int32_t>(generator() % static_cast<uint32_t>(limit));
  };
  Sequence sequence;
  for (int32_t launch = 0; launch < 60; ++launch) {
    sequence.push_back(Launch{.blocks = 1 + below(300),
                              .threads = 32 * (1 + below(16)),
                              .registers = 16 + below(48),
                              .shared_memory = below(2) * below(24 * 1024),
                              .carveout = 100});
    if (launch >= 4) sequence.push_back(Release{.launch = launch - 4});
  }
  return sequence;
}

Sequence small() { return Sequence(5, Launch{.blocks = 5, .threads = 128, .registers = 32}); }

// Launches of eight streams, some of which wait for each other.
Sequence streams() {
  Sequence sequence;
  for (int32_t launch = 0; launch < 400; ++launch) {
    const int32_t stream = launch % 8;
    if (launch % 5 == 0) sequence.push_back(tbsched::WaitEvent{.event = 0, .stream = stream});
    sequence.push_back(
        Launch{.blocks = 4, .threads = 256, .stream = stream, .duration_ns = {5000}});
    if (launch % 7 == 0) sequence.push_back(tbsched::RecordEvent{.event = 0, .stream = stream});
  }
  return sequence;
}

}  // namespace

// A name that callgrind is told.
extern "C" [[gnu::noinline]] void measured(const std::function<void()>& work) { work(); }

int main(const int argc, const char* const* const argv) {
  const std::map<std::string, Sequence (*)()> cases = {
      {"waves", waves}, {"streams", streams}, {"mixed", mixed}, {"small", small}};
  const std::string name = argc == 2 ? argv[1] : "";
  if (const auto simulation = simulation_named(name)) {
    measured(*simulation);
    return 0;
  }
  const auto found = cases.find(name);
  if (found == cases.end()) {
    std::cerr << "one of waves, streams, mixed, small, computing, missing is needed\n";
    return 2;
  }
  const tbsched::DeviceSpec spec = h200();
  const Sequence sequence = found->second();
  const bool timed = tbsched::is_timed(sequence);
  const tbsched::Model model(spec);
  measured([&] {
    if (timed) {
      predict_timeline(model, sequence, {}, tbsched::CallIntervals{});
    } else {
      predict(model, sequence, {});
    }
  });
}
