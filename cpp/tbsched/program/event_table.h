// Sequences of held launches as rows of numbers, in which Python passes many at once. A row is an
// event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tbsched/program/event.h"

namespace tbsched {

// As in python/tbsched/program/event_table.py.
inline constexpr size_t kEventColumns = 11;
inline constexpr int32_t kLaunchRow = 0;   // blocks, threads, registers, shared memory, local
                                           // memory, carveout or -1, cluster, priority,
                                           // partition or -1, cooperative (0 or 1)
inline constexpr int32_t kReleaseRow = 1;  // the launch, and zeros

struct EventTable {
  std::span<const int32_t> cells;   // row-major
  std::span<const int64_t> bounds;  // rows of sequence k: from bounds[k] up to bounds[k + 1]
  std::vector<std::shared_ptr<const Partition>> partitions =
      {};  // to which launches refer by number

  size_t sequence_count() const { return bounds.empty() ? 0 : bounds.size() - 1; }

  // Returns the events of sequence k. Throws std::invalid_argument for an unknown sequence, and for
  // invalid bounds, kinds of rows or partitions.
  Sequence sequence(const size_t k) const {
    if (k >= sequence_count()) {
      throw std::invalid_argument("sequence " + std::to_string(k) + ": the table has " +
                                  std::to_string(sequence_count()));
    }
    const auto rows = static_cast<int64_t>(cells.size() / kEventColumns);
    if (bounds[k] < 0 || bounds[k] > bounds[k + 1] || bounds[k + 1] > rows) {
      throw std::invalid_argument(
          "bounds: " + std::to_string(bounds[k]) + " to " + std::to_string(bounds[k + 1]) +
          " are not ascending within the table's 0.." + std::to_string(rows));
    }
    Sequence events;
    events.reserve(static_cast<size_t>(bounds[k + 1] - bounds[k]));
    for (int64_t row = bounds[k]; row < bounds[k + 1]; ++row) {
      events.push_back(event(cells.subspan(static_cast<size_t>(row) * kEventColumns)));
    }
    return events;
  }

 private:
  // Returns the launch or release that the cells from the begin of its row on describe.
  Event event(const std::span<const int32_t> row) const {
    if (row[0] == kReleaseRow) return Release{.launch = row[1]};
    if (row[0] != kLaunchRow) {
      throw std::invalid_argument(
          "cells: " + std::to_string(row[0]) + " is no kind of event; a launch is " +
          std::to_string(kLaunchRow) + ", a release " + std::to_string(kReleaseRow));
    }
    return Launch{.blocks = row[1],
                  .threads = row[2],
                  .registers = row[3],
                  .shared_memory = row[4],
                  .local_memory = row[5],
                  .carveout = row[6] < 0 ? std::nullopt : std::optional(row[6]),
                  .cluster = row[7],
                  .stream = std::nullopt,
                  .priority = row[8],
                  .partition = partition(row[9]),
                  .cooperative = row[10] != 0};
  }

  // Returns the partition that a launch's cell names; null for a negative index: the whole GPU.
  std::shared_ptr<const Partition> partition(const int32_t index) const {
    if (index < 0) return nullptr;
    if (std::cmp_less(index, partitions.size())) return partitions[static_cast<size_t>(index)];
    throw std::invalid_argument("cells: there is no partition " + std::to_string(index) + ", of " +
                                std::to_string(partitions.size()));
  }
};

}  // namespace tbsched
