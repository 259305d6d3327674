// Values in memory that streams write and wait for: cuStreamWriteValue and cuStreamWaitValue.
//
// An example: stream 0 waits for "ready" to be at least 1. Whichever stream writes 1, and whenever
// that is issued, stream 0 then goes on.
//
// Each value is 0 at first. A wait is over as soon as the value is at least what it asks for.
//
// Source: CUDA Driver API, "Stream Memory Operations" (CU_STREAM_WAIT_VALUE_GEQ). Not measured: how
// long the GPU takes to see a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tbsched/program/event.h"

namespace tbsched {

class Values {
 public:
  // What a wait asks for.
  struct Awaited {
    std::string name;
    int64_t value;
    int64_t has;  // what the value is now
  };

  // Notes what an operation writes, or waits for. Call it before the operation proceeds.
  void add(const int32_t operation, const WriteValue& write) {
    requests_.try_emplace(operation, Request{write.name, write.value});
  }
  void add(const int32_t operation, const WaitValue& wait) {
    requests_.try_emplace(operation, Request{wait.name, wait.value});
  }
  // Sets the value of a write, and returns the waits that are over now.
  std::vector<int32_t> write(int32_t operation);
  // Returns whether a wait is over. If not, a later write ends it.
  bool wait(int32_t operation);
  // Returns what the first wait asks for that is not over; none: all are.
  std::optional<Awaited> awaited() const;

 private:
  struct Request {
    std::string name;
    int64_t value;
  };

  int64_t value_of(const std::string& name) const;

  std::unordered_map<int32_t, Request> requests_;    // by operation
  std::unordered_map<std::string, int64_t> values_;  // those that were written
  std::vector<int32_t> waiting_;                     // operations
};

}  // namespace tbsched
