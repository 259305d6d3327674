// Contexts of the fake GPU: the primary one, and those of partitions.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "fake_gpu.h"

namespace fake {

struct GreenContext {
  SmSet sms = 0;
  uint64_t number = 0;  // no other context has it, whatever is made at the same place later
};

class Contexts {
 public:
  static Contexts& get();

  static CUcontext primary(const CUdevice device) {
    return reinterpret_cast<CUcontext>(&FakeGpu::of(device));
  }
  static bool is_primary(CUcontext context);
  uint64_t number_of(CUcontext context) const;
  SmSet sms_of(CUcontext context) const;

  CUgreenCtx make(SmSet sms);
  void destroy(CUgreenCtx green);
  bool exists(uint64_t number) const;

  // Each thread has a stack of its own. A context of a partition is current to one thread at a
  // time.
  CUresult push(CUcontext context);
  CUcontext pop();            // null: there is none
  CUcontext current() const;  // likewise

 private:
  std::vector<CUcontext>& stack() const;

  mutable std::mutex mutex_;
  std::set<uint64_t> numbers_ = {0};  // of the primary one, and of those that are there
  uint64_t made_ = 0;
  mutable std::map<std::thread::id, std::vector<CUcontext>> stacks_;
};

// Made if the context has none.
Function& function_of(CUkernel kernel, CUcontext context);

}  // namespace fake
