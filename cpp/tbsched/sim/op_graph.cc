#include "tbsched/sim/op_graph.h"

#include <algorithm>

namespace tbsched {

int32_t OpGraph::stream_named(const std::optional<int32_t> name) {
  auto index = static_cast<int32_t>(streams_.size());
  if (name) index = index_of_stream_.try_emplace(*name, index).first->second;
  if (std::cmp_equal(index, streams_.size())) {
    streams_.push_back({.legacy = name == kLegacyStream});
  }
  return index;
}

int32_t OpGraph::index_of(const std::optional<int32_t> name) const {
  const auto known = name ? index_of_stream_.find(*name) : index_of_stream_.end();
  return known == index_of_stream_.end() ? static_cast<int32_t>(streams_.size()) : known->second;
}

int32_t OpGraph::add(Operation operation, const int32_t stream_index, const Milestone behind) {
  Stream& stream = streams_[stream_index];
  operation.stream = stream_index;
  operation.legacy = stream.legacy;
  operation.non_blocking = stream.non_blocking;
  operation.last_launch = stream.last_launch;
  operation.last_wait = stream.last_wait;
  operation.last_legacy = stream.non_blocking ? -1 : last_legacy_;
  operation.last_load = last_load_;
  operation.issued_ns = clock_.now();
  operation.issued_gpu_ns = clock_.gpu_now();
  operation.held_until_ns = clock_.now();
  const int32_t index = push(operation);
  if (operation.programmatic) {
    depend(index, operation.last_launch, Milestone::triggered);
    depend(index, operation.last_launch, Milestone::over);
    depend(index, launch_before(index, kMaxInFlight));
  } else {
    depend(index, stream.last, behind);
  }
  depend(index, operation.record);
  depend(index, last_load_);
  if (operation.legacy) {
    last_legacy_ = index;
  } else {
    depend(index, operation.last_legacy);
    if (!operation.non_blocking) last_other_ = index;
  }
  stream.last = index;
  if (!stream.open) open_.push_back(stream_index);
  stream.open = true;
  return index;
}

int32_t OpGraph::push(const Operation& operation) {
  const int32_t index = size();
  operations_.push_back(operation);
  if (operation.non_blocking && first_undone_ == index) ++first_undone_;
  return index;
}

void OpGraph::depend(const int32_t operation, const int32_t on, const Milestone milestone,
                     const int32_t latency_ns) {
  if (on < 0 || operations_[on].has_reached(milestone)) return;
  Operation& waiting = operations_[operation];
  // When a programmatic launch starts, the launch before it may still run.
  if (milestone != Milestone::over || !waiting.programmatic) ++waiting.pending;
  dependents_.push_back({operation, operations_[on].first_dependent, latency_ns, milestone});
  operations_[on].first_dependent = static_cast<int32_t>(dependents_.size()) - 1;
  if (waiting.kind == OperationKind::host_wait) host_waits_.push_back({operation, on});
}

void OpGraph::depend_on_streams(const int32_t operation, const bool blocking_alone) {
  // The last operation of a stream is behind all others of it.
  std::erase_if(open_, [&](const int32_t index) {
    Stream& stream = streams_[index];
    stream.open = !operations_[stream.last].done();
    return !stream.open;
  });
  for (const int32_t index : open_) {
    const Stream& stream = streams_[index];
    if (!blocking_alone || !stream.non_blocking) depend(operation, stream.last);
  }
}

int32_t OpGraph::add_load(const int32_t launch) {
  const int32_t load = push({.kind = OperationKind::load,
                             .launch = launch,
                             .issued_ns = clock_.now(),
                             .non_blocking = true});
  depend_on_streams(load, /*blocking_alone=*/false);
  depend(load, last_load_);
  last_load_ = load;
  return load;
}

bool OpGraph::may_be_programmatic(const Launch& launch, const Stream& stream) const {
  if (!launch.programmatic || launch.cooperative || stream.last_launch < 0) return false;
  const Operation& before = operations_[stream.last_launch];
  if (!before.is_launch() || before.done() || stream.waits_for_event) return false;
  const int32_t in_between = stream.legacy ? last_other_ : last_legacy_;
  return stream.non_blocking || in_between < stream.last_launch;
}

int32_t OpGraph::launch_before(int32_t launch, const int32_t count) const {
  for (int32_t k = 0; k < count && launch >= 0; ++k) launch = operations_[launch].last_launch;
  return launch;
}

int64_t OpGraph::known_ns_of(const int32_t done, const int32_t dependent) const {
  const bool is_event = operations_[dependent].record == done;
  return operations_[done].done_ns + (is_event ? spec_.event_latency_ns : 0);
}

std::vector<int32_t> OpGraph::first_awaited() const {
  std::vector<int32_t> first(operations_.size(), -1);
  for (int32_t on = size() - 1; on >= 0; --on) {
    int32_t edge = operations_[on].first_dependent;
    for (; edge >= 0; edge = dependents_[edge].next) {
      const Dependent& dependent = dependents_[edge];
      const bool may_start =
          dependent.milestone == Milestone::over && operations_[dependent.operation].programmatic;
      if (!may_start && !operations_[on].has_reached(dependent.milestone)) {
        first[dependent.operation] = on;
      }
    }
  }
  return first;
}

int32_t OpGraph::name_of(int32_t operation) const {
  while (operation >= 0) {
    const Operation& candidate = operations_[operation];
    if (candidate.launch != -1) return candidate.launch;
    const bool is_wait =
        candidate.kind == OperationKind::wait || candidate.kind == OperationKind::wait_value;
    operation = is_wait ? candidate.record : candidate.last_launch;
  }
  return -1;
}

void OpGraph::change_at(const int64_t time_ns, const int32_t operation, const Change change,
                        const int64_t order) {
  const Operation& subject = operations_[operation];
  // The driver issues operations, and notifies hosts and engines, whichever process has the GPU.
  const bool by_gpu_clock = !subject.needs_turn() || change == Change::issued ||
                            (change == Change::done && is_awaited_by_gpu_clock(subject));
  TimedEvent event{.time_ns = time_ns, .subject = operation, .change = change, .order = order};
  if (may_enable(event)) ++enabling_;
  if (by_gpu_clock) event.time_ns = clock_.to_gpu(time_ns);
  events_.push(Phase::change, by_gpu_clock ? Domain::gpu : Domain::process, event);
}

void OpGraph::note_event(const TimedEvent& event) {
  if (may_enable(event)) --enabling_;
}

bool OpGraph::is_awaited_by_gpu_clock(const Operation& operation) const {
  for (int32_t edge = operation.first_dependent; edge >= 0; edge = dependents_[edge].next) {
    if (!operations_[dependents_[edge].operation].needs_turn()) return true;
  }
  return false;
}

bool OpGraph::may_enable(const TimedEvent& event) const {
  return event.change != Change::reached &&
         !(event.change == Change::transferred && operations_[event.subject].by_engine);
}

std::span<const int32_t> OpGraph::leave(const int32_t operation) {
  first_in_stream_.clear();
  operations_[operation].has_left = true;
  if (first_in_stream(operation)) set_over(operation);
  return first_in_stream_;
}

bool OpGraph::first_in_stream(const int32_t operation) const {
  const Operation& launch = operations_[operation];
  return !launch.programmatic || operations_[launch.last_launch].has_reached(Milestone::over);
}

void OpGraph::set_over(int32_t operation) {
  while (operation >= 0) {
    operations_[operation].over_ns = clock_.now();
    change_at(clock_.now() + spec_.completion_latency_ns, operation, Change::done);
    int32_t next = -1;
    int32_t edge = operations_[operation].first_dependent;
    for (; edge >= 0; edge = dependents_[edge].next) {
      const Dependent& dependent = dependents_[edge];
      if (dependent.milestone != Milestone::over) continue;
      Operation& waiting = operations_[dependent.operation];
      if (waiting.programmatic) {
        first_in_stream_.push_back(waiting.launch);
        if (waiting.has_left) next = dependent.operation;
        continue;
      }
      const int64_t known_ns = clock_.now() + dependent.latency_ns;
      change_at(known_ns, dependent.operation, Change::dependency_met, ++nodes_served_);
      if (known_ns < waiting.held_until_ns) continue;
      waiting.held_until_ns = known_ns;
      waiting.held_by = operation;
    }
    operation = next;
  }
}

void OpGraph::trigger(const int32_t operation) {
  if (operations_[operation].has_reached(Milestone::triggered)) return;
  operations_[operation].triggered_ns = clock_.now();
  int32_t edge = operations_[operation].first_dependent;
  for (; edge >= 0; edge = dependents_[edge].next) {
    if (dependents_[edge].milestone == Milestone::triggered)
      meet_dependency(dependents_[edge].operation);
  }
}

void OpGraph::finish_all() {
  while (!finished_.empty()) {
    const int32_t operation = finished_.back();
    finished_.pop_back();
    finish(operation);
  }
}

void OpGraph::finish(const int32_t index) {
  Operation& operation = operations_[index];
  operation.done_ns = clock_.now();
  if (operation.kind == OperationKind::host_wait) {
    std::erase_if(host_waits_, [&](const HostWait& each) { return each.wait == index; });
  }
  stations_.on_done(index);
  const bool triggers = !operation.has_reached(Milestone::triggered);
  if (triggers) operation.triggered_ns = clock_.now();
  for (int32_t edge = operation.first_dependent; edge >= 0; edge = dependents_[edge].next) {
    const auto [dependent, next, latency_ns, milestone] = dependents_[edge];
    if (milestone == Milestone::triggered && triggers) meet_dependency(dependent);
    if (milestone != Milestone::done) continue;
    Operation& waiting = operations_[dependent];
    if (waiting.kind == OperationKind::graph_end) waiting.launch = operation.launch;
    waiting.after_copy = operation.kind == OperationKind::engine_copy ||
                         (!operation.is_launch() && operation.after_copy);
    const int64_t known_ns = known_ns_of(index, dependent) + latency_ns;
    if (known_ns > clock_.now()) {
      change_at(known_ns, dependent, Change::dependency_met);
    } else {
      meet_dependency(dependent);
    }
  }
  if (index == first_undone_) advance_first_undone();
}

void OpGraph::advance_first_undone() {
  const int32_t finished = first_undone_;
  const auto is_passed = [](const Operation& operation) {
    return operation.done() || operation.non_blocking;
  };
  while (first_undone_ < size() && is_passed(operations_[first_undone_])) ++first_undone_;
  if (first_undone_ == size() || !operations_[first_undone_].waits_for_all()) return;
  Operation& legacy = operations_[first_undone_];
  legacy.legacy_until_ns = clock_.now();
  legacy.legacy_behind = finished;
  if (legacy.pending == 0) stations_.on_legacy_turn(first_undone_);
}

void OpGraph::meet_dependency(const int32_t operation) {
  if (--operations_[operation].pending == 0) stations_.on_dependencies_met(operation);
}

}  // namespace tbsched
