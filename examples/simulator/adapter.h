// Between the scheduler and a simulator that distributes thread blocks itself. The simulator need
// be no more than C++11.
#pragma once

#include <functional>
#include <memory>

// Kernels have the simulator's own numbers. A block that runs is named by its SM and its slot
// there.
class Adapter final {
 public:
  struct Kernel {
    int blocks;
    int threads;        // per block
    int registers;      // per thread
    int shared_memory;  // bytes per block, static and dynamic
  };
  // Starts a kernel's next block on an SM; returns the slot that the SM gave it.
  using Start = std::function<int(int sm, int kernel, int block)>;

  explicit Adapter(Start start);  // of an idle H200
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
