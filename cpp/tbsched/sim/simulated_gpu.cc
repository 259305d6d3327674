#include "tbsched/sim/simulated_gpu.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "tbsched/program/refuse.h"
#include "tbsched/sim/driver_kernels.h"

namespace tbsched {

SimulatedGpu::SimulatedGpu(const Model& model, const InitialState state, const Clock& clock,
                           BetweenGpus& between, const int32_t index)
    : spec_(model.device().spec),
      clock_(clock),
      between_(between),
      index_(index),
      may_decline_(model.policy().may_decline),
      events_(clock),
      work_(spec_, clock, events_, between, index),
      scheduler_(model, state),
      blocks_(spec_, clock, events_, scheduler_, work_, between),
      waits_(clock),
      options_{.may_turn = [this] { return may_turn(); }, .every_refusal = true},
      free_grids_(spec_.resident_grids),
      relay_{.priority = kRelayPriority, .duration_ns = {spec_.relay_ns}, .has_runtime = false},
      decider_(decider(spec_)) {}

// -- before anything happens ---------------------------------------------------------------------

void SimulatedGpu::add(const Event& event, int32_t first_launch, int32_t first_transfer) {
  for_each_launch(event, [&](const Launch&) { global_launch_.push_back(first_launch++); });
  std::visit(Overloaded{
                 [&](const Launch& launch) { add(launch); },
                 [&](const GraphLaunch& launched) { add(launched); },
                 [&](const Copy& copy) { add_transfer(copy); },
                 [&](const Memset& memset) { add_transfer(memset); },
                 [&](const HostFunction& function) { add_transfer(function); },
                 [](const auto&) {},
             },
             event);
  while (global_transfer_.size() < static_cast<size_t>(transfers_)) {
    global_transfer_.push_back(first_transfer++);
  }
}

void SimulatedGpu::add(const Launch& launch) {
  const int32_t index = scheduler_.add(launch, blocks_.leaving(launch));
  const bool is_shown = std::cmp_less(index, global_launch_.size());
  if (launch.non_blocking && launch.stream) work_.make_non_blocking(*launch.stream);
  std::optional<int32_t> meeting;
  if (launch.meets_all()) {
    meeting = between_.meetings.add(launch.meets, {index_, index}, launch.blocks);
  }
  ++launches_;
  waits_.add_launch();
  blocks_.add(launch, is_shown ? global_launch_[index] : -1, meeting);
}

void SimulatedGpu::add(const GraphLaunch& launched) {
  if (launched.non_blocking) work_.make_non_blocking(launched.stream);
  std::vector<int32_t> numbers;
  for (const Node& node : launched.graph->nodes) {
    numbers.push_back(std::holds_alternative<Launch>(node) ? launches_
                                                           : transfer_number(transfers_));
    add(node);
  }
  const GraphOrder& order = work_.upload(launched);
  for (const int32_t node : order.deciders) {
    numbers.push_back(node < 0 ? -1 : numbers[node]);
    hidden_.push_back({&decider_, numbers.back()});
  }
  for (const int32_t node : order.relays) hidden_.push_back({&relay_, numbers[node]});
}

// Adds a copy, memset or host function, and the kernel that the driver may run for it.
template <typename Transfer>
void SimulatedGpu::add_transfer(const Transfer& transfer) {
  if (transfer.stream && transfer.non_blocking) work_.make_non_blocking(*transfer.stream);
  const int32_t number = transfer_number(transfers_++);
  if (const std::optional<Launch> kernel = driver_kernel(spec_, transfer)) {
    hidden_.push_back({&kernels_.emplace_back(*kernel), number});
  }
}

void SimulatedGpu::add(const Node& node) {
  std::visit(Overloaded{
                 [&](const Launch& launch) { add(launch); },
                 [&](const RecordEvent&) { ++transfers_; },
                 [&](const WaitEvent&) { ++transfers_; },
                 [&](const auto& transfer) { add_transfer(transfer); },
             },
             node);
}

void SimulatedGpu::finish_adding() {
  shown_ = launches_;
  work_.set_counts(shown_, static_cast<int32_t>(hidden_.size()), transfers_);
  for (const Hidden& hidden : hidden_) add(*hidden.launch);
  hardware_queue_.resize(launches_);
}

// -- at an instant -------------------------------------------------------------------------------

void SimulatedGpu::leave() {
  while (const auto exit = blocks_.exit_next()) {
    if (!exit->is_last) continue;
    ++free_grids_;
    std::erase(running_, exit->launch);
    for (const int32_t launch : work_.end(exit->launch)) blocks_.end_memory_waits(launch);
  }
}

void SimulatedGpu::admit() {
  while (const std::optional<int32_t> launch = work_.take_ready(free_grids_ > 0)) {
    --free_grids_;
    running_.push_back(*launch);
    waits_.log_waits_before_placement(*launch, work_.operation_of(*launch), work_.operations(),
                                      work_.queues());
    hardware_queue_[*launch] = work_.hardware_queue(*launch);
    scheduler_.enqueue(*launch, launches_admitted_++);
  }
}

void SimulatedGpu::place() {
  events_.clear(Phase::turn);
  scheduler_.place(*this, options_);
  blocks_.update_paces();
}

int64_t SimulatedGpu::quiet_until_ns(const int64_t next_ns) const {
  if (next_ns == kNever) return kNever;
  const bool is_watched = between_.may_have_news() || work_.queues().any_awaits_place();
  return is_watched ? steady_until_ns(next_ns) : hosts_wait_until_ns(next_ns);
}

int64_t SimulatedGpu::hosts_wait_until_ns(const int64_t next_ns) const {
  const OpGraph& operations = work_.operations();
  const auto& waits = operations.host_waits();
  int64_t until_ns = kNever;
  for (auto each = waits.begin(); each != waits.end() && until_ns > next_ns;) {
    const int32_t wait = each->wait;
    int64_t ends_ns = next_ns;
    for (; each != waits.end() && each->wait == wait; ++each) {
      ends_ns = std::max(ends_ns, least_end_ns(each->on, next_ns));
    }
    until_ns = std::min(until_ns, ends_ns);
  }
  return until_ns;
}

int64_t SimulatedGpu::least_end_ns(int32_t operation, const int64_t from_ns) const {
  // Each operation of a stream is over after the one before it, but the completion event of a
  // launch happens when that starts.
  const OpGraph& operations = work_.operations();
  while (operation >= 0 && !operations[operation].done()) {
    const Operation& awaited = operations[operation];
    if (awaited.is_launch() && awaited.launch >= 0) {
      return blocks_.busy_until_ns(awaited.launch, from_ns);
    }
    const int32_t before = awaited.last_launch;
    if (before >= 0 && operations[before].record == operation) return from_ns;
    operation = before;
  }
  return from_ns;
}

int64_t SimulatedGpu::steady_until_ns(const int64_t next_ns) const {
  if (work_.has_news() || blocks_.any_programmatic()) return next_ns;
  int64_t until_ns = events_.next_ns(Phase::change);
  until_ns = std::min(until_ns, clock_.to_own(events_.next_gpu_ns()));
  for (const int32_t launch : running_) {
    if (until_ns <= next_ns) break;
    until_ns = std::min(until_ns, blocks_.busy_until_ns(launch, next_ns));
  }
  return until_ns;
}

bool SimulatedGpu::may_turn() {
  events_.clear(Phase::turn);
  if (clock_.now() >= next_switch_ns_) return true;
  events_.push(Phase::turn, Domain::process, {.time_ns = next_switch_ns_, .subject = 0});
  return false;
}

// Starts blocks that were placed. If their launch was not the last one, the scheduler may turn to
// another launch only after a while.
void SimulatedGpu::on_place(const PlacedBlocks& placed) {
  if (scheduler_.current() != placed.launch) {
    next_switch_ns_ = clock_.now() + spec_.launch_switch_ns;
  }
  blocks_.place(placed);
  if (scheduler_.placed_whole(placed.launch)) waits_.note(placed.launch, Refusal::none, -1);
}

// Logs why a launch waits: for a more urgent launch, the cause is priority.
void SimulatedGpu::on_refuse(const int32_t launch, const Refusal cause, const int32_t behind) {
  const bool more_urgent = behind >= 0 && scheduler_.is_more_urgent(behind, launch);
  const Refusal shown_cause = cause == Refusal::queue && more_urgent ? Refusal::priority : cause;
  const bool is_new = waits_.cause(launch) != shown_cause;
  const Refusals limiters =
      is_new && is_resource_of_sm(shown_cause)
          ? scheduler_.gpu().limiters_where(shown_cause, scheduler_.demand(launch))
          : set_of(shown_cause);
  waits_.note(launch, shown_cause, behind, limiters);
}

int64_t SimulatedGpu::earliest_end_ns() {
  const auto last_block_ns = [&](const int32_t launch) {
    return blocks_.duration_ns(launch, blocks_.launch(launch).blocks - 1);
  };
  if (longest_first_.empty()) {
    longest_first_.resize(shown_);
    std::iota(longest_first_.begin(), longest_first_.end(), 0);
    std::ranges::stable_sort(longest_first_, std::greater<>{}, last_block_ns);
  }
  while (longest_placed_ < longest_first_.size() &&
         scheduler_.placed_whole(longest_first_[longest_placed_])) {
    ++longest_placed_;
  }
  const int64_t end = blocks_.last_end_ns();
  if (longest_placed_ == longest_first_.size()) return end;
  return std::max(end, clock_.now() + last_block_ns(longest_first_[longest_placed_]));
}

// -- when nothing more happens -------------------------------------------------------------------

bool SimulatedGpu::any_waits_to_meet() const {
  for (int32_t launch = 0; launch < shown_; ++launch) {
    if (blocks_.meets(launch) && scheduler_.placed(launch) > 0) return true;
  }
  return false;
}

std::vector<HungLaunch> SimulatedGpu::hung_launches(
    const std::function<int32_t(OperationOfGpu)>& name_elsewhere) {
  const std::vector<int32_t> first_awaited = work_.operations().first_awaited();
  std::vector<HungLaunch> launches;
  for (int32_t launch = 0; launch < shown_; ++launch) {
    if (!blocks_.has_unfinished(launch)) continue;
    HungLaunch hung{.launch = global_launch_[launch], .started = scheduler_.placed(launch)};
    const int32_t operation = work_.operation_of(launch);
    if (operation < 0) {
      hung.cause = Refusal::host;
    } else if (!scheduler_.placed_whole(launch)) {
      const Refusal cause = waits_.cause(launch);
      if (may_decline_ && cause == Refusal::policy) {
        refuse(hung.launch, "policy: nothing runs any more, and its blocks wait for ever: " +
                                std::string(name(cause)) +
                                "; a policy that chooses no SM leaves them waiting");
      }
      const Awaited why = scheduler_.is_enqueued(launch)
                              ? in_queue(launch)
                              : awaited(operation, first_awaited, name_elsewhere);
      hung.cause = why.cause;
      hung.behind = why.behind;
    }
    launches.push_back(hung);
  }
  blocks_.mark_never_started();
  return launches;
}

SimulatedGpu::Awaited SimulatedGpu::in_queue(int32_t launch) const {
  while (is_hidden(waits_.behind(launch))) launch = waits_.behind(launch);
  return {waits_.cause(launch), global_name(waits_.behind(launch))};
}

SimulatedGpu::Awaited SimulatedGpu::awaited(
    const int32_t operation, const std::span<const int32_t> first_awaited,
    const std::function<int32_t(OperationOfGpu)>& name_elsewhere) const {
  // Follows the first dependency of each operation that is not over, as far as the launch, copy or
  // value that is the reason.
  const OpGraph& operations = work_.operations();
  std::optional<Refusal> cause;
  int32_t waiting = operation;
  for (int32_t on = first_awaited[waiting]; on >= 0; on = first_awaited[waiting]) {
    const Operation& dependent = operations[waiting];
    const Operation& awaited = operations[on];
    const Refusal kind = dependent.record == on                ? Refusal::event
                         : awaited.kind == OperationKind::load ? Refusal::first_use
                         : dependent.follows_nodes             ? Refusal::node
                         : awaited.stream != dependent.stream  ? Refusal::legacy_stream
                         : dependent.programmatic              ? Refusal::trigger
                                                               : Refusal::stream;
    if (!cause || kind == Refusal::event) cause = kind;
    const int32_t launch = awaited.launch;
    if (launch >= 0 && !is_hidden(launch)) return {*cause, global_name(launch)};
    if (launch >= 0 && scheduler_.is_enqueued(launch)) return in_queue(launch);
    waiting = on;
  }
  if (const auto record = between_.records.awaited_by({index_, waiting})) {
    return {Refusal::event, name_elsewhere(*record)};
  }
  if (!operations.has_legacy_turn(waiting)) {
    return {cause.value_or(Refusal::legacy_stream), name_of(operations.first_undone())};
  }
  if (operations[waiting].kind == OperationKind::wait_value) return {Refusal::value, -1};
  const int32_t queue = work_.queues().queue_of_launch(operation);
  const int32_t head = queue < 0 ? -1 : work_.queues().head(queue);
  if (waiting == operation && head >= 0 && head != operation) {
    return {Refusal::hardware_queue, name_of(head)};
  }
  return {cause.value_or(Refusal::grids), -1};
}

// -- what the whole program calls it -------------------------------------------------------------

int32_t SimulatedGpu::add_foreign_name(const int32_t name) {
  foreign_names_.push_back(name);
  return launches_ + static_cast<int32_t>(foreign_names_.size()) - 1;
}

int32_t SimulatedGpu::global_name(int32_t name) const {
  if (name >= launches_) return foreign_names_[name - launches_];
  if (name >= shown_) name = hidden_[name - shown_].of;
  if (name >= 0) return global_launch_[name];
  return name == -1 ? -1 : transfer_number(global_transfer_[transfer_number(name)]);
}

Timeline SimulatedGpu::finish() && {
  Timeline timeline{.blocks = {},
                    .waits = std::move(waits_).take(),
                    .hardware_queue = std::move(hardware_queue_),
                    .issued_ns = {},
                    .calls = {},
                    .transfers = work_.transfer_times(),
                    .hang = {}};
  if (!hidden_.empty()) remove_hidden(timeline);
  for (Wait& wait : timeline.waits) {
    wait.launch = global_launch_[wait.launch];
    wait.behind = global_name(wait.behind);
  }
  return timeline;
}

void SimulatedGpu::remove_hidden(Timeline& timeline) const {
  for (size_t k = 0; k < hidden_.size(); ++k) {
    if (hidden_[k].launch == &relay_ || hidden_[k].launch == &decider_) continue;
    const auto blocks = blocks_.rows(shown_ + static_cast<int32_t>(k));
    timeline.transfers[transfer_number(hidden_[k].of)] = {
        std::ranges::min_element(blocks, {}, &BlockTime::start_ns)->start_ns,
        std::ranges::max_element(blocks, {}, &BlockTime::end_ns)->end_ns};
  }
  timeline.hardware_queue.resize(shown_);
  std::erase_if(timeline.waits, [&](const Wait& wait) { return is_hidden(wait.launch); });
}

}  // namespace tbsched
