#include "tbsched/sim/host_calls.h"

#include <algorithm>
#include <string>
#include <variant>

#include "tbsched/hardware/sm/units.h"
#include "tbsched/program/refuse.h"
#include "tbsched/sim/driver_kernels.h"

namespace tbsched {
namespace {

// Returns whether all times are within the range of time.
bool in_range(const std::vector<int64_t>& times_ns) {
  return std::ranges::all_of(times_ns,
                             [](const int64_t time) { return time >= 0 && time <= kLatestNs; });
}

// Returns the end of a message: the range of times, how many were given, and the first that is out
// of it, or of order where they must ascend.
std::string range_words(const std::vector<int64_t>& times_ns, const bool ascend = false) {
  std::string words = "within the range of time, 0.." + std::to_string(kLatestNs) + " ns; got " +
                      std::to_string(times_ns.size());
  for (size_t k = 0; k < times_ns.size(); ++k) {
    const bool is_early = ascend && k > 0 && times_ns[k] < times_ns[k - 1];
    if (times_ns[k] < 0 || times_ns[k] > kLatestNs || is_early) {
      return words + ", number " + std::to_string(k) + " is " + std::to_string(times_ns[k]);
    }
  }
  return words;
}

// Returns the bit of a kind in a set of kinds.
constexpr uint32_t bit(const Hosts::Kind kind) { return 1U << static_cast<uint32_t>(kind); }

// Returns the kind of a copy's call.
Hosts::Kind kind_of(const CopyKind kind) {
  return kind == CopyKind::h2d   ? Hosts::Kind::copy_to
         : kind == CopyKind::d2h ? Hosts::Kind::copy_from
                                 : Hosts::Kind::copy_within;
}

// Returns the kind of an event's call; nothing if its first call takes no longer.
std::optional<Hosts::Kind> kind_of(const Event& event) {
  using Kind = Hosts::Kind;
  using Result = std::optional<Kind>;
  return std::visit(
      Overloaded{
          [](const Launch&) { return Result(Kind::launch); },
          [](const Release&) { return Result(); },
          [](const RecordEvent& record) { return record.timing ? Result() : Result(Kind::record); },
          [](const WaitEvent&) { return Result(Kind::wait); },
          [](const GraphLaunch&) { return Result(Kind::launch); },
          [](const Copy& copy) { return Result(kind_of(copy.kind)); },
          [](const Memset&) { return Result(Kind::set); },
          [](const Synchronize&) { return Result(); },
          [](const HostFunction&) { return Result(); },
          [](const HostCall&) { return Result(); },
          [](const WriteValue&) { return Result(); },
          [](const WaitValue&) { return Result(); },
      },
      event);
}

}  // namespace

Hosts::Hosts(std::vector<const DeviceSpec*> specs, HostCalls calls, EventQueue& events)
    : specs_(std::move(specs)), given_(std::move(calls)), events_(events) {
  for (const DeviceSpec* const spec : specs_) local_memory_.push_back(spec->local_memory_initial);
}

void Hosts::start(const Sequence& sequence, std::vector<int32_t> first_launch) {
  first_launch_ = std::move(first_launch);
  check(sequence);
  if (gaps() != nullptr) called_.resize(sequence.size(), {kNever, kNever});
  std::vector<size_t> firsts;
  std::unordered_map<int32_t, size_t> last_of;  // by thread
  for (size_t event = 0; event < sequence.size(); ++event) {
    const int32_t host = host_of(sequence[event]);
    if (host != 0 && next_.empty()) {  // until here there was one thread
      next_.resize(sequence.size(), sequence.size());
      for (size_t before = 1; before < event; ++before) next_[before - 1] = before;
    }
    const auto [last, is_first] = last_of.try_emplace(host, event);
    if (is_first) {
      firsts.push_back(event);
    } else {
      if (!next_.empty()) next_[last->second] = event;
      last->second = event;
    }
  }
  for (const size_t event : firsts) {
    schedule_next(
        {.due_ns = first_due_ns(event), .event = event, .began_ns = 0, .launched_ns = -1});
  }
}

int64_t Hosts::first_due_ns(size_t event) const {
  // Unless that is given, calls before the first launch are made together with it.
  if (times() == nullptr) return 0;
  if (!times()->called_ns.empty()) return called_ns(event);
  const size_t events = first_launch_.size() - 1;
  while (event < events && !launches(event)) event = next_of(event);
  return event < events ? times()->issue_ns[first_launch_[event]] : 0;
}

void Hosts::check(const Sequence& sequence) const {
  if (const CallGaps* const given = gaps()) {
    if (given->gap_ns.size() == sequence.size() && in_range(given->gap_ns)) return;
    refuse("host: a gap for each of " + std::to_string(sequence.size()) + " events is needed, " +
           range_words(given->gap_ns));
  }
  if (const auto* const given = std::get_if<CallIntervals>(&given_)) {
    if (given->interval_ns < 0 || given->interval_ns > kLatestNs) {
      refuse("launch interval: " + std::to_string(given->interval_ns) +
             " ns is beyond the range of time, 0.." + std::to_string(kLatestNs));
    }
  }
  const CallTimes* const given = times();
  if (given == nullptr) return;
  const auto launches = static_cast<size_t>(first_launch_.back());
  if (!given->called_ns.empty() &&
      (given->called_ns.size() != sequence.size() || !in_range(given->called_ns))) {
    refuse("times of calls: one for each of " + std::to_string(sequence.size()) +
           " events is needed, " + range_words(given->called_ns));
  }
  if (given->issue_ns.size() == launches && in_range(given->issue_ns) && times_ascend(sequence)) {
    return;
  }
  const bool one_thread =
      std::ranges::all_of(sequence, [](const Event& event) { return host_of(event) == 0; });
  refuse("issue times: one per launch is needed, for " + std::to_string(launches) +
         ", ascending per host thread, " + range_words(given->issue_ns, one_thread));
}

int64_t Hosts::called_ns(const size_t event) const {
  return launches(event) ? times()->issue_ns[first_launch_[event]] : times()->called_ns[event];
}

bool Hosts::times_ascend(const Sequence& sequence) const {
  const std::vector<int64_t>& issue_ns = times()->issue_ns;
  if (std::ranges::is_sorted(issue_ns)) return true;
  std::unordered_map<int32_t, int64_t> last_ns;
  for (size_t event = 0; event < sequence.size(); ++event) {
    int64_t& last = last_ns[host_of(sequence[event])];
    for (int32_t launch = first_launch_[event]; launch < first_launch_[event + 1]; ++launch) {
      if (issue_ns[launch] < last) return false;
      last = issue_ns[launch];
    }
  }
  return true;
}

std::optional<Hosts::Call> Hosts::take() {
  const std::optional<TimedEvent> due = events_.pop(Phase::call);
  if (!due) return std::nullopt;
  const Call call = due_.extract(due->subject).mapped();
  if (call.due_ns > kLatestNs) {
    refuse("host: a call at " + std::to_string(call.due_ns) + " ns is beyond the range of time");
  }
  return call;
}

std::span<const int64_t> Hosts::issue_ns(const size_t event) const {
  if (times() == nullptr) return {};
  const auto first = static_cast<size_t>(first_launch_[event]);
  const auto count = static_cast<size_t>(first_launch_[event + 1]) - first;
  return std::span(times()->issue_ns).subspan(first, count);
}

bool Hosts::must_load(const Call& call, const Event& event) const {
  const auto* const launch = std::get_if<Launch>(&event);
  return launch != nullptr && launch->first_use && call.load != Load::loaded &&
         !(launch->kernel && loaded_.contains({launch->gpu, *launch->kernel}));
}

bool Hosts::must_wait(const Call& call, const Event& event) const {
  if (call.has_waited || times() != nullptr) return false;
  const auto* const made = std::get_if<HostCall>(&event);
  return std::holds_alternative<Synchronize>(event) || must_grow_memory(event) ||
         (made != nullptr && made->waits);
}

bool Hosts::must_grow_memory(const Event& event) const {
  const auto* const launch = std::get_if<Launch>(&event);
  return launch != nullptr && gaps() != nullptr &&
         launch->local_memory > local_memory_[launch->gpu] &&
         spec_of(event).mechanisms.local_memory_configuration;
}

bool Hosts::is_kept_from(const Event& event) const {
  if (works_without_place_ == 0) return false;
  const auto* const made = std::get_if<HostCall>(&event);
  if (made != nullptr) return made->holds != HostCall::Holds::never;
  return std::holds_alternative<HostFunction>(event) ||
         (functions_without_place_ > 0 && !std::holds_alternative<Synchronize>(event));
}

bool Hosts::is_blocked(const Call& call, const Event& event) const {
  if (!call.lacks_place && is_kept_from(event)) return true;
  if (!locked_by_ || *locked_by_ == call.event) return false;
  if (lock_is_of_driver_) return is_in_turn(event);
  return std::holds_alternative<Launch>(event) || holds_throughout(event);
}

bool Hosts::holds_throughout(const Event& event) {
  const auto* const made = std::get_if<HostCall>(&event);
  return made != nullptr && made->holds == HostCall::Holds::throughout;
}

bool Hosts::wants_driver(const Call& call, const Event& event) const {
  // A single thread never waits for the driver.
  if (next_.empty() || gaps() == nullptr || call.has_turn) return false;
  return driver_ns(event) > 0 || (is_in_turn(event) && driver_free_ns_ > call.due_ns);
}

bool Hosts::is_in_turn(const Event& event) {
  return std::visit(Overloaded{
                        [](const Launch&) { return true; },
                        [](const Release&) { return false; },
                        [](const RecordEvent&) { return false; },
                        [](const WaitEvent&) { return false; },
                        [](const GraphLaunch&) { return true; },
                        [](const Copy&) { return true; },
                        [](const Memset&) { return true; },
                        [](const Synchronize&) { return false; },
                        [](const HostFunction&) { return false; },
                        [](const HostCall& made) { return made.holds != HostCall::Holds::never; },
                        [](const WriteValue&) { return false; },
                        [](const WaitValue&) { return false; },
                    },
                    event);
}

int64_t Hosts::driver_ns(const Event& event) const {
  if (!is_in_turn(event)) return 0;
  const auto* const made = std::get_if<HostCall>(&event);
  return made != nullptr ? made->duration_ns
                         : std::min(spec_of(event).driver_call_ns, call_ns(event));
}

bool Hosts::needs_warmup(const Call& call, const Event& event) const {
  const DeviceSpec& spec = spec_of(event);
  return call.needs_warmup && gaps() != nullptr && kind_of(event) &&
         spec.first_call_ns + spec.first_kind_call_ns + spec.new_stream_call_ns > 0;
}

void Hosts::warm_up(Call call, const Event& event) {
  call.needs_warmup = false;
  const DeviceSpec& spec = spec_of(event);
  const Kind kind = *kind_of(event);
  const uint32_t before = std::exchange(call.warmup.kinds, call.warmup.kinds | bit(kind));
  int64_t additional_ns = before == call.warmup.kinds ? 0 : spec.first_kind_call_ns;
  if (kind != Kind::record && kind != Kind::wait) {
    additional_ns += spec.first_call_ns / ++call.warmup.works;
    if (note_stream_use(gpu_of(event), stream_of(event), kind)) {
      additional_ns += spec.new_stream_call_ns;
    }
  }
  reschedule(call, call.due_ns + additional_ns);
}

bool Hosts::note_stream_use(const int32_t gpu, const std::optional<int32_t> stream,
                            const Kind kind) {
  if (!stream) return true;
  uint32_t& kinds = used_kinds_[{gpu, *stream}];
  return std::exchange(kinds, kinds | bit(kind)) != kinds;
}

bool Hosts::try_take_driver(Call& call, const Event& event) {
  if (driver_free_ns_ > call.due_ns) return false;
  call.has_turn = true;
  driver_free_ns_ = call.due_ns + driver_ns(event);
  return true;
}

void Hosts::queue_for_driver(Call call, const Event& event) {
  call.has_turn = true;
  const int64_t from_ns = driver_free_ns_;
  driver_free_ns_ = from_ns + driver_ns(event);
  reschedule(call, from_ns);
}

bool Hosts::waits_for_end(const Event& event) const {
  const auto* const copy = std::get_if<Copy>(&event);
  return copy != nullptr && times() == nullptr &&
         (copy->blocking || (copy->kind == CopyKind::d2h && !copy->pinned));
}

void Hosts::load(Call call, const Event& event) {
  if (call.load == Load::none) {
    call.load = Load::requested;
    reschedule(call, call.due_ns + spec_of(event).launch_call_ns);
    return;
  }
  call.load = Load::loaded;
  locked_by_ = call.event;
  lock_is_of_driver_ = false;
  const auto& launch = std::get<Launch>(event);
  if (launch.kernel) loaded_.insert({launch.gpu, *launch.kernel});
  reschedule(call, call.due_ns + spec_of(event).first_use_ns);
}

void Hosts::wait(const Call& call, const Event& event, const std::optional<OperationOfGpu> item,
                 const int64_t now) {
  const auto* const copy = std::get_if<Copy>(&event);
  const bool has_driver = holds_throughout(event);
  if (has_driver || must_grow_memory(event) || (copy != nullptr && copy->stream == kLegacyStream)) {
    locked_by_ = call.event;
    lock_is_of_driver_ = has_driver;
  }
  if (item) {
    waiting_.emplace(*item, call);
  } else {
    resume(call, event, now);
  }
}

void Hosts::wait_for_place(Call call, const Event& event, const OperationOfGpu item) {
  call.wants_place = true;
  if (!std::exchange(call.lacks_place, true)) note_without_place(event, 1);
  waiting_.emplace(item, call);
}

void Hosts::take_place(Call& call, const Event& event, const int64_t now) {
  if (!std::exchange(call.lacks_place, false)) return;
  note_without_place(event, -1);
  release_blocked(now);
}

void Hosts::note_without_place(const Event& event, const int32_t change) {
  if (std::holds_alternative<WriteValue>(event) || std::holds_alternative<WaitValue>(event)) return;
  works_without_place_ += change;
  if (std::holds_alternative<HostFunction>(event)) functions_without_place_ += change;
}

void Hosts::release_blocked(const int64_t now) {
  for (const Call& other : std::exchange(blocked_, {})) reschedule(other, now);
}

void Hosts::resume(const OperationOfGpu item, const Sequence& sequence, const int64_t now) {
  const Call call = waiting_.extract(item).mapped();
  resume(call, sequence[call.event], now);
}

void Hosts::resume(Call call, const Event& event, const int64_t now) {
  if (std::exchange(call.wants_place, false)) return reschedule(call, now);
  call.has_waited = true;
  if (std::holds_alternative<Copy>(event)) {
    delay_next_launch(call, now);
    finish_call(call, event, now);
    return;
  }
  const auto* const launch = std::get_if<Launch>(&event);
  const DeviceSpec& spec = spec_of(event);
  const int64_t takes_ns = launch == nullptr
                               ? spec.synchronize_ns + spec.first_call_ns / ++call.warmup.waits
                               : growth_ns(*launch);
  reschedule(call, now + takes_ns);
}

std::vector<size_t> Hosts::unreturned() {
  std::vector<size_t> events;
  const auto add = [&](const Call& call) {
    events.push_back(call.event);
    if (!called_.empty()) called_[call.event] = {call.began_ns, kNever};
  };
  for (const auto& [operation, call] : waiting_) add(call);
  std::ranges::for_each(blocked_, add);
  std::ranges::sort(events);
  return events;
}

int64_t Hosts::growth_ns(const Launch& launch) const {
  const DeviceSpec& spec = *specs_[launch.gpu];
  return spec.local_memory_growth_ns + launch.local_memory * spec.local_memory_growth_per_byte_ns;
}

void Hosts::reschedule(Call call, const int64_t due_ns) {
  call.due_ns = due_ns;
  delay_next_launch(call, due_ns);
  schedule(call);
}

void Hosts::schedule(const Call& call) {
  const auto event = static_cast<int32_t>(call.event);
  due_.emplace(event, call);
  events_.push(
      Phase::call, Domain::gpu,
      {.time_ns = call.due_ns, .subject = event, .order = static_cast<int64_t>(call.load)});
}

void Hosts::delay_next_launch(Call& call, const int64_t until_ns) const {
  const auto* const intervals = std::get_if<CallIntervals>(&given_);
  if (launches(call.event)) {
    call.launched_ns = until_ns;
  } else if (intervals != nullptr && call.launched_ns >= 0) {
    call.launched_ns = std::max(call.launched_ns, until_ns - intervals->interval_ns);
  }
}

void Hosts::finish_call(const Call& call, const Event& event, const int64_t end_ns) {
  if (must_grow_memory(event)) {
    const auto& launch = std::get<Launch>(event);
    local_memory_[launch.gpu] = round_up(launch.local_memory, spec_of(event).local_memory_unit);
  }
  if (locked_by_ == call.event) {
    locked_by_.reset();
    release_blocked(end_ns);
  }
  const int64_t returned_ns = end_ns + call_ns(event);
  if (!called_.empty()) called_[call.event] = {call.began_ns, returned_ns};
  const size_t next = next_of(call.event);
  if (next + 1 >= first_launch_.size()) return;
  schedule_next({.due_ns = returned_ns,
                 .event = next,
                 .began_ns = 0,
                 .launched_ns = call.launched_ns,
                 .warmup = call.warmup});
}

int64_t Hosts::call_ns(const Event& event) const {
  const auto* const made = std::get_if<HostCall>(&event);
  if (made != nullptr) return times() == nullptr ? made->duration_ns : 0;
  if (gaps() == nullptr) return 0;
  const DeviceSpec& spec = spec_of(event);
  const auto of_transfer = [&](const bool takes_as_a_launch) {
    return takes_as_a_launch ? spec.launch_call_ns : spec.copy_call_ns;
  };
  return std::visit(
      Overloaded{
          [&](const Launch&) { return spec.launch_call_ns; },
          [](const Release&) { return int64_t{0}; },
          [&](const RecordEvent& record) {
            return record.timing ? spec.value_call_ns : spec.event_call_ns;
          },
          [&](const WaitEvent&) { return spec.event_call_ns; },
          [&](const GraphLaunch&) { return spec.launch_call_ns; },
          [&](const Copy& copy) { return of_transfer(!copy.pinned || is_kernel(spec, copy)); },
          [&](const Memset& memset) { return of_transfer(is_kernel(spec, memset)); },
          [](const Synchronize&) { return int64_t{0}; },
          [&](const HostFunction&) { return spec.host_function_call_ns; },
          [](const HostCall&) { return int64_t{0}; },
          [&](const WriteValue&) { return spec.value_call_ns; },
          [&](const WaitValue&) { return spec.value_call_ns; },
      },
      event);
}

void Hosts::schedule_next(Call call) {
  if (const CallGaps* const given = gaps()) {
    call.due_ns += given->gap_ns[call.event];
  } else if (const CallTimes* const known = times()) {
    const bool is_known = launches(call.event) || !known->called_ns.empty();
    if (is_known) call.due_ns = std::max(call.due_ns, called_ns(call.event));
  } else if (launches(call.event)) {
    const int64_t returned_ns = call.due_ns;
    const int64_t interval_ns = std::get<CallIntervals>(given_).interval_ns;
    call.launched_ns = call.launched_ns < 0 ? returned_ns : call.launched_ns + interval_ns;
    call.due_ns = std::max(call.due_ns, call.launched_ns);
  }
  call.began_ns = call.due_ns;
  schedule(call);
}

}  // namespace tbsched
