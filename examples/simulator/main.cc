// Stands for a simulator of an H200 that is driven cycle by cycle. Its SMs know only which of their
// slots are taken, and until when; the adapter knows what fits where. Kernels are read from
// standard input, in the order in which they come:
//
//   CYCLE BLOCKS THREADS REGISTERS SHARED_MEMORY LENGTH
//
// and for each block it prints cycle, kernel, block and SM. The arguments are [POLICY [DEVICE
// [BOARD]]], as in Adapter::Options.
#include <array>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapter.h"

namespace {

constexpr int64_t kFree = -1;

struct Arrival {
  int64_t cycle;
  Adapter::Kernel kernel;
  int64_t length;  // of a block, in cycles; a little more for some
};

std::istream& operator>>(std::istream& input, Arrival& arrival) {
  Adapter::Kernel& kernel = arrival.kernel;
  return input >> arrival.cycle >> kernel.blocks >> kernel.threads >> kernel.registers >>
         kernel.shared_memory >> arrival.length;
}

struct Sm {
  std::array<int64_t, 32> ends;  // of the block in each slot, or kFree

  Sm() { ends.fill(kFree); }
  int start(const int64_t end) {
    int slot = 0;
    while (ends.at(slot) != kFree) ++slot;
    ends[slot] = end;
    return slot;
  }
};

class Simulator {
 public:
  explicit Simulator(const Adapter::Options& options)
      : adapter_([this](int sm, int kernel, int block) { return start(sm, kernel, block); },
                 options),
        sms_(adapter_.sms()) {}

  void launch(const Arrival& arrival) {
    if (arrival.length < 1) throw std::invalid_argument("a block runs for a cycle or more");
    adapter_.launch(static_cast<int>(lengths_.size()), arrival.kernel);
    lengths_.push_back(arrival.length);
    unfinished_ += arrival.kernel.blocks;
  }
  bool busy() const { return unfinished_ > 0; }

  // Blocks end, then others take their place.
  void cycle() {
    for (size_t sm = 0; sm < sms_.size(); ++sm) {
      for (size_t slot = 0; slot < sms_[sm].ends.size(); ++slot) {
        if (sms_[sm].ends[slot] == now_) end(sm, slot);
      }
    }
    adapter_.distribute();
    ++now_;
  }
  int64_t now() const { return now_; }

 private:
  int start(const int sm, const int kernel, const int block) {
    std::cout << now_ << ' ' << kernel << ' ' << block << ' ' << sm << '\n';
    return sms_[sm].start(now_ + lengths_[kernel] + 7 * block % 13);
  }
  void end(const size_t sm, const size_t slot) {
    sms_[sm].ends[slot] = kFree;
    adapter_.leave(static_cast<int>(sm), static_cast<int>(slot));
    --unfinished_;
  }

  Adapter adapter_;
  std::vector<Sm> sms_;
  std::vector<int64_t> lengths_;  // of each kernel's blocks
  int64_t unfinished_ = 0;        // blocks
  int64_t now_ = 0;
};

}  // namespace

int main(const int argc, const char* const argv[]) {
  const auto argument = [&](const int k) { return std::string(k < argc ? argv[k] : ""); };
  try {
    Simulator simulator({argument(1), argument(2), argument(3)});
    for (Arrival arrival; std::cin >> arrival;) {
      while (simulator.now() < arrival.cycle) simulator.cycle();
      simulator.launch(arrival);
    }
    while (simulator.busy()) simulator.cycle();
  } catch (const std::invalid_argument& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
