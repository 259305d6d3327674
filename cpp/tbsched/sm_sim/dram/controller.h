// A memory controller. Of the commands that may be sent now, a read or write of an open row comes
// first, then the oldest request (FR-FCFS).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tbsched/sm_sim/caches/cache.h"
#include "tbsched/sm_sim/clocks.h"
#include "tbsched/sm_sim/config.h"
#include "tbsched/sm_sim/dram/address_map.h"
#include "tbsched/sm_sim/dram/bank.h"
#include "tbsched/sm_sim/dram/command.h"
#include "tbsched/sm_sim/dram/prefetcher.h"
#include "tbsched/sm_sim/dram/timing.h"
#include "tbsched/sm_sim/dram/timing_check.h"
#include "tbsched/sm_sim/event_queue.h"
#include "tbsched/sm_sim/statistics.h"

namespace tbsched::sm_sim {

// Number of banks with requests over time, for all controllers.
class BankUse {
 public:
  explicit BankUse(Statistics& statistics) : statistics_(statistics) {}

  void change(const int64_t cycle, const int32_t by) {
    statistics_.bank_cycles += (cycle - since_) * busy_;
    statistics_.bank_busy_cycles += busy_ > 0 ? cycle - since_ : 0;
    since_ = cycle;
    busy_ += by;
  }

 private:
  Statistics& statistics_;
  int64_t since_ = 0;
  int64_t busy_ = 0;
};

// Components and settings shared by all controllers.
struct Memory {
  const Config& config;
  const Clocks& clocks;
  const AddressMap& map;
  EventQueue& events;
  Statistics& statistics;
  BankUse& use;
  std::vector<Command>* log;  // may be nullptr
  bool prefetch;
  bool checked;
};

class Controller {
 public:
  Controller(int32_t number, const Memory& memory);

  bool has_room() const { return waiting_ < memory_.config.dram_queue; }

  // Adds an access. Even without room, a controller accepts write-backs of L2 and all accesses for
  // a line.
  void add(int64_t tick, uint64_t access, bool write);

  // Sets the cache for prefetched lines, which outlives it.
  void prefetch_to(const Cache& l2) { l2_ = &l2; }

  // Sends the commands that may be sent now. Returns whether a request has left the queue.
  bool wake(int64_t tick);

 private:
  // A bank's next command, and when it may be sent.
  struct Choice {
    int64_t cycle;
    int32_t rank;  // the lower goes first
    int64_t number;
    int32_t bank;
    CommandKind kind;
    int32_t prefetch;  // its column, or -1

    bool before(const Choice& other) const;
  };

  std::optional<Choice> choice_of(int32_t number) const;
  void choose(int64_t cycle);
  void look_at(int64_t cycle);
  bool send(const Choice& choice, int64_t cycle);
  void serve(Bank& bank, const Choice& choice, int64_t cycle);
  void prefetch(Bank& bank, const Choice& choice, int64_t cycle);
  void data(int64_t cycle, uint64_t access, bool prefetched);

  Memory memory_;
  int32_t number_;
  std::vector<Bank> banks_;
  Timing timing_;
  Prefetcher prefetcher_;
  std::optional<TimingCheck> check_;
  const Cache* l2_ = nullptr;
  std::optional<Choice> next_;
  bool chosen_ = false;  // next_ is valid: nothing has arrived since
  int64_t waiting_ = 0;
  int64_t arrivals_ = 0;
  int64_t wake_;               // cycle of the next wake
  int64_t last_command_ = -1;  // at most one a cycle
};

}  // namespace tbsched::sm_sim
