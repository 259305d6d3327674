#include "launcher/capture/call_log.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace tbsched::capture {
namespace {

int32_t system_thread() {
  thread_local const auto number = static_cast<int32_t>(syscall(SYS_gettid));
  return number;
}

}  // namespace

void CallLog::enter(const Operation& operation, const uint64_t now_ns) {
  const auto thread = static_cast<uint32_t>(pthread_self());
  const int32_t system = system_thread();
  const std::lock_guard lock(mutex_);
  const OpenCall open{operation.function, operation.call, thread, system, now_ns, count_};
  open_[system] = open;
  if (captures_ > 0 || !issues(operation.what)) return;
  ++count_;
  Note note{Note::Kind::kIssued, open, operation};
  if (const char* const symbol = operation.shape.symbol; symbol != nullptr) {
    const std::string*& name = known_names_[symbol];
    // A module that was unloaded may leave its addresses to another one.
    if (name == nullptr || *name != symbol) name = &*names_.emplace(symbol).first;
    note.name = name;
    if (const auto found = carveouts_.find(operation.shape.function); found != carveouts_.end()) {
      note.operation.shape.carveout = found->second;
    }
  }
  notes_.push_back(note);
}

void CallLog::exit(const Operation& operation, const bool succeeded) {
  const int32_t system = system_thread();
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(system);
  if (found == open_.end()) return;
  const OpenCall open = found->second;
  open_.erase(found);
  const auto add = [&](const Note::Kind kind) { notes_.push_back({kind, open, operation}); };
  if (issues(operation.what) && !succeeded) add(Note::Kind::kFailed);
  if (!succeeded) return;
  if (operation.what == What::kBeginCapture) ++captures_;
  if (operation.what == What::kEndCapture && captures_ > 0) --captures_;
  if (operation.what == What::kQuery) add(Note::Kind::kHappened);
  if (operation.what == What::kSynchronize) {
    add(operation.event != 0 ? Note::Kind::kHappened : Note::Kind::kWaited);
  }
}

void CallLog::set_carveout(const SetCarveout& given) {
  if (given.function == 0) return;
  const std::lock_guard lock(mutex_);
  carveouts_[given.function] = given.carveout;
}

CallLog::Taken CallLog::take() {
  Taken taken;
  const std::lock_guard lock(mutex_);
  taken.notes = std::exchange(notes_, {});
  for (const auto& [system, open] : open_) taken.open.push_back(open);
  return taken;
}

}  // namespace tbsched::capture
