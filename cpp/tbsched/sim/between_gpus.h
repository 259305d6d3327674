// What the GPUs of a process share: CUDA events, values in memory, blocks that meet, and the
// timeline.
//
// A GPU does not change another one. It leaves a notice, and the simulation passes it on at the
// same instant, when each GPU has done what it does then. So the numbers of GPUs decide nothing.
#pragma once

#include <cstddef>
#include <vector>

#include "tbsched/program/timeline.h"
#include "tbsched/sim/meetings.h"
#include "tbsched/sim/records.h"
#include "tbsched/sim/values.h"

namespace tbsched {

struct BetweenGpus {
  Records records;
  Values values;
  Meetings meetings;
  std::vector<Notice> notices;
  // Rows of the timeline, by launch of the whole program and block; those of hidden launches
  // follow.
  std::vector<BlockTime> blocks;
  size_t rows = 0;  // of the launches that have been added
  Detail detail = Detail::blocks;

  // Returns whether GPUs may learn anything of each other before a host calls again.
  bool may_have_news() const {
    return records.any_awaited() || !values.empty() || meetings.any_incomplete();
  }
  // Returns whether something has happened on a GPU that others may wait for.
  bool has_news() const {
    return !notices.empty() || values.any_written() || meetings.any_complete();
  }
};

}  // namespace tbsched
