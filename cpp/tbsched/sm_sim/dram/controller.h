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

// Counts the cycles in which banks of all controllers have requests.
class BankUse {
 public:
  explicit BankUse(Statistics& statistics) : statistics_(statistics) {}

  // Notes that in a DRAM cycle the number of banks with requests changes.
  void change(const int64_t cycle, const int32_t by) {
    statistics_.bank_cycles += (cycle - since_) * busy_;
    statistics_.bank_busy_cycles += busy_ > 0 ? cycle - since_ : 0;
    since_ = cycle;
    busy_ += by;
  }

 private:
  Statistics& statistics_;
  int64_t since_ = 0;  // cycle of the last change
  int64_t busy_ = 0;   // banks with requests
};

// Components and settings that all controllers share.
struct Memory {
  const Config& config;
  const Clocks& clocks;
  const AddressMap& map;
  EventQueue& events;
  Statistics& statistics;
  BankUse& bank_use;
  std::vector<Command>* log;  // may be nullptr
  bool prefetch;              // of open rows
  bool checked;               // every command against every constraint
};

// Cycles are of the DRAM clock.
class Controller {
 public:
  Controller(int32_t controller, const Memory& memory);

  // Returns whether the queue has room for a request.
  bool has_room() const { return request_count_ < memory_.config.dram_queue; }

  // Adds an access. Even without room, a controller accepts write-backs of L2 and all accesses for
  // a line.
  void add(int64_t tick, uint64_t access, bool write);

  // Sets the cache that gets prefetched lines. It outlives the controller.
  void set_l2(const Cache& l2) { l2_ = &l2; }

  // Sends the command that may be sent now, if it is due. Returns whether a request has left the
  // queue.
  bool wake(int64_t tick);

 private:
  // A bank's next command, and when it may be sent.
  struct Choice {
    int64_t cycle;  // the first in which it may be sent
    int32_t rank;   // of commands in one cycle, the lower goes first
    int64_t order;  // of commands of one rank, the lower goes first
    int32_t bank;
    CommandKind kind;
    int32_t prefetch;  // its column, or -1

    // Returns whether this command is sent before another one.
    bool comes_before(const Choice& other) const;
  };

  // Returns a bank's next command; none: it has nothing to do.
  std::optional<Choice> next_command_of(int32_t bank_id) const;
  // Chooses the next command of all banks from this cycle on.
  void choose(int64_t cycle);
  // Schedules a wake in that cycle, unless one is scheduled before.
  void schedule_wake(int64_t cycle);
  // Sends a command. Returns whether a request was served.
  bool send(const Choice& choice, int64_t cycle);
  // Reads or writes for the oldest request for the bank's open row.
  void serve(Bank& bank, const Choice& choice, int64_t cycle);
  // Reads a column that nobody has asked for.
  void prefetch(Bank& bank, const Choice& choice, int64_t cycle);
  // Sends the data of an access to L2 in that cycle.
  void send_data(int64_t cycle, uint64_t access, bool prefetched);

  Memory memory_;
  int32_t controller_;
  std::vector<Bank> banks_;
  Timing timing_;
  Prefetcher prefetcher_;
  std::optional<TimingCheck> check_;
  const Cache* l2_ = nullptr;
  std::optional<Choice> next_;
  bool is_chosen_ = false;  // next_ is valid: nothing has arrived since
  int64_t request_count_ = 0;
  int64_t arrivals_ = 0;             // requests so far
  int64_t wake_cycle_;               // of the next wake; INT64_MAX: none
  int64_t last_command_cycle_ = -1;  // a cycle has one command at most
};

}  // namespace tbsched::sm_sim
