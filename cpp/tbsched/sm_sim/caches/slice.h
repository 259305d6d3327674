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
  // `perfect`: every read hits.
  Slice(int32_t slice, const Memory& memory, Controller& controller, bool perfect);

  // Queues a read or a written line of a core.
  void arrive(const Event& request);
  // Serves the queue as far as possible at `tick`.
  void serve(int64_t tick);
  // Serves the queue again, as a request has left the controller's queue.
  void resume(int64_t tick);
  // Takes sectors that the controller has read, and answers the cores that wait for them.
  void receive_data(const Event& read);

  // Returns whether no request is in progress.
  bool idle() const { return waiting_.empty() && mshrs_.empty(); }

 private:
  // A request in the queue.
  struct Waiting {
    Part part;  // of a line, in the controller's numbering
    int32_t core;
    bool write;
  };
  // A core that waits for sectors of a line.
  struct Waiter {
    int32_t core;
    Sectors sectors;
  };

  // Answers a read, or waits for the sectors that miss. Returns false if there is no MSHR or no
  // room at the controller.
  bool read(int64_t tick, const Waiting& request);
  // Takes a written line. Whole sectors are written, so none must be read. Returns false if there
  // is no room at the controller.
  bool write(int64_t tick, const Waiting& request);
  // Returns all sectors that the accesses of the DRAM for the missing ones transfer.
  Sectors sectors_to_fetch(Part missing) const;
  // Sends the accesses of these sectors to the controller.
  void send_to_memory(int64_t tick, Part part, bool write);
  // Adds sectors to the cache, and writes back the line that they evict.
  void fill(int64_t tick, Part part, bool dirty);
  // Sends sectors of a line to a core.
  void reply(int64_t tick, Part part, int32_t core);

  Memory memory_;
  Controller& controller_;
  Cache cache_;
  Mshrs<std::vector<Waiter>> mshrs_;
  std::deque<Waiting> waiting_;
  int64_t free_tick_ = 0;         // from which on the next line can be served
  int64_t next_serve_tick_ = -1;  // of its pending event; -1: none
  int64_t delay_ticks_;
  int32_t slice_;
  bool perfect_;
};

}  // namespace tbsched::sm_sim
