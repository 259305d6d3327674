// Errors on the way to the GPU. Bad input is std::invalid_argument.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace tbsched::cuda {

// No usable GPU; the text says what was searched for.
struct NoGpu : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The hardware contradicted itself, or the measurement could not be made surely enough.
struct Unstable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Another process uses the GPU, so that measurements are meaningless.
struct Shared : Unstable {
  using Unstable::Unstable;
};

// The run exceeded its deadline; its blocks have been released.
struct DeadlineExceeded : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A driver call failed.
struct CudaFailure : std::runtime_error {
  CudaFailure(std::string call_name, std::string code_name, std::string details)
      : std::runtime_error(call_name + ": " + code_name),
        call(std::move(call_name)),
        code(std::move(code_name)),
        detail(std::move(details)) {}

  std::string call;
  std::string code;
  std::string detail;
};

}  // namespace tbsched::cuda
