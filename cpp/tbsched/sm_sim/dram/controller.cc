#include "tbsched/sm_sim/dram/controller.h"

#include <algorithm>
#include <tuple>

namespace tbsched::sm_sim {
namespace {

constexpr int64_t kNever = INT64_MAX;
enum Rank : int32_t { kColumn, kRow, kPrefetch };

}  // namespace

bool Controller::Choice::before(const Choice& other) const {
  return std::tie(cycle, rank, number) < std::tie(other.cycle, other.rank, other.number);
}

Controller::Controller(const int32_t number, const Memory& memory)
    : memory_(memory),
      number_(number),
      banks_(static_cast<size_t>(memory.config.banks)),
      timing_(memory.config),
      prefetcher_(memory.config, memory.prefetch),
      wake_(kNever) {
  if (memory.checked) check_.emplace(memory.config);
}

void Controller::add(const int64_t tick, const uint64_t access, const bool write) {
  const int64_t cycle = next_multiple(tick, memory_.clocks.dram) / memory_.clocks.dram;
  const AddressMap::Place place = memory_.map.place_of(access);
  Bank& bank = banks_[static_cast<size_t>(place.bank)];
  if (bank.idle()) memory_.use.change(cycle, 1);
  bank.add({access, cycle, arrivals_++, place.row, place.column, write});
  prefetcher_.arrived(++waiting_);
  chosen_ = false;
  look_at(std::max(cycle, last_command_ + 1));
}

bool Controller::wake(const int64_t tick) {
  const int64_t cycle = tick / memory_.clocks.dram;
  if (cycle != wake_) return false;  // a later call has replaced this one
  wake_ = kNever;
  if (!chosen_) choose(cycle);
  const bool sends = next_ && next_->cycle <= cycle;
  bool served = false;
  if (sends) {
    served = send(*next_, cycle);
    last_command_ = cycle;
    choose(cycle + 1);
  }
  if (next_) look_at(next_->cycle);
  return served;
}

void Controller::look_at(const int64_t cycle) {
  if (cycle >= wake_) return;
  wake_ = cycle;
  memory_.events.push(
      {.tick = cycle * memory_.clocks.dram, .to = number_, .what = EventKind::controller});
}

std::optional<Controller::Choice> Controller::choice_of(const int32_t number) const {
  const Bank& bank = banks_[static_cast<size_t>(number)];
  const BankTiming& timing = bank.timing;
  if (bank.open() < 0) {
    if (bank.idle()) return {};
    return Choice{timing_.activate(timing), kRow, bank.oldest().number, number,
                  CommandKind::activate,    -1};
  }
  if (bank.hit() != Bank::kNone) {
    const Request& request = bank.at(bank.hit());
    const auto kind = request.write ? CommandKind::write : CommandKind::read;
    const int64_t cycle = request.write ? timing_.write(timing) : timing_.read(timing);
    return Choice{cycle, kColumn, request.number, number, kind, -1};
  }
  const auto held = [&](const int32_t column) {
    const uint64_t access = memory_.map.access_at({number, column, bank.open()});
    const Sectors sectors = memory_.map.sectors_of(access);
    return l2_ != nullptr && (l2_->held(memory_.map.own_of_access(access)) & sectors) == sectors;
  };
  const int32_t column = prefetcher_.column(bank, waiting_, held);
  if (column >= 0) {
    // The row inherits the age of the requests behind it.
    const bool in_the_way = !bank.idle();
    return Choice{timing_.read(timing),
                  in_the_way ? kRow : kPrefetch,
                  in_the_way ? bank.oldest().number : bank.served(),
                  number,
                  CommandKind::read,
                  column};
  }
  if (bank.idle()) return {};
  return Choice{timing_.precharge(timing), kRow, bank.oldest().number, number,
                CommandKind::precharge,    -1};
}

// Chooses the next command from this cycle on.
void Controller::choose(const int64_t cycle) {
  next_.reset();
  chosen_ = true;
  for (int32_t bank = 0; bank < static_cast<int32_t>(banks_.size()); ++bank) {
    std::optional<Choice> choice = choice_of(bank);
    if (!choice) continue;
    choice->cycle = std::max(choice->cycle, cycle);
    if (!next_ || choice->before(*next_)) next_ = choice;
  }
}

// Sends a command. Returns whether a request was served.
bool Controller::send(const Choice& choice, const int64_t cycle) {
  Bank& bank = banks_[static_cast<size_t>(choice.bank)];
  Command command{
      cycle,       bank.open(),         number_, choice.bank, std::max(choice.prefetch, 0),
      choice.kind, choice.prefetch >= 0};
  const bool serves = bank.hit() != Bank::kNone;
  if (choice.kind == CommandKind::activate) command.row = bank.oldest().row;
  if (serves) command.column = bank.at(bank.hit()).column;
  if (check_) check_->next(command);
  if (memory_.log != nullptr) memory_.log->push_back(command);
  if (choice.kind == CommandKind::activate) {
    timing_.activated(cycle, bank.timing);
    bank.activate(bank.oldest().row);
    ++memory_.statistics.activates;
  } else if (choice.kind == CommandKind::precharge) {
    timing_.precharged(cycle, bank.timing);
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
  statistics.row_hits += bank.fresh() ? 0 : 1;
  const Request request = bank.take_hit(cycle);
  --waiting_;
  if (bank.idle()) memory_.use.change(cycle, -1);
  if (choice.kind == CommandKind::write) {
    timing_.has_written(cycle, bank.timing);
    ++statistics.dram_writes;
    return;
  }
  ++statistics.dram_reads;
  statistics.queue_cycles += cycle - request.arrived;
  data(timing_.has_read(cycle, bank.timing), request.access, false);
}

void Controller::prefetch(Bank& bank, const Choice& choice, const int64_t cycle) {
  ++memory_.statistics.prefetches;
  bank.prefetch(choice.prefetch, cycle);
  data(timing_.has_read(cycle, bank.timing),
       memory_.map.access_at({choice.bank, choice.prefetch, bank.open()}), true);
}

void Controller::data(const int64_t cycle, const uint64_t access, const bool prefetched) {
  memory_.events.push({.tick = cycle * memory_.clocks.dram,
                       .line = access,
                       .to = number_,
                       .from = prefetched ? 1 : 0,
                       .what = EventKind::data});
}

}  // namespace tbsched::sm_sim
