// What every call of the fake driver begins and ends with.
#pragma once

#include <cuda.h>

#include "accounts.h"
#include "fake_gpu.h"

namespace fake {

inline CUresult entered(const char* const call) { return Accounts::get().enter(call); }

// What it holds may be in use as long as anything runs.
inline CUresult take_back(const char* const kind, const void* const what,
                          const bool in_use_matters) {
  if (!Accounts::get().take_back(kind, what)) return CUDA_ERROR_INVALID_HANDLE;
  if (in_use_matters && FakeGpu::get().any_runs()) FakeGpu::get().count("taken_while_in_use");
  return CUDA_SUCCESS;
}

}  // namespace fake
