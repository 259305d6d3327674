#include "tbsched/sim/simulation.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "tbsched/program/refuse.h"
#include "tbsched/sim/interruption.h"

namespace tbsched {
namespace {

constexpr size_t kRowsPerPoll = size_t{1} << 16;  // for which memory is taken

// Refuses a negative stream other than the legacy stream. `who`: the event, for the message.
void check_stream(const std::string& who, const int32_t stream) {
  if (stream >= 0 || stream == kLegacyStream) return;
  refuse(who + ": stream: " + std::to_string(stream) + " is negative and not the legacy stream");
}

// Refuses a duration beyond the range of time.
void check_duration(const std::string& who, const int64_t duration_ns) {
  if (duration_ns >= 0 && duration_ns <= kLatestNs) return;
  refuse(who + ": duration: " + std::to_string(duration_ns) + " ns is beyond the range of time");
}

// Refuses a copy or memset with bytes, a duration or a stream that is out of range.
template <typename Transfer>
void check_event(const Transfer& transfer) {
  if (transfer.bytes < 1 || transfer.bytes > kMaxTransferBytes) {
    refuse("copy or memset: bytes: " + std::to_string(transfer.bytes) + " are outside 1.." +
           std::to_string(kMaxTransferBytes));
  }
  check_duration("copy or memset", transfer.duration_ns.value_or(0));
  if (transfer.stream) check_stream("copy or memset", *transfer.stream);
}

// Refuses a host function with a duration or a stream that is out of range.
void check_event(const HostFunction& function) {
  check_duration("host function", function.duration_ns);
  if (function.stream) check_stream("host function", *function.stream);
}

// Refuses a launch without a duration for each block, with a time out of range, or whose blocks
// meet others and do what these would wait for.
void check_event(const Launch& launch, const int32_t index) {
  const size_t durations = launch.duration_ns.size();
  if (durations != 1 && durations != static_cast<size_t>(launch.blocks)) {
    refuse(index, "duration: one, or one per block, is needed; got " + std::to_string(durations) +
                      " for " + std::to_string(launch.blocks) + " blocks");
  }
  if (launch.stream) check_stream("launch", *launch.stream);
  const std::pair<const char*, int64_t> times[] = {
      {"trigger", launch.trigger_ns.value_or(0)},
      {"memory_wait", launch.memory_wait_ns.value_or(0)},
      {"delay", launch.delay_ns}};
  for (const auto& [field, time] : times) {
    if (time < 0)
      refuse(index, std::string(field) + ": " + std::to_string(time) + " ns is negative");
  }
  if (launch.meets_all() && (launch.trigger_ns || launch.memory_wait_ns)) {
    refuse(index, "meets: its blocks trigger, or wait for memory, and then cannot meet others");
  }
}

// Refuses a graph with a node that is refused. `index`: of its first launch.
void check_event(const GraphLaunch& launched, int32_t index) {
  check_stream("graph", launched.stream);
  if (!launched.graph) refuse("graph: there is none");
  for (const Node& node : launched.graph->nodes) {
    std::visit(Overloaded{
                   [&](const Launch& launch) { check_event(launch, index++); },
                   [](const RecordEvent&) {},
                   [](const WaitEvent&) {},
                   [](const auto& transfer) { check_event(transfer); },
               },
               node);
  }
}

// Returns one row for each launch, from its first start to its last end.
std::vector<BlockTime> rows_of_launches(const std::vector<BlockTime>& blocks) {
  std::vector<BlockTime> rows;
  for (const BlockTime& block : blocks) {
    if (rows.empty() || rows.back().launch != block.launch) {
      rows.push_back(block);
    } else {
      rows.back().start_ns = std::min(rows.back().start_ns, block.start_ns);
      rows.back().end_ns = std::max(rows.back().end_ns, block.end_ns);
    }
  }
  return rows;
}

// Returns the device of each GPU.
std::vector<const DeviceSpec*> specs_of(const std::vector<StartingGpu>& gpus) {
  std::vector<const DeviceSpec*> specs;
  for (const StartingGpu& gpu : gpus) specs.push_back(&gpu.model->device().spec);
  return specs;
}

}  // namespace

Simulation::Simulation(const std::vector<StartingGpu>& gpus, HostCalls calls,
                       const size_t max_waits)
    : host_events_(clock_),
      hosts_(specs_of(gpus), std::move(calls), host_events_),
      next_ns_(gpus.size(), kNever),
      quiet_ns_(gpus.size()),
      max_waits_(max_waits) {
  if (gpus.size() > 1) between_.records.cross_gpus();
  for (const StartingGpu& gpu : gpus) {
    const auto index = static_cast<int32_t>(gpus_.size());
    gpus_.push_back(std::make_unique<SimulatedGpu>(*gpu.model, gpu.state, clock_, between_, index));
  }
  if (gpus.size() == 1) active_ = {0};
}

Timeline Simulation::run(const Sequence& sequence) && {
  begin(sequence);
  while (step(sequence)) run_ahead(kNever);
  return std::move(*this).finish();
}

Timeline Simulation::finish() && {
  Timeline timeline;
  if (gpus_.size() == 1) {
    timeline = std::move(*gpus_[0]).finish();
  } else {
    std::vector<Timeline> timelines;
    for (const auto& gpu : gpus_) timelines.push_back(std::move(*gpu).finish());
    timeline = merged(std::move(timelines));
  }
  timeline.blocks = std::move(between_.blocks);
  timeline.blocks.resize(shown_rows_);
  if (between_.detail == Detail::launches) timeline.blocks = rows_of_launches(timeline.blocks);
  timeline.issued_ns = std::move(issued_ns_);
  timeline.calls = std::move(hosts_).calls();
  timeline.hang = std::move(hang_);
  return timeline;
}

Timeline Simulation::merged(std::vector<Timeline> timelines) const {
  Timeline whole;
  struct Next {
    size_t launch = 0;
    size_t transfer = 0;
  };
  std::vector<Next> next(timelines.size());
  for (const int32_t gpu : launch_gpus_) {
    whole.hardware_queue.push_back(timelines[gpu].hardware_queue[next[gpu].launch++]);
  }
  for (const int32_t gpu : transfer_gpus_) {
    whole.transfers.push_back(timelines[gpu].transfers[next[gpu].transfer++]);
  }
  for (const Timeline& of_gpu : timelines) {
    whole.waits.insert(whole.waits.end(), of_gpu.waits.begin(), of_gpu.waits.end());
  }
  std::ranges::stable_sort(whole.waits, {}, &Wait::launch);
  return whole;
}

int64_t Simulation::makespan(const Sequence& sequence, const int64_t limit_ns) && {
  keep(Detail::launches);
  begin(sequence);
  while (step(sequence)) {
    if (least_makespan() >= limit_ns) return kNever;
  }
  const int64_t makespan = hang_ ? kNever : least_makespan();
  return makespan < limit_ns ? makespan : kNever;
}

int64_t Simulation::least_makespan() {
  SimulatedGpu& gpu = *gpus_[0];
  const int64_t first_ns = gpu.blocks().first_start_ns();
  return first_ns == kNever ? 0 : gpu.earliest_end_ns() - first_ns;
}

Snapshot Simulation::snapshot(const Sequence& sequence, const int32_t gpu, const int64_t at_ns) && {
  begin(sequence);
  while (next_instant() <= at_ns && step(sequence)) run_ahead(at_ns);
  return gpus_.at(gpu)->snapshot();
}

int64_t Simulation::next_instant() const {
  if (gpus_.size() == 1) return std::min(host_events_.next_ns(), gpus_[0]->events().next_ns());
  return std::min(host_events_.next_ns(), *std::ranges::min_element(next_ns_));
}

void Simulation::update_next() {
  for (const int32_t gpu : active_) {
    next_ns_[gpu] = gpus_[gpu]->events().next_ns();
    quiet_ns_[gpu] = 0;
  }
}

// Simulates several GPUs, one after the other, up to an instant before `limit_ns` until which no
// host calls and no GPU can learn anything of another one.
void Simulation::run_ahead(const int64_t limit_ns) {
  if (gpus_.size() == 1) return;
  const int64_t next_ns = next_instant();
  int64_t until_ns = std::min(limit_ns, host_events_.next_ns());
  for (size_t gpu = 0; gpu < gpus_.size() && until_ns > next_ns; ++gpu) {
    if (quiet_ns_[gpu] <= next_ns) {
      quiet_ns_[gpu] = gpus_[gpu]->quiet_until_ns(std::max(next_ns, next_ns_[gpu]));
    }
    until_ns = std::min(until_ns, quiet_ns_[gpu]);
  }
  if (until_ns <= next_ns) return;
  const int64_t now = clock_.now();
  for (size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    for (; next_ns_[gpu] < until_ns; next_ns_[gpu] = gpus_[gpu]->events().next_ns()) {
      Interruptible::poll();
      clock_.advance_to(next_ns_[gpu]);
      gpus_[gpu]->leave();
      if (gpus_[gpu]->work().has_news()) gpus_[gpu]->admit();
      gpus_[gpu]->place();
      check_waits();
    }
    clock_.advance_to(now);
  }
}

bool Simulation::step(const Sequence& sequence) {
  const int64_t next_ns = next_instant();
  if (next_ns == kNever) {
    find_hang();
    return false;
  }
  step_at(sequence, next_ns);
  return true;
}

void Simulation::step_at(const Sequence& sequence, const int64_t at_ns) {
  Interruptible::poll();
  if (gpus_.size() > 1) {
    active_.clear();
    for (size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      if (next_ns_[gpu] <= at_ns) active_.push_back(static_cast<int32_t>(gpu));
    }
  }
  clock_.advance_to(at_ns);
  const auto for_each_active = [&](const auto& act) {
    for (const int32_t gpu : active_) act(*gpus_[gpu]);
  };
  for_each_active([](SimulatedGpu& gpu) { gpu.leave(); });
  // Most often blocks have left and nothing else has happened.
  bool has_news = host_events_.is_due(Phase::call);
  for_each_active([&](SimulatedGpu& gpu) { has_news |= gpu.work().has_news(); });
  if (has_news) {
    wake_hosts(sequence);
    issue(sequence);
    for_each_active([](SimulatedGpu& gpu) { gpu.admit(); });
    wake_hosts(sequence);
  }
  for_each_active([](SimulatedGpu& gpu) { gpu.place(); });
  if (between_.has_news()) deliver_notices();
  if (gpus_.size() > 1) update_next();
  check_waits();
}

void Simulation::step_without_gpu(const Sequence& sequence, const int64_t at_ns,
                                  const int64_t gpu_ns) {
  Interruptible::poll();
  clock_.stop(at_ns, gpu_ns);
  gpus_[0]->work().catch_up();
  wake_hosts(sequence);
  issue(sequence);
  wake_hosts(sequence);
}

void Simulation::resume_at(const int64_t at_ns, const int64_t gpu_ns) {
  clock_.resume(at_ns, gpu_ns);
  gpus_[0]->work().end_back_off();
}

// -- before anything happens ---------------------------------------------------------------------

void Simulation::add(const Sequence& sequence) {
  std::vector<int32_t> first_launch;
  for (const Event& event : sequence) {
    first_launch.push_back(launches_);
    check(event, launches_);
    SimulatedGpu& gpu = *gpus_[gpu_of(event)];
    numbers_of_event_.push_back({launches_, gpu.next_numbers()});
    const int32_t transfers_before = gpu.next_numbers().transfer;
    gpu.add(event, launches_, transfers_);
    const auto launches = static_cast<int32_t>(count_launches(event));
    const int32_t transfers = gpu.next_numbers().transfer - transfers_before;
    launches_ += launches;
    transfers_ += transfers;
    if (gpus_.size() == 1) continue;
    launch_gpus_.insert(launch_gpus_.end(), launches, gpu_of(event));
    transfer_gpus_.insert(transfer_gpus_.end(), transfers, gpu_of(event));
  }
  first_launch.push_back(launches_);
  hosts_.start(sequence, std::move(first_launch));
  shown_rows_ = between_.rows;
  if (shown_rows_ > kMaxTimedBlocks) {
    refuse("blocks: " + std::to_string(shown_rows_) + " with durations are more than " +
           std::to_string(kMaxTimedBlocks) + "; predict a part of the program at a time");
  }
  for (const auto& gpu : gpus_) gpu->finish_adding();
  between_.blocks.reserve(between_.rows);
  while (between_.blocks.size() < between_.rows) {
    Interruptible::poll();
    between_.blocks.resize(std::min(between_.rows, between_.blocks.size() + kRowsPerPoll));
  }
  if (hosts_.has_gaps()) issued_ns_.resize(launches_, kNever);
}

void Simulation::check(const Event& event, const int32_t first_launch) const {
  const auto gpus = static_cast<int32_t>(gpus_.size());
  const int32_t gpu = gpu_of(event);
  if (gpu < 0 || gpu >= gpus) {
    refuse("gpu: " + std::to_string(gpu) + ", but there are " + std::to_string(gpus) + " GPUs");
  }
  std::visit(
      Overloaded{
          [&](const Launch& launch) { check_event(launch, first_launch); },
          [](const Release&) { refuse("release: launches with durations end by themselves"); },
          [](const RecordEvent& record) { check_stream("record", record.stream); },
          [](const WaitEvent& wait) { check_stream("wait", wait.stream); },
          [&](const GraphLaunch& launched) { check_event(launched, first_launch); },
          [&](const Copy& copy) {
            check_event(copy);
            const bool is_peer = copy.peer >= 0 && copy.peer < gpus && copy.peer != gpu;
            if ((copy.kind == CopyKind::p2p) != is_peer) {
              refuse("copy: peer: " + std::to_string(copy.peer) + " is not another one of " +
                     std::to_string(gpus) + " GPUs");
            }
          },
          [](const Memset& memset) { check_event(memset); },
          [](const Synchronize& awaited) {
            check_stream("synchronize", awaited.stream.value_or(0));
          },
          [](const HostFunction& function) { check_event(function); },
          [](const HostCall& call) {
            check_duration("host call", call.duration_ns);
            check_stream("host call", call.stream.value_or(0));
          },
          [](const WriteValue& write) { check_stream("write of a value", write.stream); },
          [](const WaitValue& wait) { check_stream("wait for a value", wait.stream); },
      },
      event);
}

// -- at an instant -------------------------------------------------------------------------------

void Simulation::wake_hosts(const Sequence& sequence) {
  if (!hosts_.any_waits()) return;
  for (const int32_t gpu : active_) {
    if (!gpus_[gpu]->work().has_ended_waits()) continue;
    for (const int32_t operation : gpus_[gpu]->work().take_ended_waits()) {
      hosts_.resume({gpu, operation}, sequence, clock_.gpu_now());
    }
  }
}

void Simulation::issue(const Sequence& sequence) {
  while (std::optional<Hosts::Call> call = hosts_.take()) {
    std::ranges::fill(quiet_ns_, 0);  // a call for one GPU may wait for another one
    const Event& event = sequence[call->event];
    if (hosts_.is_blocked(*call, event)) {
      hosts_.block_call(*call);
    } else if (hosts_.needs_warmup(*call, event)) {
      hosts_.warm_up(*call, event);
    } else if (hosts_.must_load(*call, event)) {
      hosts_.load(*call, event);
    } else if (hosts_.must_wait(*call, event)) {
      hosts_.wait(*call, event, await_work(event), clock_.gpu_now());
    } else if (hosts_.wants_driver(*call, event) && !hosts_.try_take_driver(*call, event)) {
      hosts_.queue_for_driver(*call, event);
    } else if (const std::optional<OperationOfGpu> place = await_queue_place(event)) {
      hosts_.wait_for_place(*call, event, *place);
    } else {
      hosts_.take_place(*call, event, clock_.gpu_now());
      carry_out(*call, event);
    }
  }
}

void Simulation::activate(const int32_t gpu) {
  const auto at = std::ranges::lower_bound(active_, gpu);
  if (at == active_.end() || *at != gpu) active_.insert(at, gpu);
}

SimulatedGpu& Simulation::activate_gpu_of(const Event& event) {
  activate(gpu_of(event));
  return *gpus_[gpu_of(event)];
}

std::optional<OperationOfGpu> Simulation::await_work(const Event& event) {
  int32_t gpu = gpu_of(event);
  const auto* const synchronize = std::get_if<Synchronize>(&event);
  if (synchronize != nullptr && synchronize->event) {
    const std::optional<OperationOfGpu> record = between_.records.last(*synchronize->event);
    if (record) gpu = record->gpu;
  }
  activate(gpu);
  const std::optional<int32_t> wait = gpus_[gpu]->work().await_work(event);
  return wait ? std::optional(OperationOfGpu{gpu, *wait}) : std::nullopt;
}

std::optional<OperationOfGpu> Simulation::await_queue_place(const Event& event) {
  if (!hosts_.has_gaps()) return std::nullopt;
  const std::optional<int32_t> wait = activate_gpu_of(event).work().await_queue_place(event);
  return wait ? std::optional(OperationOfGpu{gpu_of(event), *wait}) : std::nullopt;
}

void Simulation::carry_out(const Hosts::Call& call, const Event& event) {
  const auto& [launch, numbers] = numbers_of_event_[call.event];
  GpuWork& work = activate_gpu_of(event).work();
  if (call.load == Hosts::Load::loaded) work.load(numbers.launch);
  const auto* const copy = std::get_if<Copy>(&event);
  const bool is_legacy_peer_copy =
      copy != nullptr && copy->kind == CopyKind::p2p && copy->stream == kLegacyStream;
  if (is_legacy_peer_copy) order_legacy_streams(copy->peer, copy->gpu);
  const int64_t ends_ns = work.issue(event, numbers, hosts_.issue_ns(call.event));
  if (is_legacy_peer_copy) order_legacy_streams(copy->gpu, copy->peer);
  if (hosts_.waits_for_end(event)) {
    const std::optional<int32_t> wait = work.await_transfer(numbers.transfer);
    hosts_.wait(call, event,
                wait ? std::optional(OperationOfGpu{gpu_of(event), *wait}) : std::nullopt,
                clock_.gpu_now());
  } else {
    hosts_.finish_call(call, event, clock_.to_gpu(ends_ns));
  }
  if (!hosts_.has_gaps()) return;
  std::fill_n(issued_ns_.begin() + launch, count_launches(event), call.began_ns);
}

void Simulation::order_legacy_streams(const int32_t first, const int32_t second) {
  // A copy to a peer in the legacy stream waits so for the peer, and then the peer for the copy.
  constexpr int32_t kOrder = -1;  // no event of a program
  const RecordEvent record{.event = kOrder, .stream = kLegacyStream, .gpu = first};
  const WaitEvent wait{.event = kOrder, .stream = kLegacyStream, .gpu = second};
  activate_gpu_of(record).work().issue(record, {}, {});
  activate_gpu_of(wait).work().issue(wait, {}, {});
}

void Simulation::deliver_notices() {
  for (const Meetings::Member& member : between_.meetings.take_complete()) {
    activate(member.gpu);
    gpus_[member.gpu]->blocks().meet(member.launch);
  }
  std::vector<Notice> notices = std::exchange(between_.notices, {});
  std::ranges::copy(between_.values.publish(), std::back_inserter(notices));
  std::ranges::stable_sort(notices, {}, &Notice::waiting);
  for (const Notice& notice : notices) {
    const auto& [gpu, operation] = notice.happened;
    activate(notice.waiting.gpu);
    gpus_[notice.waiting.gpu]->learn(notice.waiting.operation, gpus_[gpu]->name_of(operation));
  }
}

void Simulation::check_waits() const {
  size_t waits = 0;
  for (const auto& gpu : gpus_) waits += gpu->waits();
  if (waits <= max_waits_) return;
  int64_t admitted = 0;
  for (const auto& gpu : gpus_) admitted += gpu->admitted();
  refuse("waits: " + std::to_string(admitted) + " of " + std::to_string(launches_) +
         " launches have more than " + std::to_string(max_waits_) +
         ", the most that are kept; predict a part of the program at a time");
}

void Simulation::find_hang() {
  // Each launch fits an idle GPU, and without blocks that meet and values waits for earlier ones
  // alone. One that has not ended then indicates a bug of this simulation, or a policy that
  // declines for ever.
  Hang hang{.launches = {}, .calls = hosts_.unreturned(), .values = between_.values.awaited()};
  bool waits = !hang.values.empty();
  const auto name_elsewhere = [this](const OperationOfGpu operation) {
    return gpus_[operation.gpu]->name_of(operation.operation);
  };
  for (const auto& gpu : gpus_) {
    waits |= gpu->any_waits_to_meet();
    const std::vector<HungLaunch> of_gpu = gpu->hung_launches(name_elsewhere);
    hang.launches.insert(hang.launches.end(), of_gpu.begin(), of_gpu.end());
  }
  if (waits) {
    std::ranges::sort(hang.launches, {}, &HungLaunch::launch);
    hang_ = std::move(hang);
  } else if (!hang.launches.empty()) {
    const HungLaunch& first = hang.launches.front();
    throw std::logic_error("launch " + std::to_string(first.launch) +
                           " did not end, though nothing more happens: " +
                           (first.cause == Refusal::none
                                ? "its blocks have started"
                                : "its blocks wait for ever: " + std::string(name(first.cause))));
  }
}

}  // namespace tbsched
