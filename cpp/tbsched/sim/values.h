// Values in memory that streams write and wait for: cuStreamWriteValue and cuStreamWaitValue.
//
// An example: stream 0 waits for "ready" to be at least 1. Whichever stream writes 1, of whichever
// GPU, and whenever that is issued, stream 0 then goes on.
//
// Each value is 0 at first. A wait is over as soon as the value is at least what it asks for. Until
// then it holds up its hardware queue (GpuWork).
//
// A GPU sees its own writes at once, and those of others when all GPUs have done what they do at
// that instant: a wait that begins then waits. Of two writes at one instant the one that was issued
// last counts.
//
// Source: CUDA Driver API, "Stream Memory Operations" (CU_STREAM_WAIT_VALUE_GEQ); traces
// hosts/events-h200; docs/explanation/hosts.md.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"
#include "tbsched/sim/operation.h"

namespace tbsched {

class Values {
 public:
  // Notes what an operation writes, or waits for. Call it before the operation proceeds.
  void add(const OperationOfGpu operation, const WriteValue& write) {
    requests_.try_emplace(operation, Request{write.name, write.value, requests_.size()});
  }
  void add(const OperationOfGpu operation, const WaitValue& wait) {
    requests_.try_emplace(operation, Request{wait.name, wait.value, requests_.size()});
  }
  // Notes that an operation writes what no stream waits for.
  void add(const OperationOfGpu operation) {
    requests_.try_emplace(operation, Request{{}, 0, requests_.size()});
  }
  void add(const OperationOfGpu operation, const RecordEvent& /*record*/) { add(operation); }
  bool empty() const { return requests_.empty(); }
  // Notes that an operation begins. Returns false if it has begun before.
  bool begin(const OperationOfGpu operation) { return begun_.insert(operation).second; }
  // Sets the value of a write for its GPU, and returns the waits of that GPU that are over now.
  std::vector<OperationOfGpu> write(OperationOfGpu operation);
  // Returns whether writes have not been published.
  bool any_written() const { return !written_.empty(); }
  // Shows what was written to all GPUs, and returns the other waits that are over now.
  std::vector<Notice> publish();
  // Begins a wait, and returns whether it is over at once. If not, a later write ends it.
  bool wait(OperationOfGpu operation);
  // Returns the values for which streams wait, in the order in which they began to.
  std::vector<AwaitedValue> awaited() const;

 private:
  struct Request {
    std::string name;
    int64_t value;
    size_t issued;  // how many were issued before
  };

  struct Written {
    OperationOfGpu write;
    size_t order;  // among those of all GPUs, of which each keeps its order
  };

  // Returns the value that a GPU sees.
  int64_t value_of(const std::string& name, int32_t gpu) const;
  template <typename SeesWrite>
  std::vector<OperationOfGpu> take_met_waits(const Request& written, const SeesWrite& sees_write);

  std::map<OperationOfGpu, Request> requests_;
  std::unordered_map<std::string, int64_t> values_;  // those that all GPUs see
  std::vector<Written> written_;                     // what their own GPUs alone see
  std::vector<OperationOfGpu> waiting_;
  std::set<OperationOfGpu> begun_;  // at the heads of queues
};

}  // namespace tbsched
