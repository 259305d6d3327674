// CUDA events: the last record of each, and streams of other GPUs that wait for one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "tbsched/sim/operation.h"

namespace tbsched {

class Records {
 public:
  // Makes the record of any GPU known to the others. Call it before anything is noted.
  void cross_gpus() { cross_gpus_ = true; }
  bool crosses_gpus() const { return cross_gpus_; }

  // Notes the last record of an event.
  void note(const int32_t event, const OperationOfGpu record) {
    last_[event] = record;
    if (cross_gpus_) open_.insert(record);
  }
  // Returns the last record of an event; none: it has none.
  std::optional<OperationOfGpu> last(const int32_t event) const {
    const auto known = last_.find(event);
    return known == last_.end() ? std::nullopt : std::optional(known->second);
  }
  // Returns whether a record, of any GPU, is not done. Known only where records cross GPUs.
  bool is_open(const OperationOfGpu record) const { return open_.contains(record); }
  // Lets an operation of another GPU wait for an open record.
  void await(const OperationOfGpu record, const OperationOfGpu waiting) {
    awaited_.emplace(record, waiting);
  }
  // Returns whether operations of other GPUs wait for open records.
  bool any_awaited() const { return !awaited_.empty(); }
  // Closes a record that is done, and returns the operations that waited for it.
  std::vector<OperationOfGpu> close(const OperationOfGpu record) {
    open_.erase(record);
    std::vector<OperationOfGpu> waiting;
    const auto [first, last] = awaited_.equal_range(record);
    for (auto entry = first; entry != last; ++entry) waiting.push_back(entry->second);
    awaited_.erase(first, last);
    return waiting;
  }
  // Returns the open record for which an operation of another GPU waits; none: it waits for none.
  std::optional<OperationOfGpu> awaited_by(const OperationOfGpu waiting) const {
    for (const auto& [record, other] : awaited_) {
      if (other == waiting) return record;
    }
    return std::nullopt;
  }

 private:
  bool cross_gpus_ = false;
  std::unordered_map<int32_t, OperationOfGpu> last_;  // by event
  std::set<OperationOfGpu> open_;
  std::multimap<OperationOfGpu, OperationOfGpu> awaited_;  // waiting operations, by record
};

}  // namespace tbsched
