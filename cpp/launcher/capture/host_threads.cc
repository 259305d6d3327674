#include "launcher/capture/host_threads.h"

#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

namespace tbsched::capture {
namespace {

// Threads are not compared over a longer interval: nothing was unfinished meanwhile.
constexpr uint64_t kMaxIntervalNs = 3'000'000'000;

// Returns whether a thread is in a system call that sleeps for a given time. `thread`: its folder
// in /proc.
bool is_in_timed_sleep(const std::filesystem::path& thread) {
  long number = -1;
  // "running" instead of a number if it is in no call of the system.
  return std::ifstream(thread / "syscall") >> number &&
         (number == SYS_nanosleep || number == SYS_clock_nanosleep);
}

}  // namespace

OtherThreads HostThreads::compare(const std::span<const int32_t> excluded, const uint64_t now_ns) {
  const uint64_t since_ns = now_ns - std::exchange(compared_ns_, now_ns);
  const auto before = std::exchange(previous_, {});
  OtherThreads threads;
  std::error_code error;  // without /proc, there are none
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator each("/proc/self/task", error); each != end;
       each.increment(error)) {
    const std::filesystem::path& path = each->path();
    const std::string name = path.filename();
    int32_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    SchedulerStatistics now;
    std::ifstream statistics(path / "schedstat");
    if (!(statistics >> now.ran_ns >> now.waited_ns >> now.timeslices)) continue;
    previous_[thread] = now;
    const auto earlier = before.find(thread);
    if (earlier == before.end() || since_ns > kMaxIntervalNs) continue;
    if (now.ran_ns < earlier->second.ran_ns) continue;  // a later thread has its number
    if (std::ranges::find(excluded, thread) != excluded.end()) continue;
    const uint64_t ran_ns = now.ran_ns - earlier->second.ran_ns;
    if (2 * ran_ns + now.waited_ns - earlier->second.waited_ns > since_ns) {
      threads.busy.push_back(thread);
    } else if (now.timeslices == earlier->second.timeslices && is_in_timed_sleep(path)) {
      threads.asleep.push_back(thread);
    }
  }
  return threads;
}

}  // namespace tbsched::capture
