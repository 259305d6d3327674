#include "tbsched/sm_sim/dram/timing_check.h"

#include <stdexcept>
#include <string>

namespace tbsched::sm_sim {
namespace {

constexpr int64_t kLongAgo = INT64_MIN / 2;
constexpr auto kActivate = CommandKind::activate;
constexpr auto kRead = CommandKind::read;
constexpr auto kWrite = CommandKind::write;
constexpr auto kPrecharge = CommandKind::precharge;

// Throws std::logic_error: a command breaks a constraint.
[[noreturn]] void throw_broken(const std::string& constraint, const Command& command) {
  throw std::logic_error(constraint + " is broken by " +
                         std::string(kCommandNames[static_cast<size_t>(command.kind)]) +
                         " of bank " + std::to_string(command.bank) + " in cycle " +
                         std::to_string(command.cycle));
}

// How many DRAM cycles a command must come after an earlier one.
struct Distance {
  const char* name;
  CommandKind from;
  CommandKind to;
  bool same_bank;
  int32_t (*cycles)(const Config& config);
};

constexpr std::array kDistances = {
    Distance{"t_rcd", kActivate, kRead, true, [](const Config& c) { return c.t_rcd; }},
    Distance{"t_rcd", kActivate, kWrite, true, [](const Config& c) { return c.t_rcd; }},
    Distance{"t_ras", kActivate, kPrecharge, true, [](const Config& c) { return c.t_ras; }},
    Distance{"t_rc", kActivate, kActivate, true, [](const Config& c) { return c.t_rc; }},
    Distance{"t_rp", kPrecharge, kActivate, true, [](const Config& c) { return c.t_rp; }},
    Distance{"t_rtp", kRead, kPrecharge, true, [](const Config& c) { return c.t_rtp; }},
    Distance{"t_wr", kWrite, kPrecharge, true,
             [](const Config& c) { return c.t_wl + c.burst() + c.t_wr; }},
    Distance{"t_rrd", kActivate, kActivate, false, [](const Config& c) { return c.t_rrd; }},
    Distance{"t_ccd", kRead, kRead, false, [](const Config& c) { return c.t_ccd; }},
    Distance{"t_ccd", kWrite, kWrite, false, [](const Config& c) { return c.t_ccd; }},
    Distance{"t_rtw", kRead, kWrite, false, [](const Config& c) { return c.t_rtw; }},
    Distance{"t_cdlr", kWrite, kRead, false,
             [](const Config& c) { return c.t_wl + c.burst() + c.t_cdlr; }},
};

}  // namespace

TimingCheck::TimingCheck(const Config& config)
    : config_(config),
      banks_(static_cast<size_t>(config.banks)),
      last_command_(kLongAgo),
      data_end_(kLongAgo) {
  last_.fill(kLongAgo);
  for (Bank& bank : banks_) bank.last.fill(kLongAgo);
}

void TimingCheck::check(const Command& command) {
  if (command.cycle <= last_command_) throw_broken("one command a cycle", command);
  if (command.bank < 0 || command.bank >= config_.banks)
    throw_broken("the number of banks", command);
  Bank& bank = banks_[static_cast<size_t>(command.bank)];
  check_state(command, bank);
  check_distances(command, bank);
  check_data_bus(command);
  if (command.kind == kActivate) {
    activates_.push_back(command.cycle);
    if (activates_.size() > 4) activates_.pop_front();
    bank.open = command.row;
  }
  if (command.kind == kPrecharge) bank.open = -1;
  last_command_ = command.cycle;
  const auto kind = static_cast<size_t>(command.kind);
  bank.last[kind] = last_[kind] = command.cycle;
}

void TimingCheck::check_state(const Command& command, const Bank& bank) const {
  if (command.kind == kActivate) {
    if (bank.open >= 0) throw_broken("a closed bank", command);
  } else if (bank.open < 0) {
    throw_broken("an open row", command);
  } else if (command.kind != kPrecharge && bank.open != command.row) {
    throw_broken("the open row", command);
  }
}

void TimingCheck::check_distances(const Command& command, const Bank& bank) const {
  for (const Distance& distance : kDistances) {
    if (distance.to != command.kind) continue;
    const auto& last = distance.same_bank ? bank.last : last_;
    const int64_t earlier = last[static_cast<size_t>(distance.from)];
    if (command.cycle - earlier < distance.cycles(config_)) throw_broken(distance.name, command);
  }
  if (command.kind == kActivate && config_.t_faw > 0 && activates_.size() == 4 &&
      command.cycle - activates_.front() < config_.t_faw) {
    throw_broken("t_faw", command);
  }
}

void TimingCheck::check_data_bus(const Command& command) {
  if (command.kind != kRead && command.kind != kWrite) return;
  const int64_t begin = command.cycle + (command.kind == kRead ? config_.t_cl : config_.t_wl);
  if (begin < data_end_) throw_broken("one line on the data bus", command);
  data_end_ = begin + config_.burst();
}

}  // namespace tbsched::sm_sim
