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
constexpr int kCallPatienceFactor = 10;
constexpr auto kSpinTime = microseconds(500);  // without progress, before the polling thread sleeps
constexpr auto kPollInterval = microseconds(50);
// A block lingers a little after the host saw it end, then leaves; its room is free after that.
constexpr auto kExitTime = microseconds(6);
// Blocks of a launch that fit are placed within a microsecond of each other, and seen within ten.
constexpr int kOnceStartedDivisor = 8;
constexpr auto kHoldBeyondDeadline = seconds(1);
// A launch call may block if a stream has about a thousand waiting launches: the thread that
// releases blocks must not make the call. Number of launches that surely do not block.
constexpr size_t kMaxUnblockedLaunches = 256;

// Returns how many blocks have made the mark, a field that is not 0. They make it roughly in order:
// `prefix` is the number of first blocks that are known to have made it, and is brought up to date.
size_t count_marked(const std::span<BlockRecord> records, uint32_t BlockRecord::* const mark,
                    size_t& prefix) {
  const auto has_mark = [mark](BlockRecord& record) {
    return std::atomic_ref(record.*mark).load(std::memory_order_relaxed) != 0;
  };
  while (prefix < records.size() && has_mark(records[prefix])) ++prefix;
  return prefix + static_cast<size_t>(std::ranges::count_if(records.subspan(prefix), has_mark));
}

// Returns whether all blocks of a group have arrived.
bool has_met(const PlannedMeeting& meeting) {
  return std::atomic_ref(*meeting.met).load(std::memory_order_relaxed) != 0;
}

// Launches the kernel of a planned launch in its stream, and notes when.
void launch_probe(const Driver& driver, PlannedLaunch& planned) {
  const CurrentContext current = planned.function->enter();
  planned.function->prepare(planned.launch);
  const LaunchConfiguration configuration(planned.launch, planned.stream, planned.completion);
  std::array<void*, 1> arguments{&planned.arguments};
  planned.issued = std::chrono::steady_clock::now();
  driver.launch_kernel(&configuration.config, planned.function->handle(), arguments.data(),
                       nullptr);
}

// Waits for the event, the stream or the context of a mark.
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
    std::this_thread::sleep_for(kPollInterval);
  }
  return true;
}

bool all_done(const Driver& driver, const Workers& workers, const Plan& plan) {
  bool done = !workers.is_busy();
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
    issue_events(sequence);
    await_meetings();
    if (!timed_) clean_up();
    synchronise();
  } catch (const DeadlineExceeded& exceeded) {
    abandon();
    // A fault on the device looks like blocks that never start; the driver's status is more
    // precise.
    const auto& query = context_.driver().stream_query;
    for_each_stream(plan_, [&](const CUstream stream) {
      const CUresult result = workers_.is_busy() ? CUDA_SUCCESS : query.code(stream);
      if (result != CUDA_ERROR_NOT_READY) query.check(result);
    });
    throw DeadlineExceeded(exceeded.what() +
                           std::string(idle_ ? "; every block has been told to leave, and has left"
                                             : "; every block has been told to leave, but some "
                                               "have not left yet: what they use is kept"));
  }
}

void Run::issue_events(const Sequence& sequence) {
  size_t launch_index = 0;
  size_t mark = 0;
  size_t graph = 0;
  size_t transfer = 0;
  size_t value = 0;
  const auto start = [&](const size_t index) {
    if (!timed_) return launch(index);
    progress_[index].released = true;
    submit(index);
  };
  hold_workers(sequence);
  for (event_ = 0; event_ < sequence.size(); ++event_) {
    const Event& event = sequence[event_];
    host_ = host_of(event);
    call_interrupted();
    std::visit(Overloaded{
                   [&](const Launch&) { start(launch_index++); },
                   [&](const Release& target) { release(static_cast<size_t>(target.launch)); },
                   [&](const RecordEvent&) { record_event(marks_[mark++]); },
                   [&](const WaitEvent&) { wait_event(marks_[mark++]); },
                   [&](const Synchronize&) { synchronize(marks_[mark++]); },
                   [&](const GraphLaunch& launched) {
                     launch_index += count_launches(*launched.graph);
                     launch(graphs_[graph++]);
                   },
                   [&](const Copy&) { issue(transfers_[transfer++]); },
                   [&](const Memset&) { issue(transfers_[transfer++]); },
                   [&](const HostFunction&) { issue(transfers_[transfer++]); },
                   [&](const HostCall& call) { make_host_call(call, marks_[mark++]); },
                   [&](const WriteValue&) { issue(values_[value++]); },
                   [&](const WaitValue&) { issue(values_[value++]); },
               },
               event);
  }
  may_begin_->store(true);
  if (timed_ && plan_.meetings.empty()) {
    wait_until([](const Count& count) { return count.pending == 0 && count.leaving == 0; });
  }
}

void Run::submit(const size_t launch_index) {
  idle_ = false;
  progress_[launch_index].submitted = true;
  PlannedLaunch& planned = launches_[launch_index];
  // It is not documented whether a waiting cooperative launch blocks its caller.
  const bool blocks = launch_index >= kMaxUnblockedLaunches || planned.launch.cooperative ||
                      std::cmp_greater(planned.launch.local_memory, context_.local_memory());
  if (!timed_ && !options_.by_worker && !blocks && !workers_.is_busy()) {
    launch_probe(context_.driver(), planned);
    return;
  }
  if (!options_.issue_times.empty()) {
    workers_.of(host_).submit(
        [pace = pace_, time = begin_ + options_.issue_times.at(launch_index)] {
          pace->wait_until(time);
        });
  }
  submit_call([&planned](const Driver& driver) { launch_probe(driver, planned); });
}

void Run::launch(const PlannedGraph& graph) {
  const size_t count = count_launches(*graph.graph);
  for (size_t node = 0; node < count; ++node) {
    Progress& progress = progress_[graph.first + node];
    progress.submitted = progress.released = true;
  }
  const auto nodes = launches_.subspan(graph.first, count);
  submit_call([nodes, &graph](const Driver&) { graph.ready->launch(graph.stream, nodes); });
}

void Run::record_event(const PlannedMark& mark) {
  submit_call([mark](const Driver& driver) { driver.event_record(mark.event, mark.stream); });
}

void Run::wait_event(const PlannedMark& mark) {
  submit_call([mark](const Driver& driver) {
    driver.stream_wait_event(mark.stream, mark.event, CU_EVENT_WAIT_DEFAULT);
  });
}

void Run::synchronize(const PlannedMark& mark) {
  submit_call([mark](const Driver& driver) { wait_for_work(driver, mark); });
}

void Run::make_host_call(const HostCall& call, const PlannedMark& mark) {
  submit_call([waits = call.waits, duration = std::chrono::nanoseconds(call.duration_ns),
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
  submit_call([&planned](const Driver& driver) { planned.issue(driver); });
}

template <typename Call>
void Run::submit_call(const Call& call) {
  idle_ = false;
  workers_.of(host_).submit([&context = context_, &planned = calls_[event_], call] {
    const CurrentContext current(context);
    planned.begin = Clock::now();
    call(context.driver());
    planned.end = Clock::now();
  });
}

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

void Run::launch(const size_t launch_index) {
  const Stopwatch stopwatch(spent_.launch);
  while (Clock::now() < room_free_at_) {
    // Too short a time to sleep.
  }
  submit(launch_index);
  wait_until([](const Count& count) { return count.pending == 0; });
}

void Run::release(const size_t launch_index) {
  const Stopwatch stopwatch(spent_.release);
  release_launch(launch_index);
  wait_until([](const Count& count) { return count.pending == 0 && count.leaving == 0; });
  room_free_at_ = Clock::now() + kExitTime;
}

void Run::await_meetings() {
  if (plan_.meetings.empty()) return;
  wait_until([this](const Count& count) {
    if (options_.together) return all_have_ended(count);
    return timed_ ? count.met_groups == plan_.meetings.size() && !workers_.is_busy()
                  : count.met_groups >= count_complete_groups();
  });
  for (const PlannedMeeting& meeting : plan_.meetings) met_.push_back(has_met(meeting));
  if (!timed_) return;
  // Blocks that take the room of released ones may meet: all runs must have read who has met.
  if (options_.together) options_.together->arrive_and_wait();
  pace_->given_up.store(true);
  release_launch(0);  // launches of a timed run are released together
}

bool Run::all_have_ended(const Count& count) {
  Together& together = *options_.together;
  if (count.pending == 0 && count.leaving == 0 && !workers_.is_busy()) {
    together.note_done(options_.part);
  }
  return together.all_done() || together.given_up();
}

size_t Run::count_complete_groups() const {
  const auto whole = [this](const size_t launch_index) {
    return progress_[launch_index].started == launches_[launch_index].records.size();
  };
  return static_cast<size_t>(std::ranges::count_if(plan_.meetings, [&](const auto& meeting) {
    return std::ranges::all_of(meeting.launches, whole);
  }));
}

void Run::clean_up() {
  const Stopwatch stopwatch(spent_.clean_up);
  released_at_once_ = options_.any_state || count_progress().pending != 0;
  for (size_t launch_index = 0; launch_index < launches_.size(); ++launch_index) {
    if (progress_[launch_index].released) continue;
    release_launch(launch_index);
    if (released_at_once_) continue;
    const size_t blocks = launches_[launch_index].records.size();
    wait_until([&](const Count&) { return progress_[launch_index].ended == blocks; });
  }
  wait_until([](const Count& count) { return count.pending == 0 && count.leaving == 0; });
}

template <typename Done>
bool Run::wait_until(const Done& done) {
  Count last = count_progress();
  auto moved = Clock::now();
  while (!done(last)) {
    workers_.rethrow();
    const auto now = Clock::now();
    if (now >= deadline_) throw DeadlineExceeded(describe_progress());
    call_interrupted();
    if (options_.together) options_.together->note_calling(options_.part, workers_.is_busy());
    if (const Count count = count_progress(); count != last) {
      last = count;
      moved = now;
      if (options_.together) options_.together->note_move(now);
    } else if (options_.together && options_.together->last_move() > moved) {
      moved = options_.together->last_move();
    } else if (is_patience_over(count, now - moved)) {
      spent_.settle += now - moved;
      if (options_.together) options_.together->give_up();
      return false;
    }
    if (now - moved < kSpinTime) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPollInterval);
    }
  }
  workers_.rethrow();
  return true;
}

void Run::call_interrupted() {
  const auto now = Clock::now();
  if (now - interrupted_called_ < kBetweenInterrupts) return;
  interrupted_called_ = now;
  options_.interrupted();
}

bool Run::is_patience_over(const Count& count, const Clock::duration unchanged) const {
  if (timed_) return !plan_.meetings.empty() && !pace_->is_waiting && unchanged >= patience();
  // With nothing held, waiting launches cannot wait for room: they will start. So will exits.
  if (count.held == 0 || count.leaving != 0) return false;
  const bool sooner = count.unstarted_launches == 0 && !workers_.is_busy();
  return unchanged >= patience() / (sooner ? kOnceStartedDivisor : 1);
}

Run::Clock::duration Run::patience() const {
  const bool calling = options_.together ? options_.together->any_is_calling() : workers_.is_busy();
  if (!calling) return options_.settle;
  const auto call = std::min<Clock::duration>(kCallPatience, kCallPatienceFactor * options_.settle);
  return std::max<Clock::duration>(call, options_.settle);
}

void Run::Pace::wait_until(const Clock::time_point time) {
  is_waiting.store(true);
  while (Clock::now() < time && !given_up.load()) {
    // Too short a time to sleep.
  }
  is_waiting.store(false);
}

Run::Count Run::count_progress() {
  // Read first, so that a call that returns in between counts as progress the next time.
  Count count{.returned = workers_.returned()};
  for (size_t launch_index = 0; launch_index < launches_.size(); ++launch_index) {
    Progress& progress = progress_[launch_index];
    if (!progress.submitted) break;
    const std::span<BlockRecord> records = launches_[launch_index].records;
    if (progress.started < records.size()) {
      progress.started = count_marked(records, &BlockRecord::started, progress.started_prefix);
    }
    if (progress.released && progress.ended < records.size()) {
      progress.ended = count_marked(records, &BlockRecord::ended, progress.ended_prefix);
    }
    // A block may start and end between the two counts.
    progress.started = std::max(progress.started, progress.ended);
    count.pending += records.size() - progress.started;
    count.unstarted_launches += progress.started == 0 ? 1 : 0;
    (progress.released ? count.leaving : count.held) += progress.started - progress.ended;
  }
  count.met_groups = static_cast<size_t>(std::ranges::count_if(plan_.meetings, has_met));
  return count;
}

void Run::release_launch(const size_t launch_index) {
  progress_[launch_index].released = true;
  const PlannedLaunch& launch = launches_[launch_index];
  std::atomic_ref(*launch.release).store(launch.arguments.run, std::memory_order_release);
}

void Run::synchronise() {
  const Stopwatch stopwatch(spent_.synchronise);
  const auto wait_while = [this](const auto& busy) {
    while (busy()) {
      if (Clock::now() >= deadline_) throw DeadlineExceeded(describe_progress());
      call_interrupted();
      std::this_thread::yield();
    }
  };
  wait_while([this] { return workers_.is_busy(); });
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

void Run::abandon() noexcept {
  abandoned_ = true;
  may_begin_->store(true);
  pace_->given_up.store(true);
  workers_.cancel();
  for (size_t launch_index = 0; launch_index < launches_.size(); ++launch_index) {
    release_launch(launch_index);
  }
  idle_ = poll_until(kUntilLeft, [this] {
    end_waits(plan_.values);
    return all_done(context_.driver(), workers_, plan_);
  });
  workers_.cancel();  // also drops an error of the call in progress
}

std::string Run::describe_progress() const {
  const auto given = std::chrono::duration_cast<milliseconds>(options_.deadline).count();
  std::string text = "observe: not done after " + std::to_string(given) + " ms";
  for (size_t launch_index = 0; launch_index < launches_.size(); ++launch_index) {
    const Progress& progress = progress_[launch_index];
    const size_t blocks = launches_[launch_index].records.size();
    if (!progress.submitted || progress.started == blocks) continue;
    text += "; launch " + std::to_string(launch_index) + ": " + std::to_string(progress.started) +
            " of " + std::to_string(blocks) + " blocks started";
  }
  return text;
}

}  // namespace tbsched::cuda
