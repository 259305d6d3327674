// A runtime that decides when it launches: are 80 workers and 16 schedulers, which wait for each
// other, resident at the same time?
#include <iostream>

#include "rtx3090.h"
#include "tbsched/coresidency/capacity.h"
#include "tbsched/coresidency/remembered.h"
#include "tbsched/program/refusal.h"

int main() {
  const tbsched::DeviceSpec spec = rtx3090();
  const tbsched::Model model(spec);
  const tbsched::Launch workers{
      .blocks = 80, .threads = 256, .registers = 32, .shared_memory = 90'000};
  tbsched::Launch schedulers{.blocks = 16, .threads = 128, .registers = 32};

  tbsched::RememberedCoresidency together(model);
  const tbsched::TogetherAnswer answer =
      together.ask({.launches = {workers, schedulers}, .groups = {{0, 1}}});
  std::cout << tbsched::kVerdictNames[static_cast<size_t>(answer.verdict)] << ": launch "
            << answer.stranded << " waits for " << tbsched::name(answer.cause) << '\n';

  const tbsched::FreeRoom room =
      tbsched::capacity(model, {&schedulers, 1}, workers, model.states().front());
  std::cout << room.blocks << " of 80 workers fit beside the schedulers\n";

  schedulers.carveout = 100;
  const tbsched::TogetherAnswer better =
      together.ask({.launches = {workers, schedulers}, .groups = {{0, 1}}});
  std::cout << "with carveout 100: " << tbsched::kVerdictNames[static_cast<size_t>(better.verdict)]
            << '\n';
}
