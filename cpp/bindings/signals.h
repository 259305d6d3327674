// Handles Python's signals between two steps of long work: Ctrl-C ends it.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <functional>

#include "tbsched/sim/interruption.h"

namespace tbsched {

// Runs the handlers of signals that have come, and throws what one has raised. May be called
// without the GIL.
inline void python_signals() {
  const pybind11::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

// Returns a function that handles signals now and then: a step of work takes microseconds, and
// taking the GIL perhaps as long.
inline std::function<void()> signals_now_and_then() {
  using Clock = std::chrono::steady_clock;
  return [last_check = Clock::now()]() mutable {
    if (Clock::now() - last_check < std::chrono::milliseconds(50)) return;
    python_signals();
    last_check = Clock::now();
  };
}

// Releases the GIL while long work runs, which Ctrl-C ends.
class Unlocked {
 private:
  pybind11::gil_scoped_release gil_;
  Interruptible signals_{signals_now_and_then()};
};

}  // namespace tbsched
