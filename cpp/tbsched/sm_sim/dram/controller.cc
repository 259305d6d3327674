#include "tbsched/sm_sim/dram/controller.h"

#include <algorithm>
#include <tuple>

namespace tbsched::sm_sim {
namespace {

constexpr int64_t kNever = INT64_MAX;
// Which commands go first: reads and writes of open rows, then those that change rows.
enum Rank : int32_t { kColumn, kRow, kPrefetch };

}  // namespace

bool Controller::Choice::comes_before(const Choice& other) const {
  return std::tie(cycle, rank, order) < std::tie(other.cycle, other.rank, other.order);
}

Controller::Controller(const int32_t controller, const Memory& memory)
    : memory_(memory),
      controller_(controller),
      banks_(static_cast<size_t>(memory.config.banks)),
      timing_(memory.config),
      prefetcher_(memory.config, memory.prefetch),
      wake_cycle_(kNever) {
  if (memory.checked) check_.emplace(memory.config);
}

void Controller::add(const int64_t tick, const uint64_t access, const bool write) {
  const int64_t cycle = next_multiple(tick, memory_.clocks.dram) / memory_.clocks.dram;
  const AddressMap::Location location = memory_.map.location_of(access);
  Bank& bank = banks_[static_cast<size_t>(location.bank)];
  if (bank.idle()) memory_.bank_use.change(cycle, 1);
  bank.add({access, cycle, arrivals_++, location.row, location.column, write});
  prefetcher_.count_arrival(++request_count_);
  is_chosen_ = false;
  schedule_wake(std::max(cycle, last_command_cycle_ + 1));
}

bool Controller::wake(const int64_t tick) {
  const int64_t cycle = tick / memory_.clocks.dram;
  if (cycle != wake_cycle_) return false;  // a later call has replaced this one
  wake_cycle_ = kNever;
  if (!is_chosen_) choose(cycle);
  const bool sends = next_ && next_->cycle <= cycle;
  bool served = false;
  if (sends) {
    served = send(*next_, cycle);
    last_command_cycle_ = cycle;
    choose(cycle + 1);
  }
  if (next_) schedule_wake(next_->cycle);
  return served;
}

void Controller::schedule_wake(const int64_t cycle) {
  if (cycle >= wake_cycle_) return;
  wake_cycle_ = cycle;
  memory_.events.push(
      {.tick = cycle * memory_.clocks.dram, .to = controller_, .kind = EventKind::controller});
}

std::optional<Controller::Choice> Controller::next_command_of(const int32_t bank_id) const {
  const Bank& bank = banks_[static_cast<size_t>(bank_id)];
  const BankTiming& timing = bank.timing;
  if (bank.open_row() < 0) {
    if (bank.idle()) return {};
    return Choice{timing_.earliest_activate(timing),
                  kRow,
                  bank.oldest().order,
                  bank_id,
                  CommandKind::activate,
                  -1};
  }
  if (bank.hit() != Bank::kNone) {
    const Request& request = bank.at(bank.hit());
    const auto kind = request.write ? CommandKind::write : CommandKind::read;
    const int64_t cycle =
        request.write ? timing_.earliest_write(timing) : timing_.earliest_read(timing);
    return Choice{cycle, kColumn, request.order, bank_id, kind, -1};
  }
  const auto l2_has = [&](const int32_t column) {
    const uint64_t access = memory_.map.access_at({bank_id, column, bank.open_row()});
    const Sectors sectors = memory_.map.sectors_of(access);
    return l2_ != nullptr &&
           (l2_->held(memory_.map.local_line_of_access(access)) & sectors) == sectors;
  };
  const int32_t column = prefetcher_.next_column(bank, request_count_, l2_has);
  if (column >= 0) {
    // The row inherits the age of the requests behind it.
    const bool in_the_way = !bank.idle();
    return Choice{timing_.earliest_read(timing),
                  in_the_way ? kRow : kPrefetch,
                  in_the_way ? bank.oldest().order : bank.last_access(),
                  bank_id,
                  CommandKind::read,
                  column};
  }
  if (bank.idle()) return {};
  return Choice{timing_.earliest_precharge(timing),
                kRow,
                bank.oldest().order,
                bank_id,
                CommandKind::precharge,
                -1};
}

void Controller::choose(const int64_t cycle) {
  next_.reset();
  is_chosen_ = true;
  for (int32_t bank = 0; bank < static_cast<int32_t>(banks_.size()); ++bank) {
    std::optional<Choice> choice = next_command_of(bank);
    if (!choice) continue;
    choice->cycle = std::max(choice->cycle, cycle);
    if (!next_ || choice->comes_before(*next_)) next_ = choice;
  }
}

bool Controller::send(const Choice& choice, const int64_t cycle) {
  Bank& bank = banks_[static_cast<size_t>(choice.bank)];
  Command command{
      cycle,       bank.open_row(),     controller_, choice.bank, std::max(choice.prefetch, 0),
      choice.kind, choice.prefetch >= 0};
  const bool serves = bank.hit() != Bank::kNone;
  if (choice.kind == CommandKind::activate) command.row = bank.oldest().row;
  if (serves) command.column = bank.at(bank.hit()).column;
  if (check_) check_->check(command);
  if (memory_.log != nullptr) memory_.log->push_back(command);
  if (choice.kind == CommandKind::activate) {
    timing_.note_activate(cycle, bank.timing);
    bank.activate(bank.oldest().row);
    ++memory_.statistics.activates;
  } else if (choice.kind == CommandKind::precharge) {
    timing_.note_precharge(cycle, bank.timing);
    bank.precharge();
  } else if (choice.prefetch >= 0) {
    prefetch(bank, choice, cycle);
  } else {
    serve(bank, choice, cycle);
  }
  return serves;
}

void Controller::serve(Bank& bank, const Choice& choice, const int64_t cycle) {
  Statistics& statistics = memory_.statistics;
  statistics.row_hits += bank.is_row_unused() ? 0 : 1;
  const Request request = bank.take_hit(cycle);
  --request_count_;
  if (bank.idle()) memory_.bank_use.change(cycle, -1);
  if (choice.kind == CommandKind::write) {
    timing_.note_write(cycle, bank.timing);
    ++statistics.dram_writes;
    return;
  }
  ++statistics.dram_reads;
  statistics.queue_cycles += cycle - request.arrived;
  send_data(timing_.note_read(cycle, bank.timing), request.access, false);
}

void Controller::prefetch(Bank& bank, const Choice& choice, const int64_t cycle) {
  ++memory_.statistics.prefetches;
  bank.prefetch(choice.prefetch, cycle);
  send_data(timing_.note_read(cycle, bank.timing),
            memory_.map.access_at({choice.bank, choice.prefetch, bank.open_row()}), true);
}

void Controller::send_data(const int64_t cycle, const uint64_t access, const bool prefetched) {
  memory_.events.push({.tick = cycle * memory_.clocks.dram,
                       .line = access,
                       .to = controller_,
                       .from = prefetched ? 1 : 0,
                       .kind = EventKind::data});
}

}  // namespace tbsched::sm_sim
