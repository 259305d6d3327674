// Between the scheduler and a simulator that distributes thread blocks itself. The simulator need
// be no more than C++11.
#pragma once

#include <functional>
#include <memory>
#include <string>

// Kernels have the simulator's own numbers. A block that runs is named by its SM and its slot
// there.
class Adapter final {
 public:
  struct Kernel {
    int blocks = 1;
    int threads = 32;       // per block
    int registers = 16;     // per thread
    int shared_memory = 0;  // bytes per block, static and dynamic
    int cluster = 1;        // blocks per cluster
    int priority = 0;       // lower is more urgent, as in CUDA
    int carveout = -1;      // percent of the largest configuration; -1: the driver chooses
  };
  struct Options {
    std::string policy;  // a name of the table of policies; empty: the device's own
    std::string device;  // a name, or a path that ends in .toml; empty: an H200
    std::string board;   // a device file whose map of SMs replaces the device's; empty: none
  };
  // Starts a kernel's next block on an SM; returns the slot that the SM gave it.
  using Start = std::function<int(int sm, int kernel, int block)>;

  // Begins with an idle GPU. Throws std::invalid_argument for an unknown policy, device or board.
  explicit Adapter(Start start, const Options& options = Options());
  ~Adapter();

  int sms() const;
  // The kernel's blocks may start from now on. Throws std::invalid_argument for one that never can.
  void launch(int number, const Kernel& kernel);
  // Starts every block that has room now, those of a kernel in order.
  void distribute();
  // A block has ended. Throws std::invalid_argument if none runs there.
  void leave(int sm, int slot);

 private:
  class Blocks;
  std::unique_ptr<Blocks> blocks_;
};
