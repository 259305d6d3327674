#include "tbsched/engine/timed/timed_engine.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "tbsched/engine/timed/driver_kernels.h"
#include "tbsched/program/refuse.h"

namespace tbsched {
namespace {

void check_stream(const std::string& who, const int32_t stream) {
  if (stream >= 0 || stream == kLegacyStream) return;
  refuse(who + ": stream: " + std::to_string(stream) + " is negative and not the legacy stream");
}

void check_transfer(const int64_t bytes, const std::optional<int64_t> duration_ns) {
  if (bytes < 1 || bytes > kMostBytes) {
    refuse("copy or memset: bytes: " + std::to_string(bytes) + " are outside 1.." +
           std::to_string(kMostBytes));
  }
  const int64_t duration = duration_ns.value_or(0);
  if (duration < 0 || duration > kLatestNs) {
    refuse("copy or memset: duration: " + std::to_string(duration) +
           " ns is beyond the range of time");
  }
}

// Of a block that does both at the same time, nobody waits.
bool triggers_first(const Launch& launch) {
  return launch.trigger_ns.value_or(kNever) <= launch.memory_wait_ns.value_or(kNever);
}

}  // namespace

TimedEngine::TimedEngine(const Model& model, const InitialState state, HostCalls calls,
                         const size_t most_waits)
    : scheduler_(model, state),
      streams_(model.device().spec),
      grids_left_(model.device().spec.resident_grids),
      exit_latency_ns_(model.device().spec.exit_latency_ns),
      launch_switch_ns_(model.device().spec.launch_switch_ns),
      most_waits_(most_waits),
      hosts_(model.device().spec, std::move(calls)),
      spec_(model.device().spec),
      options_{.may_turn = [this] { return may_turn(); }, .every_refusal = true},
      relay_{.priority = kRelayPriority,
             .duration_ns = {model.device().spec.relay_ns},
             .has_runtime = false} {}

Timeline TimedEngine::run(const Sequence& sequence) && {
  begin(sequence);
  while (step(sequence)) {
  }
  return std::move(*this).finish();
}

void TimedEngine::begin(const Sequence& sequence) { add(sequence); }

Timeline TimedEngine::finish() && {
  remove_hidden();
  std::ranges::stable_sort(timeline_.waits, {}, &Wait::launch);
  timeline_.calls = std::move(hosts_).calls();
  return std::move(timeline_);
}

int64_t TimedEngine::makespan(const Sequence& sequence, const int64_t limit_ns) && {
  add(sequence);
  while (step(sequence)) {
    if (least_makespan() >= limit_ns) return kNever;
  }
  const int64_t found = least_makespan();
  return found < limit_ns ? found : kNever;
}

Snapshot TimedEngine::snapshot(const Sequence& sequence, const int64_t at_ns) && {
  add(sequence);
  while (next_instant() <= at_ns && step(sequence)) {
  }
  std::vector<ResidentBlocks> blocks;
  const auto list = [&](const int32_t launch, const int32_t first_held) {
    if (is_hidden(launch)) return;
    for (int32_t held = first_held; held >= 0; held = held_[held].next) {
      blocks.push_back({launch, held_[held].footprint});
    }
  };
  for (; !resident_.empty(); resident_.pop()) {
    list(resident_.top().launch, resident_.top().first_held);
  }
  for (const auto& [launch, waiting] : waiting_) {
    for (const Started& some : waiting) list(launch, some.first_held);
  }
  return snapshot_of(scheduler_, shown_, std::move(blocks));
}

bool TimedEngine::step(const Sequence& sequence) {
  const int64_t next_ns = next_instant();
  if (next_ns == kNever) {
    check_ended();
    return false;
  }
  step_at(sequence, next_ns);
  return true;
}

void TimedEngine::step_at(const Sequence& sequence, const int64_t at_ns) {
  now_ = at_ns;
  leave();
  go_on_hosts(sequence);
  issue(sequence);
  admit();
  go_on_hosts(sequence);
  place();
  if (paces_) change_paces();
  check_waits();
}

// What the blocks that have been placed take, and the last of each launch that has not, if it were
// placed now.
int64_t TimedEngine::least_makespan() const {
  if (first_start_ns_ == kNever) return 0;
  int64_t end = last_end_ns_;
  for (int32_t launch = 0; launch < shown_; ++launch) {
    if (scheduler_.placed_whole(launch)) continue;
    end = std::max(end, now_ + duration_ns(launch, launches_[launch].launch->blocks - 1));
  }
  return end - first_start_ns_;
}

void TimedEngine::add(const Sequence& sequence) {
  std::vector<int32_t> first_launch;
  for (const Event& event : sequence) {
    first_launch.push_back(static_cast<int32_t>(launches_.size()));
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
        },
        event);
  }
  first_launch.push_back(static_cast<int32_t>(launches_.size()));
  hosts_.start(sequence, std::move(first_launch));
  if (rows_ > kMostTimedBlocks) {
    refuse("blocks: " + std::to_string(rows_) + " with durations are more than " +
           std::to_string(kMostTimedBlocks) + "; predict a part of the program at a time");
  }
  add_hidden();
  timeline_.blocks.resize(rows_);
  timeline_.hardware_queue.resize(launches_.size());
  if (hosts_.after_gaps()) timeline_.issued_ns.resize(shown_);
}

void TimedEngine::add_hidden() {
  shown_ = static_cast<int32_t>(launches_.size());
  streams_.expect(shown_, static_cast<int32_t>(hidden_.size()), transfers_);
  for (const Hidden& hidden : hidden_) add(*hidden.launch);
}

// Nobody asked for them, and on a GPU nobody sees them.
void TimedEngine::remove_hidden() {
  timeline_.transfers = streams_.transfer_times();
  if (hidden_.empty()) return;
  for (size_t k = 0; k < hidden_.size(); ++k) {
    if (hidden_[k].launch == &relay_) continue;
    const auto blocks = std::span(timeline_.blocks)
                            .subspan(launches_[shown_ + k].first_row, hidden_[k].launch->blocks);
    timeline_.transfers[transfer_number(hidden_[k].of)] = {
        std::ranges::min_element(blocks, {}, &BlockTime::start_ns)->start_ns,
        std::ranges::max_element(blocks, {}, &BlockTime::end_ns)->end_ns};
  }
  timeline_.blocks.resize(launches_[shown_].first_row);
  timeline_.hardware_queue.resize(shown_);
  std::erase_if(timeline_.waits, [&](const Wait& wait) { return is_hidden(wait.launch); });
  for (Wait& wait : timeline_.waits) {
    if (is_hidden(wait.behind)) wait.behind = hidden_[wait.behind - shown_].of;
  }
}

void TimedEngine::add(const Launch& launch) {
  const size_t durations = launch.duration_ns.size();
  const bool together = durations == 1 && !paces_;
  const int32_t index = scheduler_.add(
      launch, together ? BlockScheduler::Leaving::together : BlockScheduler::Leaving::one_by_one);
  if (durations != 1 && durations != static_cast<size_t>(launch.blocks)) {
    refuse("launch " + std::to_string(index) + ": duration: one, or one per block, is needed");
  }
  if (launch.stream) {
    check_stream("launch", *launch.stream);
    if (launch.non_blocking) streams_.make_non_blocking(*launch.stream);
  }
  for (const int64_t time :
       {launch.trigger_ns.value_or(0), launch.memory_wait_ns.value_or(0), launch.delay_ns}) {
    if (time < 0) refuse(index, "trigger, memory_wait and delay must not be negative");
  }
  any_programmatic_ |= launch.programmatic;
  launches_.push_back({.launch = &launch,
                       .first_row = rows_,
                       .unfinished = launch.blocks,
                       .untriggered = launch.blocks});
  rows_ += static_cast<size_t>(launch.blocks);
  if (paces_) expect_alone(index);
}

void TimedEngine::add(const GraphLaunch& launched) {
  check_stream("graph", launched.stream);
  if (!launched.graph) refuse("graph: there is none");
  if (launched.non_blocking) streams_.make_non_blocking(launched.stream);
  std::vector<int32_t> numbers;
  for (const Node& node : launched.graph->nodes) numbers.push_back(add(node));
  for (const int32_t node : streams_.bring(launched).relays) {
    hidden_.push_back({&relay_, numbers[node]});
  }
}

// Returns its number, as Wait::behind has it.
template <typename Transfer>
int32_t TimedEngine::add_transfer(const Transfer& transfer) {
  check_transfer(transfer.bytes, transfer.duration_ns);
  if (transfer.stream) {
    check_stream("copy or memset", *transfer.stream);
    if (transfer.non_blocking) streams_.make_non_blocking(*transfer.stream);
  }
  const int32_t number = transfer_number(transfers_++);
  if (const std::optional<Launch> kernel = driver_kernel(spec_, transfer)) {
    hidden_.push_back({&kernels_.emplace_back(*kernel), number});
  }
  return number;
}

int32_t TimedEngine::add(const Node& node) {
  return std::visit(Overloaded{
                        [&](const Launch& launch) {
                          add(launch);
                          return static_cast<int32_t>(launches_.size()) - 1;
                        },
                        [&](const Copy& copy) { return add_transfer(copy); },
                        [&](const Memset& memset) { return add_transfer(memset); },
                    },
                    node);
}

int64_t TimedEngine::next_instant() const {
  const int64_t leaving = resident_.empty() ? kNever : resident_.top().leaves_ns;
  const int64_t switching = wants_to_switch_ ? next_switch_ns_ : kNever;
  const int64_t calling =
      hosts_.next_due_ns() == kNever ? kNever : hosts_.next_due_ns() - late_ns();
  return std::min({leaving, calling, switching, streams_.next_change(now_)});
}

void TimedEngine::leave() {
  while (!resident_.empty() && resident_.top().leaves_ns == now_) {
    const Resident blocks = resident_.top();
    resident_.pop();
    for (int32_t held = blocks.first_held; held >= 0;) {
      scheduler_.leave(blocks.launch, held_[held].footprint);
      if (paces_) paces_->leave(blocks.launch, held_[held].footprint.sm);
      const int32_t next = std::exchange(held_[held].next, free_held_);
      free_held_ = std::exchange(held, next);
    }
    if (!stops_.empty()) note_ends(blocks);
    LaunchState& state = launches_[blocks.launch];
    state.unfinished -= blocks.blocks;
    if (state.unfinished == 0) {
      ++grids_left_;
      for (const int32_t launch : streams_.end(blocks.launch, now_)) go_on(launch);
    }
  }
}

void TimedEngine::go_on_hosts(const Sequence& sequence) {
  if (!hosts_.any_waits()) return;
  for (const int32_t item : streams_.over(now_)) hosts_.go_on(item, sequence, gpu_ns());
}

void TimedEngine::issue(const Sequence& sequence) {
  while (hosts_.next_due_ns() <= gpu_ns()) {
    const Hosts::Call call = hosts_.take();
    const Event& event = sequence[call.event];
    if (hosts_.is_locked_out(call, event)) {
      hosts_.lock_out(call);
    } else if (hosts_.is_fresh(call, event)) {
      hosts_.take_longer(call, event);
    } else if (hosts_.loads(call, event)) {
      hosts_.load(call, event);
    } else if (hosts_.waits(call, event)) {
      hosts_.wait(call, event, streams_.wait_for(event, now_), gpu_ns());
    } else if (hosts_.wants_driver(call, event)) {
      hosts_.queue_for_driver(call);
    } else if (const std::optional<int32_t> place = wait_for_place(event)) {
      hosts_.wait_for_place(call, *place);
    } else {
      make(call, event);
    }
  }
}

std::optional<int32_t> TimedEngine::wait_for_place(const Event& event) {
  const auto* const launch = std::get_if<Launch>(&event);
  if (launch == nullptr || !hosts_.after_gaps()) return std::nullopt;
  return streams_.wait_for_place(*launch, now_);
}

void TimedEngine::make(const Hosts::Call& call, const Event& event) {
  const EventNumbers& numbers = numbers_[call.event];
  if (call.load == Hosts::Load::loaded) streams_.load(numbers.launch, now_);
  const int64_t ends_ns = streams_.issue(event, numbers, hosts_.issue_ns(call.event), now_);
  if (hosts_.waits_for_end(event)) {
    hosts_.wait(call, event, streams_.wait_for_transfer(numbers.transfer, now_), gpu_ns());
  } else {
    hosts_.made(call, event, ends_ns + late_ns());
  }
  if (!hosts_.after_gaps()) return;
  std::fill_n(timeline_.issued_ns.begin() + numbers.launch, count_launches(event), call.began_ns);
}

void TimedEngine::admit() {
  while (const std::optional<int32_t> launch = streams_.take(grids_left_ > 0, now_)) {
    --grids_left_;
    const size_t waits = timeline_.waits.size();
    streams_.append_waits(*launch, now_, timeline_.waits);
    for (Wait& wait : std::span(timeline_.waits).subspan(waits)) {
      wait = {wait.launch, wait.behind, began_ns(wait.begin_ns),
              wait.end_ns == now_ ? gpu_ns() : began_ns(wait.end_ns), wait.cause};
    }
    timeline_.hardware_queue[*launch] = streams_.hardware_queue(*launch);
    scheduler_.enqueue(*launch, launches_admitted_++);
  }
}

void TimedEngine::place() {
  wants_to_switch_ = false;
  scheduler_.place(*this, options_);
}

bool TimedEngine::may_turn() {
  wants_to_switch_ = now_ < next_switch_ns_;
  return !wants_to_switch_;
}

void TimedEngine::on_place(const PlacedBlocks& placed) {
  if (scheduler_.current() != placed.launch) next_switch_ns_ = now_ + launch_switch_ns_;
  const int32_t launch = placed.launch;
  const LaunchState& state = launches_[launch];
  const auto blocks = static_cast<int32_t>(placed.sms.size());
  const bool together = state.launch->duration_ns.size() == 1 && !paces_;
  const std::span rows = std::span(timeline_.blocks).subspan(state.first_row + placed.first_block);
  const int64_t now = now_;
  int64_t end_ns = now + duration_ns(launch, placed.first_block);
  if (!is_hidden(launch)) first_start_ns_ = std::min(first_start_ns_, now);
  for (int32_t k = 0; k < blocks; ++k) {
    const int32_t block = placed.first_block + k;
    if (!together) end_ns = now + duration_ns(launch, block);
    rows[k] = {.launch = launch,
               .block = block,
               .sm = placed.sms[k],
               .start_ns = gpu_ns(),
               .end_ns = end_ns + late_ns()};
  }
  if (together) {
    int32_t held = -1;
    for (const Footprint& footprint : placed.footprints) held = hold(footprint, held);
    start(launch, {now, end_ns - now, placed.first_block, blocks, held});
  } else {
    for (int32_t k = 0; k < blocks; ++k) {
      const int32_t held = hold(placed.footprints[k], -1);
      start(launch, {now, rows[k].end_ns - rows[k].start_ns, rows[k].block, 1, held});
    }
  }
  if (scheduler_.placed_whole(launch)) wait_for(launch, Refusal::none, -1);
}

void TimedEngine::start(const int32_t launch, const Started& blocks) {
  const Launch& started = *launches_[launch].launch;
  const int64_t end_ns = blocks.start_ns + blocks.duration_ns;
  const int64_t wait_ns = started.memory_wait_ns.value_or(kNever);
  if (wait_ns > blocks.duration_ns || streams_.first_in_stream(launch)) {
    end(launch, blocks, end_ns);
    trigger(launch, blocks, end_ns);
    return;
  }
  last_end_ns_ = std::max(last_end_ns_, end_ns);  // at the earliest
  waiting_[launch].push_back(blocks);
  if (triggers_first(started)) trigger(launch, blocks, end_ns);
}

// All that comes before the launch in its stream has left: the memory waits of its blocks return.
void TimedEngine::go_on(const int32_t launch) {
  const auto waiting = waiting_.extract(launch);
  if (waiting.empty()) return;
  const LaunchState& state = launches_[launch];
  const int64_t wait_ns = *state.launch->memory_wait_ns;
  for (const Started& blocks : waiting.mapped()) {
    const int64_t rest_ns = blocks.duration_ns - wait_ns;
    check_time(launch, rest_ns);
    const int64_t end_ns = std::max(now_, blocks.start_ns + wait_ns) + rest_ns;
    for (int32_t k = 0; k < blocks.blocks; ++k) {
      timeline_.blocks[state.first_row + blocks.first_block + k].end_ns = end_ns + late_ns();
    }
    end(launch, blocks, end_ns);
    if (!triggers_first(*state.launch)) trigger(launch, blocks, end_ns);
  }
}

void TimedEngine::end(const int32_t launch, const Started& blocks, const int64_t end_ns) {
  if (!is_hidden(launch)) last_end_ns_ = std::max(last_end_ns_, end_ns);
  resident_.push({end_ns + exit_latency_ns_, serial_++, launch, blocks.first_block, blocks.blocks,
                  blocks.first_held});
  if (paces_) note_running(launch, blocks, end_ns);
}

// The end is that of blocks that do not wait between their trigger and then.
void TimedEngine::trigger(const int32_t launch, const Started& blocks, const int64_t end_ns) {
  if (!any_programmatic_) return;
  LaunchState& state = launches_[launch];
  const int64_t trigger_ns = state.launch->trigger_ns.value_or(kNever);
  const int64_t rest_ns = std::max<int64_t>(0, blocks.duration_ns - trigger_ns);
  state.triggered_ns = std::max(state.triggered_ns, end_ns - rest_ns);
  state.untriggered -= blocks.blocks;
  if (state.untriggered == 0) streams_.trigger(launch, state.triggered_ns);
}

int64_t TimedEngine::duration_ns(const int32_t launch, const size_t block) const {
  const std::vector<int64_t>& durations = launches_[launch].launch->duration_ns;
  const int64_t duration = durations[durations.size() == 1 ? 0 : block];
  check_time(launch, duration);
  return duration;
}

void TimedEngine::check_time(const int32_t launch, const int64_t duration_ns) const {
  if (duration_ns >= 0 && duration_ns <= kLatestNs && now_ <= kLatestNs) return;
  refuse("launch " + std::to_string(launch) + ": duration: " + std::to_string(duration_ns) +
         " ns from " + std::to_string(now_) + " ns on is beyond the range of time");
}

void TimedEngine::check_waits() const {
  if (timeline_.waits.size() <= most_waits_) return;
  refuse("waits: " + std::to_string(launches_admitted_) + " of " +
         std::to_string(launches_.size()) + " launches have more than " +
         std::to_string(most_waits_) +
         ", the most that are kept; predict a part of the program at a time");
}

// Every launch fits an idle GPU, and waits for earlier ones alone: only a mistake of this engine
// leaves one.
void TimedEngine::check_ended() const {
  const auto left = std::ranges::find_if(
      launches_, [](const LaunchState& state) { return state.unfinished > 0; });
  if (left == launches_.end()) return;
  const std::string why = left->cause == Refusal::none
                              ? "it never became ready"
                              : "its blocks wait for ever: " + std::string(name(left->cause));
  throw std::logic_error("launch " + std::to_string(left - launches_.begin()) +
                         " did not end, though nothing more happens: " + why);
}

// Takes a place that is not in use, so that the host allocates no more than are held at once.
int32_t TimedEngine::hold(const Footprint& footprint, const int32_t next) {
  if (free_held_ < 0) {
    held_.push_back({footprint, next});
    return static_cast<int32_t>(held_.size()) - 1;
  }
  const int32_t held = free_held_;
  free_held_ = std::exchange(held_[held].next, next);
  held_[held].footprint = footprint;
  return held;
}

// Notes the wait that ends when another begins, or none.
void TimedEngine::wait_for(const int32_t launch, const Refusal cause, const int32_t behind) {
  LaunchState& state = launches_[launch];
  const bool more_urgent =
      behind >= 0 && launches_[behind].launch->priority < state.launch->priority;
  const Refusal found = cause == Refusal::queue && more_urgent ? Refusal::priority : cause;
  if (state.cause == found && state.behind == behind) return;
  if (state.cause != Refusal::none && now_ > state.since_ns) {
    timeline_.waits.push_back(
        {launch, state.behind, began_ns(state.since_ns), gpu_ns(), state.cause});
  }
  state.cause = found;
  state.behind = behind;
  state.since_ns = now_;
}

}  // namespace tbsched
