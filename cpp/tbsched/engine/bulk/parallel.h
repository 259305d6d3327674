// Runs work on many sequences in parallel.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tbsched {

// Calls work(k) for every k below `count` on `threads` threads. Rethrows the exception of the
// smallest k; a std::invalid_argument names `each` and its number.
inline void for_each_sequence(const size_t count, const int32_t threads,
                              const std::function<void(size_t k)>& work,
                              const std::string_view each = "sequence") {
  std::vector<std::exception_ptr> faults(count);
  std::atomic<size_t> next = 0;
  const auto some = [&] {
    for (size_t k = next++; k < count; k = next++) {
      try {
        work(k);
      } catch (...) {
        faults[k] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int32_t thread = 1; thread < threads; ++thread) others.emplace_back(some);
    some();
  }
  for (size_t k = 0; k < count; ++k) {
    if (!faults[k]) continue;
    try {
      std::rethrow_exception(faults[k]);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(std::string(each) + ' ' + std::to_string(k) + ": " +
                                  error.what());
    }
  }
}

}  // namespace tbsched
