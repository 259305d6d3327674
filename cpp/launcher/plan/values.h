// Values in memory that streams of a plan write and wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "launcher/driver/driver.h"
#include "launcher/driver/resources.h"

namespace tbsched::cuda {

// A write of a value in a stream, or a wait for one.
struct PlannedValue {
  bool waits = false;
  int64_t value = 0;
  size_t slot = 0;  // index of the name
  CUstream stream = nullptr;
  int64_t* host = nullptr;  // where the value is, in pinned memory
  CUdeviceptr device = 0;   // the same address for the GPU

  // Makes the call of CUDA. The context must be current.
  void issue(const Driver& driver) const;
};

// Ends all waits for values, also those that begin later, if it is called again and again until the
// streams are done: writes that come later set smaller values.
void end_waits(const std::vector<PlannedValue>& values);

// Memory of values, pinned memory of the host: so the host can end a wait. Kept from run to run; it
// never shrinks.
class ValueMemory {
 public:
  explicit ValueMemory(const Driver& driver) : driver_(driver) {}

  // Sets all values to 0, and the addresses of `values`. Nothing may use the memory.
  void lay_out(std::vector<PlannedValue>& values);

 private:
  const Driver& driver_;
  std::unique_ptr<MappedMemory> memory_;
};

}  // namespace tbsched::cuda
