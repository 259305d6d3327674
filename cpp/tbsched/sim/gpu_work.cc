#include "tbsched/sim/gpu_work.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>

#include "tbsched/program/refuse.h"
#include "tbsched/sim/driver_kernels.h"

namespace tbsched {

GpuWork::GpuWork(const DeviceSpec& spec, const Clock& clock, EventQueue& events,
                 BetweenGpus& between, const int32_t gpu)
    : spec_(spec),
      clock_(clock),
      events_(events),
      between_(between),
      gpu_(gpu),
      order_(launch_order_named(spec.launch_order)),
      operations_(spec, clock, events, *this),
      queues_(spec, clock, operations_),
      engines_(spec, clock),
      graphs_(spec, clock, operations_, queues_, engines_),
      host_functions_(spec),
      places_(spec, operations_, queues_) {}

void GpuWork::make_non_blocking(const int32_t stream) {
  operations_.stream(operations_.stream_named(stream)).non_blocking = true;
}

void GpuWork::set_counts(const int32_t launches, const int32_t hidden, const int32_t transfers) {
  numbering_ = Numbering(launches, hidden, transfers);
  engines_.set_transfers(transfers);
}

void GpuWork::handle_changes() {
  do {
    while (const std::optional<TimedEvent> event = events_.pop(Phase::change)) apply(*event);
    operations_.finish_all();
  } while ((!engines_.empty() && begin_engines()) || call_functions());
  is_caught_up_ = true;
  none_ready_ = false;
}

void GpuWork::apply(const TimedEvent& event) {
  operations_.note_event(event);
  const int32_t index = event.subject;
  switch (event.change) {
    case Change::done:
      operations_.finish_later(index);
      break;
    case Change::triggered:
      operations_.trigger(index);
      break;
    case Change::dependency_met:
      operations_.meet_dependency(index);
      break;
    case Change::issued:
      // This is an event of the GPU's clock; the own clock may have stopped.
      operations_[index].issued_ns = std::min(operations_[index].issued_ns, clock_.now());
      note_issue(index);
      if (operations_[index].follows_nodes) {
        queues_.use(operations_[index].stream);
      } else {
        queues_.enqueue(index);
      }
      break;
    case Change::transferred:
      if (operations_[index].is_memory_operation()) {
        end_memory_operation(index);
      } else {
        end_transfer(index);
      }
      break;
    case Change::reached:
    case Change::none:
      break;
  }
}

// -- what hosts issue ----------------------------------------------------------------------------

int64_t GpuWork::issue(const Event& event, const EventNumbers& numbers,
                       const std::span<const int64_t> issue_ns) {
  catch_up();
  is_caught_up_ = false;
  int64_t ends_ns = clock_.now();
  const int32_t stream = operations_.index_of(stream_of(event));
  const int32_t operations = operations_.size();
  std::visit(Overloaded{
                 [&](const Launch& launch) { issue(launch, numbers.launch); },
                 [](const Release&) {},  // of held launches, which are not issued here
                 [&](const RecordEvent& record) { issue(record); },
                 [&](const WaitEvent& wait) { issue(wait); },
                 [&](const GraphLaunch& graph) { ends_ns = issue(graph, numbers, issue_ns); },
                 [&](const Copy& copy) {
                   issue_transfer(copy, numbers);
                   ends_ns += engines_.call_ns(numbers.transfer);
                 },
                 [&](const Memset& memset) { issue_transfer(memset, numbers); },
                 [](const Synchronize&) {},
                 [&](const HostFunction& function) { issue_transfer(function, numbers); },
                 [](const HostCall&) {},
                 [&](const WriteValue& write) { issue(write); },
                 [&](const WaitValue& wait) { issue(wait); },
             },
             event);
  if (operations_.size() > operations) note_place(event, stream);
  catch_up();
  return ends_ns;
}

std::optional<StreamPlaces::Entry> GpuWork::entry_of(const Event& event) const {
  using Kind = StreamPlaces::Kind;
  using Entry = StreamPlaces::Entry;
  using Result = std::optional<Entry>;
  return std::visit(
      Overloaded{
          [](const Launch&) { return Result(Entry{Kind::work}); },
          [](const Release&) { return Result(); },
          [](const RecordEvent& record) {
            return record.timing ? Result(Entry{Kind::value}) : Result();
          },
          [](const WaitEvent&) { return Result(Entry{Kind::wait}); },
          [](const GraphLaunch&) { return Result(Entry{Kind::work}); },
          [&](const Copy& copy) { return Result(Entry{Kind::work, engines_.engine_of(copy)}); },
          [](const Memset&) { return Result(Entry{Kind::work}); },
          [](const Synchronize&) { return Result(); },
          [](const HostFunction&) { return Result(Entry{Kind::host_function}); },
          [](const HostCall&) { return Result(); },
          [](const WriteValue&) { return Result(Entry{Kind::value}); },
          [](const WaitValue&) { return Result(Entry{Kind::value}); },
      },
      event);
}

void GpuWork::note_place(const Event& event, const int32_t stream) {
  const std::optional<StreamPlaces::Entry> entry = entry_of(event);
  if (entry) places_.add(stream, *entry, operations_.stream(stream).last);
}

void GpuWork::issue(const Launch& launch, const int32_t launch_number) {
  const int32_t stream = operations_.stream_named(launch.stream);
  if (!launch.stream) operations_.stream(stream).non_blocking = launch.non_blocking;
  const bool programmatic = operations_.may_be_programmatic(launch, operations_.stream(stream));
  const int32_t index = add({.kind = OperationKind::launch,
                             .launch = launch_number,
                             .priority = priority_of(launch, spec_),
                             .programmatic = programmatic},
                            stream);
  numbering_.set(launch_number, index);
  if (launch.delay_ns != 0) queues_.delay(index, launch.delay_ns);
  enqueue(index);
  operations_.stream(stream).continue_from(index);
  if (!launch.completion_event) return;
  // It depends on the launch alone, not on the order of the stream.
  const int32_t record = operations_.push({.kind = OperationKind::record,
                                           .issued_ns = clock_.now(),
                                           .stream = stream,
                                           .non_blocking = true,
                                           .last_launch = index});
  operations_[index].record = record;
  between_.records.note(*launch.completion_event, {gpu_, record});
}

void GpuWork::issue(const RecordEvent& record) {
  const int32_t stream = operations_.stream_named(record.stream);
  if (record.timing) {
    const int32_t index = issue_memory_operation(record, OperationKind::timed_record);
    between_.records.note(record.event, {gpu_, index});
    return;
  }
  const bool waits =
      queues_.backs_off() && queues_.defers_behind(operations_.stream(stream).last_launch);
  const int32_t index = add({.kind = OperationKind::record, .pending = waits ? 1 : 0}, stream);
  if (waits) deferred_records_.push_back(index);
  between_.records.note(record.event, {gpu_, index});
}

void GpuWork::issue(const WaitEvent& wait) {
  const std::optional<OperationOfGpu> last = between_.records.last(wait.event);
  if (!last) return;  // the driver passes nothing on
  const int32_t stream = operations_.stream_named(wait.stream);
  const int32_t record = record_here(*last);
  if (record >= 0 && !operations_[record].done() && operations_[record].stream != stream) {
    operations_.stream(stream).waits_for_event = true;
  }
  const int32_t index = add({.kind = OperationKind::wait, .record = record}, stream);
  operations_.stream(stream).last_wait = index;
}

int32_t GpuWork::record_here(const OperationOfGpu record) {
  if (record.gpu == gpu_) return record.operation;
  if (!between_.records.is_open(record)) return -1;
  const int32_t here = operations_.push(
      {.kind = OperationKind::record, .issued_ns = clock_.now(), .non_blocking = true});
  between_.records.await(record, {gpu_, here});
  return here;
}

void GpuWork::issue(const WriteValue& write) {
  issue_memory_operation(write, OperationKind::write_value);
}

void GpuWork::issue(const WaitValue& wait) {
  const int32_t index = issue_memory_operation(wait, OperationKind::wait_value);
  Stream& stream = operations_.stream(operations_[index].stream);
  stream.waits_for_event = true;
  stream.last_wait = index;
}

template <typename MemoryOperation>
int32_t GpuWork::issue_memory_operation(const MemoryOperation& asked, const OperationKind kind) {
  between_.values.add({gpu_, operations_.size()}, asked);
  const int32_t index = add({.kind = kind}, operations_.stream_named(asked.stream));
  if (takes_queue(operations_[index])) enqueue(index);
  return index;
}

// Adds the operation of a copy, memset or host function to its stream: a kernel of the driver, a
// copy by an engine, or a launch that takes a hardware queue and no SM.
template <typename Transfer>
void GpuWork::issue_transfer(const Transfer& asked, const EventNumbers& numbers) {
  const int32_t transfer = numbers.transfer;
  engines_.add(transfer, asked);
  const int32_t stream = operations_.stream_named(asked.stream);
  if (!asked.stream) operations_.stream(stream).non_blocking = asked.non_blocking;
  Operation operation{
      .kind = OperationKind::launch, .launch = transfer_number(transfer), .transfer = transfer};
  if (driver_kernel(spec_, asked)) {
    const int32_t before = operations_.stream(stream).last_launch;
    const int32_t kernel = numbering_.number_of_hidden(numbers.hidden);
    operation = {.kind = OperationKind::launch,
                 .launch = kernel,
                 .priority = before < 0 ? 0 : operations_[before].priority};
    numbering_.set(kernel, operations_.size());
  } else if (engines_.has_engine(transfer)) {
    operation.kind = OperationKind::engine_copy;
    operation.by_engine = true;
    engines_.enqueue(transfer, stream);
  }
  if constexpr (std::is_same_v<Transfer, HostFunction>) {
    operation.is_function = true;
    if (!spec_.mechanisms.host_functions_hold_queues) operation.kind = OperationKind::host_function;
  }
  numbering_.set_transfer(transfer, operations_.size());
  const int32_t index = add(operation, stream);
  if (operation.is_launch()) enqueue(index);
  operations_.stream(stream).continue_from(index);
}

int64_t GpuWork::issue(const GraphLaunch& launched, const EventNumbers& numbers,
                       const std::span<const int64_t> issue_ns) {
  const int32_t stream = operations_.stream_named(launched.stream);
  const int32_t begin =
      add({.kind = OperationKind::graph_begin, .record = graphs_.last_end(launched)}, stream);
  unfinished_ += graphs_.issue(launched, begin, numbers, issue_ns, numbering_);
  for (int32_t node = begin + 1; node < operations_.size(); ++node) {
    note_issue(node);
    if (operations_[node].is_memory_operation()) between_.values.add({gpu_, node});
  }
  note_marks(launched, begin);
  const int32_t end = add({.kind = OperationKind::graph_end}, stream);
  graphs_.set_end(launched, begin, end);
  operations_.stream(stream).continue_from(end);
  return graphs_.until_ns();
}

void GpuWork::note_marks(const GraphLaunch& launched, const int32_t begin) {
  for (const int32_t node : graphs_.marks(launched)) {
    const int32_t index = begin + 1 + node;
    if (const auto* const wait = std::get_if<WaitEvent>(&launched.graph->nodes[node])) {
      const std::optional<OperationOfGpu> last = between_.records.last(wait->event);
      const int32_t record = last ? record_here(*last) : -1;
      operations_[index].record = record;
      operations_.depend(index, record);
    } else if (const auto* const made = std::get_if<RecordEvent>(&launched.graph->nodes[node])) {
      between_.records.note(made->event, {gpu_, index});
    }
  }
}

int32_t GpuWork::add(const Operation& operation, const int32_t stream) {
  const int32_t last = operations_.stream(stream).last;
  // A copy follows another one of the same engine without delay.
  const bool follows_on_engine =
      last >= 0 && operation.kind == OperationKind::engine_copy &&
      engines_.share_engine(operations_[last].transfer, operation.transfer);
  const int32_t index =
      operations_.add(operation, stream, follows_on_engine ? Milestone::over : Milestone::done);
  if (operation.is_launch()) ++unfinished_;
  count_arrival(index);
  const Operation& added = operations_[index];
  if (!takes_queue(added) && added.pending == 0 && operations_.has_legacy_turn(index)) {
    proceed(index);
  }
  return index;
}

bool GpuWork::takes_queue(const Operation& operation) const {
  return operation.is_launch() || operation.kind == OperationKind::condition_reset ||
         (operation.is_memory_operation() && spec_.mechanisms.value_waits_hold_queues);
}

void GpuWork::count_arrival(const int32_t index) {
  Operation& operation = operations_[index];
  const int32_t last = operation.last_launch;
  const bool is_next = last < 0 || operations_[last].done();
  const bool follows_kernel = !is_next && operations_[last].needs_turn();
  if (operation.is_launch()) {
    if (is_next || follows_kernel) ++arrivals_;
  } else if (follows_kernel && (operation.kind == OperationKind::record ||
                                operation.kind == OperationKind::engine_copy)) {
    operation.behind_launch = true;
    queues_.note_behind_launch(1);
    ++arrivals_;
  }
}

void GpuWork::enqueue(const int32_t launch) {
  note_issue(launch);
  if (clock_.now() >= graphs_.until_ns()) return queues_.enqueue(launch);
  operations_[launch].issued_ns = graphs_.until_ns();
  operations_[launch].issued_gpu_ns = clock_.to_gpu(graphs_.until_ns());
  operations_.change_at(graphs_.until_ns(), launch, Change::issued, GraphIssue::kBehindGraph);
}

void GpuWork::load(const int32_t launch) {
  catch_up();
  is_caught_up_ = false;
  ++unfinished_;
  const int32_t load = operations_.add_load(launch);
  if (operations_[load].pending == 0) {
    operations_.change_at(clock_.now() + spec_.load_ns, load, Change::done);
  }
}

// -- what hosts wait for -------------------------------------------------------------------------

int32_t GpuWork::add_host_wait() {
  is_caught_up_ = false;
  return operations_.push(
      {.kind = OperationKind::host_wait, .issued_ns = clock_.now(), .non_blocking = true});
}

std::optional<int32_t> GpuWork::unless_met(const int32_t wait) const {
  return operations_[wait].pending == 0 ? std::nullopt : std::optional(wait);
}

std::optional<int32_t> GpuWork::await_work(const Event& event) {
  catch_up();
  const int32_t wait = add_host_wait();
  const auto* const synchronize = std::get_if<Synchronize>(&event);
  const auto* const call = std::get_if<HostCall>(&event);
  const std::optional<int32_t> stream = synchronize != nullptr ? synchronize->stream
                                        : call != nullptr      ? call->stream
                                                               : std::nullopt;
  if (synchronize != nullptr && synchronize->event) {
    const std::optional<OperationOfGpu> record = between_.records.last(*synchronize->event);
    operations_.depend(wait, record ? record->operation : -1);
  } else if (!stream) {
    operations_.depend_on_streams(wait, false);
  } else if (*stream == kLegacyStream) {
    operations_.depend_on_streams(wait, true);
  } else {
    operations_.depend(wait, operations_.stream(operations_.stream_named(*stream)).last);
  }
  return unless_met(wait);
}

std::optional<int32_t> GpuWork::await_transfer(const int32_t transfer) {
  catch_up();
  const int32_t wait = add_host_wait();
  operations_.depend(wait, numbering_.operation_of_transfer(transfer), Milestone::over,
                     static_cast<int32_t>(spec_.host_return_ns));
  return unless_met(wait);
}

std::optional<int32_t> GpuWork::await_queue_place(const Event& event) {
  // A copy of an engine needs no place in a hardware queue, but its stream needs a queue that has
  // a place.
  const std::optional<StreamPlaces::Entry> entry = entry_of(event);
  if (!entry || entry->kind == StreamPlaces::Kind::wait) return std::nullopt;
  catch_up();
  const int32_t stream = operations_.index_of(stream_of(event));
  const bool takes_place = entry->kind != StreamPlaces::Kind::host_function &&
                           (entry->engine < 0 || !queues_.has_queue(stream));
  if (takes_place && queues_.is_full_for(stream)) {
    const int32_t wait = add_host_wait();
    queues_.await_place(stream, wait);
    return wait;
  }
  const std::optional<int32_t> awaited = places_.awaited(stream, *entry);
  if (!awaited) return std::nullopt;
  const int32_t wait = add_host_wait();
  operations_.depend(wait, *awaited);
  return wait;
}

// -- progress of operations ----------------------------------------------------------------------

// Begins an operation that waits for nothing any more; a launch becomes ready for take_ready().
void GpuWork::on_dependencies_met(const int32_t index) {
  const Operation& operation = operations_[index];
  if (operation.kind == OperationKind::load) {
    operations_.change_at(clock_.now() + spec_.load_ns, index, Change::done);
  } else if (!takes_queue(operation)) {
    if (operations_.has_legacy_turn(index)) proceed(index);
  } else if (operation.follows_nodes && operation.transfer >= 0) {
    begin_transfer_or_function(index);
  } else if (operation.follows_nodes) {
    nodes_.insert({urgency(index), ++nodes_ready_, index});
  } else if (operations_.waits_for_nothing(index) && !operation.programmatic) {
    if (!operation.after_copy) return queues_.delay_detection(index);
    const auto idle_since_ns = running_ > 0 ? std::nullopt : std::optional(idle_since_ns_);
    if (queues_.notice_after_copy(index, idle_since_ns)) ++wakeups_;
  }
}

// Lets an operation of the legacy stream that has its turn go on.
void GpuWork::on_legacy_turn(const int32_t index) {
  if (takes_queue(operations_[index])) {
    queues_.delay_detection(index);
  } else {
    proceed(index);
  }
}

// Ends the wait of a host, and tells operations of other GPUs that wait for this one.
void GpuWork::on_done(const int32_t index) {
  const OperationKind kind = operations_[index].kind;
  if (kind == OperationKind::host_wait) ended_waits_.push_back(index);
  if (kind == OperationKind::load) --unfinished_;
  if (!between_.records.crosses_gpus()) return;
  for (const OperationOfGpu waiting : between_.records.close({gpu_, index})) {
    between_.notices.push_back({{gpu_, index}, waiting});
  }
}

void GpuWork::learn(const int32_t index, const int32_t name) {
  is_caught_up_ = false;
  if (operations_[index].kind == OperationKind::wait_value) {
    operations_[index].record = operations_.size();
    operations_.push({.kind = OperationKind::write_value,
                      .launch = name,
                      .issued_ns = clock_.now(),
                      .non_blocking = true,
                      .done_ns = clock_.now()});
    wake(index);
  } else {
    operations_[index].launch = name;
    operations_.change_at(clock_.now() + spec_.peer_event_latency_ns, index, Change::done);
  }
}

void GpuWork::proceed(const int32_t index) {
  if (std::exchange(operations_[index].behind_launch, false)) queues_.note_behind_launch(-1);
  const OperationKind kind = operations_[index].kind;
  if (kind == OperationKind::wait_value) return wait_for_value(index);
  if (kind == OperationKind::write_value) return write_value(index);
  if (kind == OperationKind::timed_record) return write(index, spec_.timed_record_ns);
  if (kind == OperationKind::condition_reset) return write(index, spec_.condition_reset_ns);
  if (operations_[index].transfer < 0) {
    operations_.finish_later(index);
  } else {
    begin_transfer_or_function(index);
  }
}

std::optional<int32_t> GpuWork::take_ready(const bool room_for_grid) {
  catch_up();
  if (none_ready_) return std::nullopt;
  do {
    if (!engines_.empty()) begin_transfers_at_heads();
  } while (!between_.values.empty() && begin_memory_operations_at_heads());
  if (!room_for_grid) return std::nullopt;
  int32_t first = -1;  // the queue whose head goes first
  for (int32_t queue = 0; queue < queues_.count(); ++queue) {
    const int32_t head = queues_.head(queue);
    if (head < 0 || !operations_[head].is_launch() || !queues_.is_ready(head)) continue;
    if (queues_.start_delay(head)) continue;
    if (first < 0 || goes_before(head, queues_.head(first))) first = queue;
  }
  int32_t taken = first < 0 ? -1 : queues_.head(first);
  if (!nodes_.empty() && (taken < 0 || goes_before(nodes_.begin()->operation, taken))) {
    taken = nodes_.extract(nodes_.begin()).value().operation;
  } else if (first < 0) {
    none_ready_ = true;
    return std::nullopt;
  } else {
    queues_.pass(first, ended_waits_);
  }
  ++running_;
  const Operation& operation = operations_[taken];
  if (operation.record >= 0) {
    operations_.change_at(clock_.now() + spec_.launch_completion_latency_ns, operation.record,
                          Change::done);
  }
  return operation.launch;
}

int32_t GpuWork::urgency(const int32_t operation) const {
  return order_.by_priority ? operations_[operation].priority : 0;
}

int32_t GpuWork::turn(const int32_t operation) const {
  const int32_t launch = operations_[operation].launch;
  return launch >= 0 && std::cmp_less(launch, turns_.size()) ? turns_[launch] : 0;
}

bool GpuWork::goes_before(const int32_t a, const int32_t b) const {
  return std::tuple(urgency(a), turn(a), a) < std::tuple(urgency(b), turn(b), b);
}

void GpuWork::schedule_trigger(const int32_t launch, const int64_t at_ns) {
  operations_.change_at(at_ns + spec_.trigger_latency_ns, operation_of(launch), Change::triggered);
}

std::span<const int32_t> GpuWork::end(const int32_t launch) {
  is_caught_up_ = false;
  --running_;
  --unfinished_;
  idle_since_ns_ = clock_.now();
  return operations_.leave(operation_of(launch));
}

bool GpuWork::call_functions() {
  if (functions_ready_.empty()) return false;
  std::vector<int32_t> ready = std::exchange(functions_ready_, {});
  std::ranges::sort(ready);
  for (const int32_t index : ready) {
    const int32_t transfer = operations_[index].transfer;
    const bool is_queued = operations_[index].is_launch();
    const bool has_waited =
        clock_.now() > (is_queued ? queues_.reaches_gpu_ns(index) : operations_[index].issued_ns);
    const auto changed = host_functions_.call(clock_.gpu_now(), index,
                                              *engines_.host_function_ns(transfer), has_waited);
    for (const HostFunctions::Begin& begin : changed) {
      engines_.set_begin(operations_[begin.operation].transfer, begin.begin_ns);
    }
    schedule_end(index, function_is_over_ns(transfer));
  }
  return events_.is_due(Phase::change);
}

int64_t GpuWork::function_is_over_ns(const int32_t transfer) const {
  return engines_.ends_ns(transfer) + spec_.host_function_return_ns;
}

// -- values in memory ----------------------------------------------------------------------------

void GpuWork::write_value(const int32_t index) {
  for (const OperationOfGpu wait : between_.values.write({gpu_, index})) {
    operations_[wait.operation].record = index;
    wake(wait.operation);
  }
  write(index, spec_.value_write_ns);
}

void GpuWork::write(const int32_t operation, const int64_t write_ns) {
  operations_.change_at(clock_.now() + write_ns, operation, Change::transferred);
}

void GpuWork::wake(const int32_t wait) {
  operations_.change_at(clock_.now() + spec_.value_wake_ns, wait, Change::transferred);
}

void GpuWork::wait_for_value(const int32_t index) {
  if (!between_.values.wait({gpu_, index})) return;
  operations_.change_at(clock_.now() + spec_.value_wait_ns, index, Change::transferred);
}

bool GpuWork::begin_memory_operations_at_heads() {
  for (int32_t queue = 0; queue < queues_.count(); ++queue) {
    const int32_t head = queues_.head(queue);
    if (head < 0 || !operations_[head].is_memory_operation()) continue;
    if (!queues_.is_ready(head) || !between_.values.begin({gpu_, head})) continue;
    proceed(head);
  }
  if (!events_.is_due(Phase::change)) return false;
  catch_up();
  return true;
}

void GpuWork::end_memory_operation(const int32_t index) {
  if (takes_queue(operations_[index])) queues_.pass(queues_.queue_of_launch(index), ended_waits_);
  operations_.finish_later(index);
}

// -- copies and memsets that are no kernels ------------------------------------------------------

void GpuWork::begin_transfers_at_heads() {
  // A transfer that ends at once lets others begin, so this repeats until only launches are at the
  // heads.
  for (;;) {
    for (int32_t queue = 0; queue < queues_.count(); ++queue) {
      for (int32_t head = queues_.head(queue);
           head >= 0 && operations_[head].transfer >= 0 && queues_.is_ready(head);
           head = queues_.head(queue)) {
        begin_transfer_or_function(head);
        queues_.pass(queue, ended_waits_);
      }
    }
    if (!begin_engines() && functions_ready_.empty()) return;
    catch_up();
  }
}

void GpuWork::begin_transfer_or_function(const int32_t index) {
  const Operation& operation = operations_[index];
  if (engines_.host_function_ns(operation.transfer)) {
    functions_ready_.push_back(index);
    is_caught_up_ = false;
  } else if (operation.by_engine) {
    set_ready_for_engine(index);
  } else {
    schedule_end(index, engines_.begin_without_engine(operation.transfer, operation.follows_nodes));
  }
}

void GpuWork::set_ready_for_engine(const int32_t index) {
  const Operation& operation = operations_[index];
  const int64_t now = clock_.now();
  if (operation.graph >= 0) engines_.enqueue_node(operation.transfer);
  const int32_t before = operation.follows_nodes ? operation.held_by : operation.last_launch;
  const bool follows_on_engine =
      before >= 0 && (operation.graph >= 0 || operations_[before].over_ns == now) &&
      engines_.share_engine(operations_[before].transfer, operation.transfer);
  const bool has_waited =
      now > (operation.is_prepared ? queues_.reaches_gpu_ns(index) : operation.issued_ns);
  const int64_t staged_ns = operation.issued_ns + engines_.call_ns(operation.transfer);
  const int64_t reaches_ns = operation.is_prepared ? now : staged_ns + spec_.host_copy_issue_ns;
  const int64_t latency_ns =
      operation.graph < 0 ? spec_.host_copy_latency_ns : spec_.node_copy_latency_ns;
  const int64_t engine_free_ns = follows_on_engine || !has_waited ? now : now + latency_ns;
  const int64_t ready_ns = std::max(reaches_ns, engine_free_ns);
  engines_.set_ready(operation.transfer, ready_ns, has_waited);
  operations_.change_at(ready_ns, index, Change::reached);
}

void GpuWork::schedule_end(const int32_t operation, const int64_t end_ns) {
  if (clock_.now() > kLatestNs || end_ns > 2 * kLatestNs) {
    refuse("duration: a copy or memset from " + std::to_string(clock_.now()) + " to " +
           std::to_string(end_ns) + " ns is beyond the range of time");
  }
  operations_.change_at(end_ns, operation, Change::transferred);
}

bool GpuWork::begin_engines() {
  while (const std::optional<int32_t> transfer = engines_.begin()) {
    schedule_end(numbering_.operation_of_transfer(*transfer), engines_.first_end_ns(*transfer));
  }
  return events_.is_due(Phase::change);
}

void GpuWork::end_transfer(const int32_t index) {
  const Operation& operation = operations_[index];
  if (operation.by_engine) {
    // Another copy may have slowed it down, or another process may have stopped it.
    const int64_t end_ns = engines_.ends_ns(operation.transfer);
    if (end_ns > clock_.now()) return schedule_end(index, end_ns);  // later than was known
  } else if (engines_.host_function_ns(operation.transfer)) {
    // Another function may have taken its turn.
    const int64_t end_ns = function_is_over_ns(operation.transfer);
    if (end_ns > clock_.now()) return schedule_end(index, end_ns);
  }
  // A function has ended before its stream learns of it.
  if (!engines_.host_function_ns(operation.transfer)) engines_.end(operation.transfer);
  if (operation.is_launch()) --unfinished_;
  operations_.set_over(index);
}

// -- the turns of processes ----------------------------------------------------------------------

void GpuWork::note_issue(const int32_t index) {
  if (clock_.is_stopped()) issued_while_stopped_.push_back(index);
}

void GpuWork::correct_issues() {
  // They reach the GPU later than those because of which the own clock goes on.
  for (const int32_t index : std::exchange(issued_while_stopped_, {})) {
    Operation& operation = operations_[index];
    const int64_t issued_ns = clock_.to_own(operation.issued_gpu_ns);
    if (issued_ns <= operation.issued_ns) continue;
    operation.issued_ns = issued_ns;
    const int64_t reaches_ns = queues_.reaches_gpu_ns(index);
    if (!operation.follows_nodes) {
      operations_.change_at(reaches_ns, index, Change::reached);
    } else if (operation.transfer < 0) {
      ++operation.pending;
      operation.held_until_ns = reaches_ns;
      operations_.change_at(reaches_ns, index, Change::dependency_met);
    }
  }
}

void GpuWork::end_back_off() {
  is_caught_up_ = false;
  correct_issues();
  queues_.end_back_off();
  for (const int32_t record : std::exchange(deferred_records_, {}))
    operations_.meet_dependency(record);
}

int64_t GpuWork::works_from_ns(const bool with_deferred) const {
  const int64_t now = clock_.now();
  if (with_deferred && !deferred_records_.empty()) return now;
  if (std::cmp_equal(unfinished_, with_deferred ? 0 : queues_.deferred())) return kNever;
  if (running_ > 0 || !nodes_.empty()) return now;
  const bool enabling = operations_.enabling() > 0;
  const int64_t first_ns = queues_.first_ready_ns(with_deferred, enabling);
  return first_ns == kNever && enabling ? now : first_ns;
}

int64_t GpuWork::first_arrival_ns() const {
  return running_ > 0 || !nodes_.empty() ? clock_.now() : queues_.first_arrival_ns();
}

}  // namespace tbsched
