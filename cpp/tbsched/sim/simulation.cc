#include "tbsched/sim/simulation.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>

#include "tbsched/program/quoted.h"
#include "tbsched/program/refuse.h"
#include "tbsched/sim/driver_kernels.h"
#include "tbsched/sim/interruption.h"

namespace tbsched {
namespace {

void check_stream(const std::string& who, const int32_t stream) {
  if (stream >= 0 || stream == kLegacyStream) return;
  refuse(who + ": stream: " + std::to_string(stream) + " is negative and not the legacy stream");
}

void check_duration(const std::string& who, const int64_t duration_ns) {
  if (duration_ns >= 0 && duration_ns <= kLatestNs) return;
  refuse(who + ": duration: " + std::to_string(duration_ns) + " ns is beyond the range of time");
}

template <typename Transfer>
void check_transfer(const Transfer& transfer) {
  if (transfer.bytes < 1 || transfer.bytes > kMostBytes) {
    refuse("copy or memset: bytes: " + std::to_string(transfer.bytes) + " are outside 1.." +
           std::to_string(kMostBytes));
  }
  check_duration("copy or memset", transfer.duration_ns.value_or(0));
}

void check_transfer(const HostFunction& function) {
  check_duration("host function", function.duration_ns);
}

}  // namespace

Simulation::Simulation(const Model& model, const InitialState state, HostCalls calls,
                       const size_t most_waits)
    : spec_(model.device().spec),
      may_decline_(model.policy().may_decline),
      events_(clock_),
      hosts_(spec_, std::move(calls), events_),
      work_(spec_, clock_, events_),
      scheduler_(model, state),
      blocks_(spec_, clock_, events_, scheduler_, work_),
      waits_(clock_),
      options_{.may_turn = [this] { return may_turn(); }, .every_refusal = true},
      grids_left_(spec_.resident_grids),
      most_waits_(most_waits),
      relay_{.priority = kRelayPriority, .duration_ns = {spec_.relay_ns}, .has_runtime = false} {}

Timeline Simulation::run(const Sequence& sequence) && {
  begin(sequence);
  while (step(sequence)) {
  }
  return std::move(*this).finish();
}

Timeline Simulation::finish() && {
  Timeline timeline{.blocks = std::move(blocks_.timeline()),
                    .waits = std::move(waits_).take(),
                    .hardware_queue = std::move(hardware_queue_),
                    .issued_ns = std::move(issued_ns_),
                    .calls = std::move(hosts_).calls(),
                    .transfers = work_.transfer_times()};
  if (!hidden_.empty()) remove_hidden(timeline);
  return timeline;
}

int64_t Simulation::makespan(const Sequence& sequence, const int64_t limit_ns) && {
  begin(sequence);
  while (step(sequence)) {
    if (least_makespan() >= limit_ns) return kNever;
  }
  const int64_t found = least_makespan();
  return found < limit_ns ? found : kNever;
}

Snapshot Simulation::snapshot(const Sequence& sequence, const int64_t at_ns) && {
  begin(sequence);
  while (next_instant() <= at_ns && step(sequence)) {
  }
  return snapshot_of(scheduler_, shown_, blocks_.held());
}

bool Simulation::step(const Sequence& sequence) {
  const int64_t next_ns = next_instant();
  if (next_ns == kNever) {
    check_ended();
    return false;
  }
  step_at(sequence, next_ns);
  return true;
}

void Simulation::step_at(const Sequence& sequence, const int64_t at_ns) {
  Interruptible::poll();
  clock_.advance_to(at_ns);
  leave();
  wake_hosts(sequence);
  issue(sequence);
  admit();
  wake_hosts(sequence);
  place();
  blocks_.change_paces();
  check_waits();
}

void Simulation::step_without_gpu(const Sequence& sequence, const int64_t at_ns,
                                  const int64_t gpu_ns) {
  Interruptible::poll();
  clock_.stop(at_ns, gpu_ns);
  work_.catch_up();
  wake_hosts(sequence);
  issue(sequence);
  wake_hosts(sequence);
}

void Simulation::resume_at(const int64_t at_ns, const int64_t gpu_ns) {
  clock_.resume(at_ns, gpu_ns);
  work_.end_back_off();
}

// Returns a lower bound on the makespan: the end of the blocks that have been placed, and of the
// last block of each other launch if it were placed now.
int64_t Simulation::least_makespan() const {
  if (blocks_.first_start_ns() == kNever) return 0;
  int64_t end = blocks_.last_end_ns();
  for (int32_t launch = 0; launch < shown_; ++launch) {
    if (scheduler_.placed_whole(launch)) continue;
    const int32_t last = blocks_.launch(launch).blocks - 1;
    end = std::max(end, clock_.now() + blocks_.duration_ns(launch, last));
  }
  return end - blocks_.first_start_ns();
}

// -- before anything happens ---------------------------------------------------------------------

void Simulation::add(const Sequence& sequence) {
  std::vector<int32_t> first_launch;
  for (const Event& event : sequence) {
    first_launch.push_back(launches_);
    numbers_.push_back({first_launch.back(), transfers_, static_cast<int32_t>(hidden_.size())});
    std::visit(
        Overloaded{
            [&](const Launch& launch) { add(launch); },
            [](const Release&) { refuse("release: launches with durations end by themselves"); },
            [](const RecordEvent& record) { check_stream("record", record.stream); },
            [](const WaitEvent& wait) { check_stream("wait", wait.stream); },
            [&](const GraphLaunch& launched) { add(launched); },
            [&](const Copy& copy) { add_transfer(copy); },
            [&](const Memset& memset) { add_transfer(memset); },
            [](const Synchronize& awaited) {
              check_stream("synchronize", awaited.stream.value_or(0));
            },
            [&](const HostFunction& function) { add_transfer(function); },
            [](const HostCall& call) {
              check_duration("host call", call.duration_ns);
              check_stream("host call", call.stream.value_or(0));
            },
            [](const WriteValue& write) { check_stream("write of a value", write.stream); },
            [](const WaitValue& wait) { check_stream("wait for a value", wait.stream); },
        },
        event);
  }
  first_launch.push_back(launches_);
  hosts_.start(sequence, std::move(first_launch));
  if (blocks_.rows() > kMostTimedBlocks) {
    refuse("blocks: " + std::to_string(blocks_.rows()) + " with durations are more than " +
           std::to_string(kMostTimedBlocks) + "; predict a part of the program at a time");
  }
  add_hidden();
  blocks_.finish_adding(shown_);
  hardware_queue_.resize(launches_);
  if (hosts_.after_gaps()) issued_ns_.resize(shown_);
}

void Simulation::add_hidden() {
  shown_ = launches_;
  work_.expect(shown_, static_cast<int32_t>(hidden_.size()), transfers_);
  for (const Hidden& hidden : hidden_) add(*hidden.launch);
}

void Simulation::add(const Launch& launch) {
  const size_t durations = launch.duration_ns.size();
  const int32_t index = scheduler_.add(launch, blocks_.leaving(launch));
  if (durations != 1 && durations != static_cast<size_t>(launch.blocks)) {
    refuse(index, "duration: one, or one per block, is needed; got " + std::to_string(durations) +
                      " for " + std::to_string(launch.blocks) + " blocks");
  }
  if (launch.stream) {
    check_stream("launch", *launch.stream);
    if (launch.non_blocking) work_.make_non_blocking(*launch.stream);
  }
  const std::pair<const char*, int64_t> times[] = {
      {"trigger", launch.trigger_ns.value_or(0)},
      {"memory_wait", launch.memory_wait_ns.value_or(0)},
      {"delay", launch.delay_ns}};
  for (const auto& [field, time] : times) {
    if (time < 0)
      refuse(index, std::string(field) + ": " + std::to_string(time) + " ns is negative");
  }
  ++launches_;
  waits_.add_launch();
  blocks_.add(launch);
}

void Simulation::add(const GraphLaunch& launched) {
  check_stream("graph", launched.stream);
  if (!launched.graph) refuse("graph: there is none");
  if (launched.non_blocking) work_.make_non_blocking(launched.stream);
  std::vector<int32_t> numbers;
  for (const Node& node : launched.graph->nodes) numbers.push_back(add(node));
  for (const int32_t node : work_.upload(launched).relays) {
    hidden_.push_back({&relay_, numbers[node]});
  }
}

// Returns its number in Wait::behind.
template <typename Transfer>
int32_t Simulation::add_transfer(const Transfer& transfer) {
  check_transfer(transfer);
  if (transfer.stream) {
    check_stream(std::is_same_v<Transfer, HostFunction> ? "host function" : "copy or memset",
                 *transfer.stream);
    if (transfer.non_blocking) work_.make_non_blocking(*transfer.stream);
  }
  const int32_t number = transfer_number(transfers_++);
  if (const std::optional<Launch> kernel = driver_kernel(spec_, transfer)) {
    hidden_.push_back({&kernels_.emplace_back(*kernel), number});
  }
  return number;
}

int32_t Simulation::add(const Node& node) {
  return std::visit(Overloaded{
                        [&](const Launch& launch) {
                          add(launch);
                          return launches_ - 1;
                        },
                        [&](const Copy& copy) { return add_transfer(copy); },
                        [&](const Memset& memset) { return add_transfer(memset); },
                        [&](const HostFunction& function) { return add_transfer(function); },
                    },
                    node);
}

// Removes hidden launches from a timeline: users do not see them.
void Simulation::remove_hidden(Timeline& timeline) const {
  for (size_t k = 0; k < hidden_.size(); ++k) {
    if (hidden_[k].launch == &relay_) continue;
    const size_t first = blocks_.first_row(shown_ + static_cast<int32_t>(k));
    const auto blocks = std::span(timeline.blocks).subspan(first, hidden_[k].launch->blocks);
    timeline.transfers[transfer_number(hidden_[k].of)] = {
        std::ranges::min_element(blocks, {}, &BlockTime::start_ns)->start_ns,
        std::ranges::max_element(blocks, {}, &BlockTime::end_ns)->end_ns};
  }
  timeline.blocks.resize(blocks_.first_row(shown_));
  timeline.hardware_queue.resize(shown_);
  std::erase_if(timeline.waits, [&](const Wait& wait) { return is_hidden(wait.launch); });
  for (Wait& wait : timeline.waits) {
    if (is_hidden(wait.behind)) wait.behind = hidden_[wait.behind - shown_].of;
  }
}

// -- at an instant -------------------------------------------------------------------------------

void Simulation::leave() {
  while (const auto left = blocks_.leave_next()) {
    if (!left->is_last) continue;
    ++grids_left_;
    for (const int32_t launch : work_.end(left->launch)) blocks_.end_memory_waits(launch);
  }
}

void Simulation::wake_hosts(const Sequence& sequence) {
  if (!hosts_.any_waits()) return;
  for (const int32_t operation : work_.take_ended_waits()) {
    hosts_.resume(operation, sequence, clock_.gpu_now());
  }
}

void Simulation::issue(const Sequence& sequence) {
  while (const std::optional<Hosts::Call> call = hosts_.take()) {
    const Event& event = sequence[call->event];
    if (hosts_.is_blocked(*call, event)) {
      hosts_.block_call(*call);
    } else if (hosts_.needs_warmup(*call, event)) {
      hosts_.warm_up(*call, event);
    } else if (hosts_.loads(*call, event)) {
      hosts_.load(*call, event);
    } else if (hosts_.waits(*call, event)) {
      hosts_.wait(*call, event, work_.wait_for(event), clock_.gpu_now());
    } else if (hosts_.wants_driver(*call, event)) {
      hosts_.queue_for_driver(*call);
    } else if (const std::optional<int32_t> place = wait_for_place(event)) {
      hosts_.wait_for_place(*call, *place);
    } else {
      make(*call, event);
    }
  }
}

std::optional<int32_t> Simulation::wait_for_place(const Event& event) {
  const auto* const launch = std::get_if<Launch>(&event);
  if (launch == nullptr || !hosts_.after_gaps()) return std::nullopt;
  return work_.wait_for_place(*launch);
}

void Simulation::make(const Hosts::Call& call, const Event& event) {
  const EventNumbers& numbers = numbers_[call.event];
  if (call.load == Hosts::Load::loaded) work_.load(numbers.launch);
  const int64_t ends_ns = work_.issue(event, numbers, hosts_.issue_ns(call.event));
  if (hosts_.waits_for_end(event)) {
    hosts_.wait(call, event, work_.wait_for_transfer(numbers.transfer), clock_.gpu_now());
  } else {
    hosts_.finish_call(call, event, clock_.to_gpu(ends_ns));
  }
  if (!hosts_.after_gaps()) return;
  std::fill_n(issued_ns_.begin() + numbers.launch, count_launches(event), call.began_ns);
}

void Simulation::admit() {
  while (const std::optional<int32_t> launch = work_.take(grids_left_ > 0)) {
    --grids_left_;
    waits_.note_way(*launch, work_.operation_of(*launch), work_.operations(), work_.queues());
    hardware_queue_[*launch] = work_.hardware_queue(*launch);
    scheduler_.enqueue(*launch, launches_admitted_++);
  }
}

void Simulation::place() {
  events_.clear(Phase::turn);
  scheduler_.place(*this, options_);
}

bool Simulation::may_turn() {
  events_.clear(Phase::turn);
  if (clock_.now() >= next_switch_ns_) return true;
  events_.push(Phase::turn, Domain::process, {.time_ns = next_switch_ns_, .subject = 0});
  return false;
}

void Simulation::on_place(const PlacedBlocks& placed) {
  if (scheduler_.current() != placed.launch) {
    next_switch_ns_ = clock_.now() + spec_.launch_switch_ns;
  }
  blocks_.place(placed);
  if (scheduler_.placed_whole(placed.launch)) waits_.note(placed.launch, Refusal::none, -1);
}

void Simulation::on_refuse(const int32_t launch, const Refusal cause, const int32_t behind) {
  const bool more_urgent = behind >= 0 && priority_of(blocks_.launch(behind), spec_) <
                                              priority_of(blocks_.launch(launch), spec_);
  const Refusal told = cause == Refusal::queue && more_urgent ? Refusal::priority : cause;
  const bool is_new = waits_.cause(launch) != told;
  const Refusals limiters = is_new && is_of_sms(told)
                                ? scheduler_.gpu().limiters_where(told, scheduler_.demand(launch))
                                : set_of(told);
  waits_.note(launch, told, behind, limiters);
}

void Simulation::check_waits() const {
  if (waits_.size() <= most_waits_) return;
  refuse("waits: " + std::to_string(launches_admitted_) + " of " + std::to_string(launches_) +
         " launches have more than " + std::to_string(most_waits_) +
         ", the most that are kept; predict a part of the program at a time");
}

// Checks that no stream waits for a value that nobody writes. `left`: the first launch that has not
// ended, or -1.
void Simulation::check_values(const int32_t left) const {
  const std::optional<Values::Awaited> wait = work_.values().awaited();
  if (!wait) return;
  const std::string after = left < 0 ? "" : ", and launch " + std::to_string(left) + " never ends";
  refuse("value " + quoted(wait->name) + ": a stream waits until it is at least " +
         std::to_string(wait->value) + "; it is " + std::to_string(wait->has) +
         " and nothing more happens" + after);
}

// Checks that every launch has ended. Each fits an idle GPU and waits for earlier ones alone, so
// one that has not ended indicates a bug of this simulation, or a policy that declines for ever.
void Simulation::check_ended() const {
  const int32_t left = blocks_.first_left();
  check_values(left);
  if (left < 0) return;
  const Refusal cause = waits_.cause(left);
  const std::string why = cause == Refusal::none
                              ? "it never became ready"
                              : "its blocks wait for ever: " + std::string(name(cause));
  if (may_decline_) {
    refuse(left, "policy: nothing runs any more, and its blocks wait for ever: " +
                     std::string(name(cause)) +
                     "; a policy that chooses no SM leaves them waiting");
  }
  throw std::logic_error("launch " + std::to_string(left) +
                         " did not end, though nothing more happens: " + why);
}

}  // namespace tbsched
