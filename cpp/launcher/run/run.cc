#include "launcher/run/run.h"

#include <algorithm>
#include <array>
#include <set>
#include <thread>
#include <utility>
#include <variant>

#include "launcher/driver/error.h"

namespace tbsched::cuda {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A launch call that has not returned for this long is taken to be blocked by held blocks: 30 ms
// with a settling time of 3 ms. With less patience, it is checked twice.
constexpr auto kCallPatience = milliseconds(30);
constexpr int kLongerIfCalling = 10;
constexpr auto kSpin = microseconds(500);  // without progress, before the polling thread sleeps
constexpr auto kNap = microseconds(50);
// A block lingers a little after the host saw it end, then leaves; its room is free after that.
constexpr auto kExit = microseconds(6);
// Blocks of a launch that fit are placed within a microsecond of each other, and seen within ten.
constexpr int kSoonerOnceStarted = 8;
constexpr auto kHoldBeyondDeadline = seconds(1);
// A launch call may block if a stream has about a thousand waiting launches: the thread that
// releases blocks must not make it.
constexpr size_t kLaunchesThatNeverBlock = 256;

// Returns how many blocks have made the mark. They do so roughly in order: `prefix` is the number
// of first blocks that are known to have made it.
size_t count_marked(const std::span<BlockRecord> records, uint32_t BlockRecord::* const mark,
                    size_t& prefix) {
  const auto there = [mark](BlockRecord& record) {
    return std::atomic_ref(record.*mark).load(std::memory_order_relaxed) != 0;
  };
  while (prefix < records.size() && there(records[prefix])) ++prefix;
  return prefix + static_cast<size_t>(std::ranges::count_if(records.subspan(prefix), there));
}

bool has_met(const PlannedMeeting& meeting) {
  return std::atomic_ref(*meeting.met).load(std::memory_order_relaxed) != 0;
}

void launch_probe(const Driver& driver, PlannedLaunch& planned) {
  const CurrentContext current = planned.function->enter();
  planned.function->prepare(planned.launch);
  const LaunchConfiguration configuration(planned.launch, planned.stream, planned.completion);
  std::array<void*, 1> arguments{&planned.arguments};
  planned.issued = std::chrono::steady_clock::now();
  driver.launch_kernel(&configuration.config, planned.function->handle(), arguments.data(),
                       nullptr);
}

void wait_for_work(const Driver& driver, const PlannedMark& mark) {
  if (mark.event != nullptr) {
    driver.event_synchronize(mark.event);
  } else if (mark.is_of_stream) {
    driver.stream_synchronize(mark.stream);
  } else {
    driver.context_synchronize();
  }
}

}  // namespace

std::chrono::nanoseconds longest_hold(const std::chrono::nanoseconds deadline) {
  return deadline + kHoldBeyondDeadline;
}

bool poll_until(const std::chrono::nanoseconds patience, const std::function<bool()>& done) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= limit) return false;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

bool all_done(const Driver& driver, const Workers& workers, const Plan& plan) {
  bool done = !workers.busy();
  for_each_stream(plan, [&](const CUstream stream) {
    done = done && driver.stream_query.code(stream) == CUDA_SUCCESS;
  });
  return done;
}

Run::Run(const Context& context, Workers& workers, Plan& plan, const RunOptions& options,
         bool& idle, TimeSpent& spent)
    : context_(context),
      workers_(workers),
      plan_(plan),
      timed_(plan.timed),
      launches_(plan.launches),
      marks_(plan.marks),
      graphs_(plan.graphs),
      transfers_(plan.transfers),
      values_(plan.values),
      calls_(plan.calls),
      options_(options),
      idle_(idle),
      spent_(spent),
      deadline_(Clock::now() + options.deadline),
      progress_(plan.launches.size()) {}

Run::~Run() {
  if (!idle_ && !abandoned_) abandon();
}

void Run::perform(const Sequence& sequence) {
  try {
    play(sequence);
    await_meetings();
    if (!timed_) clean_up();
    synchronise();
  } catch (const DeadlineExceeded& exceeded) {
    abandon();
    // A fault on the device looks like blocks that never start; the driver's status is more
    // precise.
    const auto& query = context_.driver().stream_query;
    for_each_stream(plan_, [&](const CUstream stream) {
      const CUresult result = workers_.busy() ? CUDA_SUCCESS : query.code(stream);
      if (result != CUDA_ERROR_NOT_READY) query.check(result);
    });
    throw DeadlineExceeded(exceeded.what() +
                           std::string(idle_ ? "; every block has been told to leave, and has left"
                                             : "; every block has been told to leave, but some "
                                               "have not left yet: what they use is kept"));
  }
}

void Run::play(const Sequence& sequence) {
  size_t number = 0;
  size_t mark = 0;
  size_t graph = 0;
  size_t transfer = 0;
  size_t value = 0;
  const auto start = [&](const size_t launch_number) {
    if (!timed_) return launch(launch_number);
    progress_[launch_number].released = true;
    submit(launch_number);
  };
  hold_workers(sequence);
  for (event_ = 0; event_ < sequence.size(); ++event_) {
    const Event& event = sequence[event_];
    host_ = host_of(event);
    ask();
    std::visit(Overloaded{
                   [&](const Launch&) { start(number++); },
                   [&](const Release& target) { release(static_cast<size_t>(target.launch)); },
                   [&](const RecordEvent&) { record(marks_[mark++]); },
                   [&](const WaitEvent&) { wait_for(marks_[mark++]); },
                   [&](const Synchronize&) { synchronize(marks_[mark++]); },
                   [&](const GraphLaunch& launched) {
                     number += count_launches(*launched.graph);
                     launch(graphs_[graph++]);
                   },
                   [&](const Copy&) { issue(transfers_[transfer++]); },
                   [&](const Memset&) { issue(transfers_[transfer++]); },
                   [&](const HostFunction&) { issue(transfers_[transfer++]); },
                   [&](const HostCall& call) { carry_out(call, marks_[mark++]); },
                   [&](const WriteValue&) { issue(values_[value++]); },
                   [&](const WaitValue&) { issue(values_[value++]); },
               },
               event);
  }
  may_begin_->store(true);
  if (timed_ && plan_.meetings.empty()) {
    wait([](const Count& count) { return count.waiting == 0 && count.leaving == 0; });
  }
}

void Run::submit(const size_t number) {
  idle_ = false;
  progress_[number].submitted = true;
  PlannedLaunch& planned = launches_[number];
  // It is not documented whether a waiting cooperative launch blocks its caller.
  const bool blocks = number >= kLaunchesThatNeverBlock || planned.launch.cooperative ||
                      std::cmp_greater(planned.launch.local_memory, context_.local_memory());
  if (!timed_ && !options_.by_worker && !blocks && !workers_.busy()) {
    launch_probe(context_.driver(), planned);
    return;
  }
  if (!options_.issue_times.empty()) {
    workers_.of(host_).submit([pace = pace_, time = begin_ + options_.issue_times.at(number)] {
      pace->wait_until(time);
    });
  }
  by_worker([&planned](const Driver& driver) { launch_probe(driver, planned); });
}

void Run::launch(const PlannedGraph& graph) {
  const size_t count = count_launches(*graph.graph);
  for (size_t node = 0; node < count; ++node) {
    Progress& progress = progress_[graph.first + node];
    progress.submitted = progress.released = true;
  }
  const auto nodes = launches_.subspan(graph.first, count);
  by_worker([nodes, &graph](const Driver&) { graph.ready->launch(graph.stream, nodes); });
}

void Run::record(const PlannedMark& mark) {
  by_worker([mark](const Driver& driver) { driver.event_record(mark.event, mark.stream); });
}

void Run::wait_for(const PlannedMark& mark) {
  by_worker([mark](const Driver& driver) {
    driver.stream_wait_event(mark.stream, mark.event, CU_EVENT_WAIT_DEFAULT);
  });
}

void Run::synchronize(const PlannedMark& mark) {
  by_worker([mark](const Driver& driver) { wait_for_work(driver, mark); });
}

void Run::carry_out(const HostCall& call, const PlannedMark& mark) {
  by_worker([waits = call.waits, duration = std::chrono::nanoseconds(call.duration_ns),
             mark](const Driver& driver) {
    if (waits) wait_for_work(driver, mark);
    const auto end = Clock::now() + duration;
    while (Clock::now() < end) {
      // Too short a time to sleep.
    }
  });
}

template <typename Planned>
void Run::issue(const Planned& planned) {
  by_worker([&planned](const Driver& driver) { planned.issue(driver); });
}

template <typename Call>
void Run::by_worker(const Call& call) {
  idle_ = false;
  workers_.of(host_).submit([&context = context_, &planned = calls_[event_], call] {
    const CurrentContext current(context);
    planned.begin = Clock::now();
    call(context.driver());
    planned.end = Clock::now();
  });
}

// Holds workers until all of them have their calls, so that they begin together.
void Run::hold_workers(const Sequence& sequence) {
  std::set<int32_t> hosts;
  for (const Event& event : sequence) hosts.insert(host_of(event));
  if (hosts.size() < 2) return;
  for (const int32_t host : hosts) {
    workers_.of(host).submit([may_begin = may_begin_] {
      while (!may_begin->load()) std::this_thread::yield();
    });
  }
}

void Run::launch(const size_t number) {
  const Stopwatch stopwatch(spent_.launch);
  while (Clock::now() < room_free_at_) {
    // Too short a time to sleep.
  }
  submit(number);
  wait([](const Count& count) { return count.waiting == 0; });
}

void Run::release(const size_t number) {
  const Stopwatch stopwatch(spent_.release);
  release_launch(number);
  wait([](const Count& count) { return count.waiting == 0 && count.leaving == 0; });
  room_free_at_ = Clock::now() + kExit;
}

// Waits for meetings. Blocks learn within microseconds that the last of them has arrived. In a held
// sequence a group with blocks that wait for room hangs: then the wait ends. In a timed one the
// wait has just begun, and blocks that are still there at its end are released.
void Run::await_meetings() {
  if (plan_.meetings.empty()) return;
  wait([this](const Count& count) {
    if (options_.together) return all_have_ended(count);
    return timed_ ? count.met == plan_.meetings.size() && !workers_.busy()
                  : count.met >= complete();
  });
  for (const PlannedMeeting& meeting : plan_.meetings) met_.push_back(has_met(meeting));
  if (!timed_) return;
  // Blocks that take the room of released ones may meet: all runs must have read who has met.
  if (options_.together) options_.together->arrive_and_wait();
  pace_->given_up.store(true);
  release_launch(0);  // launches of a timed run are released together
}

// Returns whether all blocks have left by themselves, on all GPUs, or no GPU waits any longer.
bool Run::all_have_ended(const Count& count) {
  Together& together = *options_.together;
  if (count.waiting == 0 && count.leaving == 0 && !workers_.busy()) {
    together.note_done(options_.part);
  }
  return together.all_done() || together.given_up();
}

// Returns the number of groups all of whose blocks have started.
size_t Run::complete() const {
  const auto whole = [this](const size_t number) {
    return progress_[number].started == launches_[number].records.size();
  };
  return static_cast<size_t>(std::ranges::count_if(plan_.meetings, [&](const auto& meeting) {
    return std::ranges::all_of(meeting.launches, whole);
  }));
}

// Releases launch by launch, waiting for each, so that the GPU starts the next sequence from the
// same state. This does not work if blocks have waited for room, and is unnecessary if any state
// will do.
void Run::clean_up() {
  const Stopwatch stopwatch(spent_.clean_up);
  left_at_once_ = options_.any_state || look().waiting != 0;
  for (size_t number = 0; number < launches_.size(); ++number) {
    if (progress_[number].released) continue;
    release_launch(number);
    if (left_at_once_) continue;
    const size_t blocks = launches_[number].records.size();
    wait([&](const Count&) { return progress_[number].ended == blocks; });
  }
  wait([](const Count& count) { return count.waiting == 0 && count.leaving == 0; });
}

template <typename Done>
bool Run::wait(const Done& done) {
  Count last = look();
  auto moved = Clock::now();
  while (!done(last)) {
    workers_.rethrow();
    const auto now = Clock::now();
    if (now >= deadline_) throw DeadlineExceeded(where_it_stands());
    ask();
    if (options_.together) options_.together->note_calling(options_.part, workers_.busy());
    if (const Count count = look(); count != last) {
      last = count;
      moved = now;
      if (options_.together) options_.together->note_move(now);
    } else if (options_.together && options_.together->last_move() > moved) {
      moved = options_.together->last_move();
    } else if (patience_over(count, now - moved)) {
      spent_.settle += now - moved;
      if (options_.together) options_.together->give_up();
      return false;
    }
    if (now - moved < kSpin) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
  workers_.rethrow();
  return true;
}

void Run::ask() {
  const auto now = Clock::now();
  if (now - asked_ < kBetweenInterrupts) return;
  asked_ = now;
  options_.interrupted();
}

bool Run::patience_over(const Count& count, const Clock::duration still) const {
  if (timed_) return !plan_.meetings.empty() && !pace_->is_waiting && still >= patience();
  // With nothing held, waiting launches cannot wait for room: they will start. So will exits.
  if (count.held == 0 || count.leaving != 0) return false;
  const bool sooner = count.unseen == 0 && !workers_.busy();
  return still >= patience() / (sooner ? kSoonerOnceStarted : 1);
}

Run::Clock::duration Run::patience() const {
  const bool calling = options_.together ? options_.together->any_is_calling() : workers_.busy();
  if (!calling) return options_.settle;
  const auto call = std::min<Clock::duration>(kCallPatience, kLongerIfCalling * options_.settle);
  return std::max<Clock::duration>(call, options_.settle);
}

void Run::Pace::wait_until(const Clock::time_point time) {
  is_waiting.store(true);
  while (Clock::now() < time && !given_up.load()) {
    // Too short a time to sleep.
  }
  is_waiting.store(false);
}

Run::Count Run::look() {
  // Read first, so that a call that returns in between counts as progress the next time.
  Count count{.returned = workers_.returned()};
  for (size_t number = 0; number < launches_.size(); ++number) {
    Progress& progress = progress_[number];
    if (!progress.submitted) break;
    const std::span<BlockRecord> records = launches_[number].records;
    if (progress.started < records.size()) {
      progress.started = count_marked(records, &BlockRecord::started, progress.started_prefix);
    }
    if (progress.released && progress.ended < records.size()) {
      progress.ended = count_marked(records, &BlockRecord::ended, progress.ended_prefix);
    }
    // A block may start and end between the two counts.
    progress.started = std::max(progress.started, progress.ended);
    count.waiting += records.size() - progress.started;
    count.unseen += progress.started == 0 ? 1 : 0;
    (progress.released ? count.leaving : count.held) += progress.started - progress.ended;
  }
  count.met = static_cast<size_t>(std::ranges::count_if(plan_.meetings, has_met));
  return count;
}

void Run::release_launch(const size_t number) {
  progress_[number].released = true;
  const PlannedLaunch& launch = launches_[number];
  std::atomic_ref(*launch.release).store(launch.arguments.run, std::memory_order_release);
}

void Run::synchronise() {
  const Stopwatch stopwatch(spent_.synchronise);
  const auto wait_while = [this](const auto& busy) {
    while (busy()) {
      if (Clock::now() >= deadline_) throw DeadlineExceeded(where_it_stands());
      ask();
      std::this_thread::yield();
    }
  };
  wait_while([this] { return workers_.busy(); });
  workers_.rethrow();
  const Driver& driver = context_.driver();
  for_each_stream(plan_, [&](const CUstream stream) {
    CUresult result = CUDA_SUCCESS;
    wait_while([&] {
      result = driver.stream_query.code(stream);
      return result == CUDA_ERROR_NOT_READY;
    });
    driver.stream_query.check(result);
  });
  idle_ = true;
}

// Cleans up after an error: releases everything at once, and makes no driver call before the worker
// has returned from its own.
void Run::abandon() noexcept {
  abandoned_ = true;
  may_begin_->store(true);
  pace_->given_up.store(true);
  workers_.cancel();
  for (size_t number = 0; number < launches_.size(); ++number) release_launch(number);
  idle_ = poll_until(kUntilLeft, [this] {
    end_waits(plan_.values);
    return all_done(context_.driver(), workers_, plan_);
  });
  workers_.cancel();  // also drops an error of the call in progress
}

std::string Run::where_it_stands() const {
  const auto given = std::chrono::duration_cast<milliseconds>(options_.deadline).count();
  std::string text = "observe: not done after " + std::to_string(given) + " ms";
  for (size_t number = 0; number < launches_.size(); ++number) {
    const Progress& progress = progress_[number];
    const size_t blocks = launches_[number].records.size();
    if (!progress.submitted || progress.started == blocks) continue;
    text += "; launch " + std::to_string(number) + ": " + std::to_string(progress.started) +
            " of " + std::to_string(blocks) + " blocks started";
  }
  return text;
}

}  // namespace tbsched::cuda
