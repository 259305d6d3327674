#include "launcher/run/together.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "launcher/driver/context.h"
#include "launcher/driver/error.h"
#include "launcher/run/gpu.h"
#include "launcher/run/run.h"
#include "launcher/run/verdict.h"

namespace tbsched::cuda {
namespace {

// Throws std::invalid_argument unless kernels of one GPU can reach the memory of another, and, if
// blocks meet, count there.
void check_access(const Context& from, const Context& to, const bool meets) {
  const Driver& driver = from.driver();
  const auto refuse_unless = [&](const int can, const std::string& what) {
    if (can != 0) return;
    throw std::invalid_argument("observe: GPU " + std::to_string(from.device()) + what +
                                " the memory of GPU " + std::to_string(to.device()) +
                                ", where blocks meet");
  };
  int can = 0;
  driver.can_access_peer(&can, from.device(), to.device());
  refuse_unless(can, " cannot reach");
  if (!meets) return;
  // Without them counts are lost, and blocks that meet wait for ever.
  driver.peer_attribute(&can, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, from.device(),
                        to.device());
  refuse_unless(can, " has no native atomics on");
}

// Lets kernels of one GPU reach the memory of another.
void enable_access(const Context& from, const Context& to) {
  if (from.device() == to.device()) return;
  const Driver& driver = from.driver();
  const CurrentContext current(from);
  const CUresult result = driver.enable_peer_access.code(to.handle(), 0);
  if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) driver.enable_peer_access.check(result);
}

// Throws Unstable unless the groups that have met are those of which all blocks were placed, on all
// GPUs.
void check_meetings(const std::vector<Part>& parts, const std::vector<Observation>& observations) {
  const std::vector<bool>& met = observations.front().met;
  for (size_t group = 0; group < met.size(); ++group) {
    bool all_placed = true;
    for (size_t part = 0; part < parts.size(); ++part) {
      for (const size_t launch : parts[part].groups[group]) {
        const std::vector<int32_t>& smid = observations[part].launches[launch].placement.final_smid;
        all_placed = all_placed && std::ranges::find(smid, kNotPlaced) == smid.end();
      }
    }
    if (all_placed == met[group]) continue;
    throw Unstable("group " + std::to_string(group) +
                   (all_placed ? " has not met, though all its blocks were placed"
                               : " has met, though not all its blocks were placed"));
  }
}

// Runs all parts at once, one time. Throws the first error of a part, or what options.interrupted
// throws.
std::vector<Observation> run_together(const std::vector<Part>& parts, const RunOptions& options) {
  const auto together = std::make_shared<Together>(parts.size());
  std::vector<Observation> observations(parts.size());
  std::vector<std::exception_ptr> errors(parts.size());
  std::atomic<size_t> running = parts.size();
  const auto run = [&](const size_t index) {
    const Part& part = parts[index];
    RunOptions part_options = options;
    part_options.groups = part.groups;
    part_options.together = together;
    part_options.part = index;
    part_options.interrupted = [&together] { together->throw_if_failed(); };
    try {
      observations[index] = part.gpu->observe(part.sequence, part_options);
    } catch (...) {
      errors[index] = std::current_exception();
      together->fail();
    }
    --running;
  };
  std::exception_ptr interrupted;
  {
    std::vector<std::jthread> threads;
    try {
      for (size_t index = 0; index < parts.size(); ++index) threads.emplace_back(run, index);
    } catch (...) {  // there is no other thread: those that there are would wait for it
      together->fail();
      throw;
    }
    while (running != 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      if (interrupted) continue;
      try {
        options.interrupted();
      } catch (...) {
        interrupted = std::current_exception();
        together->fail();
      }
    }
  }
  if (interrupted) std::rethrow_exception(interrupted);
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const OtherRunFailed&) {
      // That one says why.
    }
  }
  check_meetings(parts, observations);
  return observations;
}

}  // namespace

std::shared_ptr<RunMemory> Together::join(const size_t run, Plan& plan, const Context& context,
                                          const std::shared_ptr<RunMemory>& memory) {
  if (run == 0) {
    const std::scoped_lock lock(mutex_);
    first_context_ = &context;
    first_memory_ = memory;
    meetings_ = plan.points;
    for (Meeting& meeting : meetings_) meeting.blocks = 0;
    for (const PlannedMeeting& planned : plan.meetings) met_.push_back(planned.met);
  }
  arrive_and_wait();
  enable_access(context, *first_context_);
  {
    const std::scoped_lock lock(mutex_);
    for (size_t group = 0; group < plan.meetings.size(); ++group) {
      for (const size_t index : plan.meetings[group].launches) {
        meetings_[group].blocks += static_cast<uint32_t>(plan.launches[index].launch.blocks);
      }
    }
  }
  arrive_and_wait();
  for (size_t group = 0; group < plan.meetings.size(); ++group) {
    plan.meetings[group].met = met_[group];
    for (const size_t index : plan.meetings[group].launches) {
      plan.launches[index].arguments.meeting = meetings_[group];
    }
  }
  note_move(Clock::now());
  arrive_and_wait();
  return run == 0 ? nullptr : first_memory_;
}

void Together::arrive_and_wait() {
  std::unique_lock lock(mutex_);
  const uint64_t round = round_;
  if (++arrived_ == runs_) {
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return round_ != round || failed_; });
  if (round_ == round) throw OtherRunFailed();
}

void Together::note_move(const Clock::time_point now) {
  const Clock::rep time = now.time_since_epoch().count();
  Clock::rep last = last_move_;
  while (last < time && !last_move_.compare_exchange_weak(last, time)) {
    // Another run noted a move.
  }
}

Together::Clock::time_point Together::last_move() const {
  return Clock::time_point(Clock::duration(last_move_));
}

void Together::note_calling(const size_t run, const bool calling) {
  const std::scoped_lock lock(mutex_);
  if (is_calling_[run] == calling) return;
  is_calling_[run] = calling;
  calling_ += calling ? 1 : -1;
}

void Together::note_done(const size_t run) {
  const std::scoped_lock lock(mutex_);
  if (is_done_[run]) return;
  is_done_[run] = true;
  ++done_;
}

void Together::fail() {
  {
    const std::scoped_lock lock(mutex_);
    failed_ = true;
  }
  changed_.notify_all();
}

void Together::throw_if_failed() const {
  if (failed_) throw OtherRunFailed();
}

std::vector<Observation> observe_together(const std::vector<Part>& parts,
                                          const RunOptions& options) {
  for (const Part& part : parts) {
    if (part.groups.size() != parts.front().groups.size()) {
      throw std::invalid_argument("parts: each needs all groups");
    }
    if (part.sequence.empty()) throw std::invalid_argument("parts: one has no events");
    if (std::ranges::count(parts, part.gpu, &Part::gpu) != 1) {
      throw std::invalid_argument("parts: a GPU twice");
    }
  }
  const Context& first = parts.front().gpu->context();
  const bool meets = !parts.front().groups.empty();
  for (const Part& part : std::span(parts).subspan(1)) {
    check_access(part.gpu->context(), first, meets);
  }
  int doubtful_runs = 0;
  size_t shared_runs = 0;
  for (;;) {
    try {
      return run_together(parts, options);
    } catch (const Shared&) {
      if (shared_runs == kPausesWhileShared.size()) throw;
      poll_until(kPausesWhileShared[shared_runs++], [&] { return options.interrupted(), false; });
    } catch (const Unstable&) {
      if (++doubtful_runs == kAttempts) throw;
    }
  }
}

}  // namespace tbsched::cuda
