// A simulator with a clock of its own on top of the predictor: it says when a kernel comes and when
// a block ends, and is told on which SM the next ones go. Kernels are read from standard input, in
// the order in which they come; where each block goes is printed as it is decided.
//
//   kernel TIME BLOCKS THREADS REGISTERS SHARED_MEMORY CYCLES
//   at TIME launch LAUNCH block BLOCK on SM SM
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <queue>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "rtx3090.h"
#include "tbsched/sim/block_scheduler.h"

namespace {

using tbsched::BlockScheduler;

struct Kernel {
  int64_t comes;
  tbsched::Launch launch;
  int64_t cycles;
};

struct RunningBlock {
  int64_t ends;
  int32_t launch;
  tbsched::Footprint footprint;

  // The first to end is at the top of a heap.
  bool operator<(const RunningBlock& other) const { return ends > other.ends; }
};

// Stands for what a simulator is there for: how long a block runs.
int64_t cycles_of(const Kernel& kernel, const int32_t block) {
  return kernel.cycles + 7 * block % 13;
}

class Simulator final : public tbsched::Observer {
 public:
  explicit Simulator(const std::vector<Kernel>& kernels) : kernels_(kernels) {}

  void run(const tbsched::Model& model) {
    BlockScheduler scheduler(model, {});
    auto next = kernels_.begin();
    while (next != kernels_.end() || !running_.empty()) {
      const int64_t comes = next == kernels_.end() ? running_.top().ends : next->comes;
      now_ = running_.empty() ? comes : std::min(comes, running_.top().ends);
      for (; !running_.empty() && running_.top().ends == now_; running_.pop()) {
        scheduler.leave(running_.top().launch, running_.top().footprint);
      }
      for (; next != kernels_.end() && next->comes == now_; ++next) {
        scheduler.enqueue(scheduler.add(next->launch, BlockScheduler::Leaving::one_by_one));
      }
      scheduler.place(*this);
    }
  }

 private:
  void on_place(const tbsched::PlacedBlocks& placed) override {
    for (size_t k = 0; k < placed.sms.size(); ++k) {
      const int32_t block = placed.first_block + static_cast<int32_t>(k);
      const int64_t ends = now_ + cycles_of(kernels_[placed.launch], block);
      running_.push({ends, placed.launch, placed.footprints[k]});
      std::cout << "at " << now_ << " launch " << placed.launch << " block " << block << " on SM "
                << placed.sms[k] << '\n';
    }
  }

  const std::vector<Kernel>& kernels_;
  std::priority_queue<RunningBlock> running_;
  int64_t now_ = 0;
};

std::vector<Kernel> read(std::istream& input) {
  std::vector<Kernel> kernels;
  for (std::string line; std::getline(input, line);) {
    std::istringstream words(line);
    std::string verb;
    Kernel kernel{};
    tbsched::Launch& launch = kernel.launch;
    words >> verb >> kernel.comes >> launch.blocks >> launch.threads >> launch.registers >>
        launch.shared_memory >> kernel.cycles;
    const int64_t earliest = kernels.empty() ? 0 : kernels.back().comes;
    if (!words || verb != "kernel" || kernel.comes < earliest || kernel.cycles < 1) {
      throw std::invalid_argument("not a kernel that can come next: " + line);
    }
    kernels.push_back(kernel);
  }
  return kernels;
}

}  // namespace

int main() {
  try {
    const tbsched::DeviceSpec spec = rtx3090();
    const std::vector<Kernel> kernels = read(std::cin);
    Simulator(kernels).run(tbsched::Model(spec));
  } catch (const std::invalid_argument& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
