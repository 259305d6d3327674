// A slice of L2, with its memory controller.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tbsched/sm_sim/caches/cache.h"
#include "tbsched/sm_sim/caches/mshrs.h"
#include "tbsched/sm_sim/clocks.h"
#include "tbsched/sm_sim/config.h"
#include "tbsched/sm_sim/dram/controller.h"
#include "tbsched/sm_sim/event_queue.h"
#include "tbsched/sm_sim/statistics.h"

namespace tbsched::sm_sim {

// Serves one line a cycle in order of arrival. A line that needs the memory blocks those behind it
// until there is an MSHR and room in the controller's queue.
class Slice {
 public:
  Slice(int32_t number, const Memory& memory, Controller& controller, bool perfect);

  void arrive(const Event& request);
  void serve(int64_t tick);
  // Resumes when a request has left the controller's queue.
  void resume(int64_t tick);
  void data(const Event& read);

  // Whether no request is in progress.
  bool idle() const { return waiting_.empty() && missing_.empty(); }

 private:
  struct Waiting {
    Part part;  // of a line, in the controller's numbering
    int32_t core;
    bool write;
  };
  struct Waiter {
    int32_t core;
    Sectors sectors;
  };

  bool read(int64_t tick, const Waiting& request);
  bool write(int64_t tick, const Waiting& request);
  Sectors to_fetch(Part missing) const;
  void ask_memory(int64_t tick, Part part, bool write);
  void fill(int64_t tick, Part part, bool dirty);
  void reply(int64_t tick, Part part, int32_t core);

  Memory memory_;
  Controller& controller_;
  Cache cache_;
  Mshrs<std::vector<Waiter>> missing_;
  std::deque<Waiting> waiting_;
  int64_t free_ = 0;         // when the next line can be served
  int64_t next_serve_ = -1;  // when it next serves its queue
  int64_t delay_;
  int32_t number_;
  bool perfect_;
};

}  // namespace tbsched::sm_sim
