#include "tbsched/engine/timed/streams.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace tbsched {

Streams::Streams(const DeviceSpec& spec)
    : spec_(spec),
      order_(launch_order_named(spec.launch_order)),
      transfers_(spec),
      queues_(spec.hardware_queues),
      front_ends_(spec.front_ends) {}

void Streams::make_non_blocking(const int32_t stream) {
  streams_[stream_named(stream)].non_blocking = true;
}

void Streams::expect(const int32_t launches, const int32_t hidden, const int32_t transfers) {
  launches_ = launches;
  item_of_launch_.resize(launches);
  item_of_relay_.resize(hidden);
  item_of_transfer_.resize(transfers);
  transfers_.expect(transfers);
}

int64_t Streams::issue(const Event& event, const EventNumbers& numbers,
                       const std::span<const int64_t> issue_ns, const int64_t now) {
  settle(now);
  int64_t ends_ns = now;
  std::visit(
      Overloaded{
          [&](const Launch& launch) { issue(launch, numbers.launch, now); },
          [](const Release&) {},  // of held launches, which are not issued here
          [&](const RecordEvent& record) { issue(record, now); },
          [&](const WaitEvent& wait) { issue(wait, now); },
          [&](const GraphLaunch& launched) { ends_ns = issue(launched, numbers, issue_ns, now); },
          [&](const Copy& copy) {
            issue(copy, numbers, now);
            ends_ns = now + transfers_.call_ns(numbers.transfer);
          },
          [&](const Memset& memset) { issue(memset, numbers, now); },
          [](const Synchronize&) {},
      },
      event);
  settle(now);
  return ends_ns;
}

void Streams::issue(const Launch& launch, const int32_t launch_number, const int64_t now) {
  const int32_t number = stream_named(launch.stream);
  StreamState& stream = streams_[number];
  if (!launch.stream) stream.non_blocking = launch.non_blocking;
  const bool programmatic = is_programmatic(launch, stream);
  const int32_t index = add({.kind = Kind::launch,
                             .programmatic = programmatic,
                             .launch = launch_number,
                             .priority = launch.priority,
                             .delay_ns = launch.delay_ns},
                            number, now);
  item_of_launch_[launch_number] = index;
  enqueue(index, now);
  stream.go_on_from(index);
  if (!launch.completion_event) return;
  // It happens by itself, not in the order of the stream.
  const int32_t record = push({.kind = Kind::record,
                               .non_blocking = true,
                               .stream = number,
                               .last_launch = index,
                               .issued_ns = now});
  items_[index].record = record;
  last_record_[*launch.completion_event] = record;
}

void Streams::issue(const RecordEvent& record, const int64_t now) {
  const int32_t number = stream_named(record.stream);
  const bool waits = dozing_ && goes_unnoticed(streams_[number].last_launch);
  const int32_t index = add({.kind = Kind::record, .unmet = waits ? 1 : 0}, number, now);
  if (waits) put_off_.push_back(index);
  last_record_[record.event] = index;
}

// Whether a record behind this takes a hardware queue that the GPU does not look at now: that of
// the kernel before it. Behind a copy by an engine it takes none.
bool Streams::goes_unnoticed(const int32_t before) const {
  if (before < 0) return true;
  const Item& item = items_[before];
  if (!needs_turn(item)) return false;
  return item.done() || item.queue < 0 || runs_empty(queues_[item.queue]);
}

void Streams::issue(const WaitEvent& wait, const int64_t now) {
  const int32_t number = stream_named(wait.stream);
  StreamState& stream = streams_[number];
  const auto known = last_record_.find(wait.event);
  const int32_t record = known == last_record_.end() ? -1 : known->second;
  if (record >= 0 && !items_[record].done() && items_[record].stream != number) {
    stream.waits_for_event = true;
  }
  stream.last_wait = add({.kind = Kind::wait, .record = record}, number, now);
}

// A launch without a name has a stream of its own.
int32_t Streams::stream_named(const std::optional<int32_t> name) {
  auto number = static_cast<int32_t>(streams_.size());
  if (name) number = number_of_stream_.try_emplace(*name, number).first->second;
  if (std::cmp_equal(number, streams_.size())) {
    streams_.push_back({.legacy = name == kLegacyStream});
  }
  return number;
}

int32_t Streams::add(Item item, const int32_t number, const int64_t now) {
  StreamState& stream = streams_[number];
  item.stream = number;
  item.legacy = stream.legacy;
  item.non_blocking = stream.non_blocking;
  item.last_launch = stream.last_launch;
  item.last_wait = stream.last_wait;
  item.last_legacy = stream.non_blocking ? -1 : last_legacy_;
  item.last_load = last_load_;
  item.issued_ns = now;
  item.at_head_ns = now;
  const int32_t index = push(item);
  if (item.is_launch()) ++not_over_;
  if (item.programmatic) {
    depend(index, item.last_launch, Until::triggered);
    depend(index, item.last_launch, Until::over);
    depend(index, launch_before(index, kMostInFlight));
  } else {
    // Two copies by one engine follow each other at once.
    const bool goes_on = stream.last >= 0 && item.kind == Kind::transfer &&
                         transfers_.share_engine(items_[stream.last].transfer, item.transfer);
    depend(index, stream.last, goes_on ? Until::over : Until::done);
  }
  depend(index, item.record);
  depend(index, last_load_);
  count_arrival(index);
  if (item.legacy) {
    last_legacy_ = index;
  } else {
    depend(index, item.last_legacy);
    if (!item.non_blocking) last_other_ = index;
  }
  stream.last = index;
  if (!stream.open) open_.push_back(number);
  stream.open = true;
  if (!item.is_launch() && items_[index].unmet == 0 && (!item.legacy || first_undone_ == index)) {
    go_on(index, now);
  }
  return index;
}

// For the turns of processes.
void Streams::count_arrival(const int32_t index) {
  Item& item = items_[index];
  const bool is_next = item.last_launch < 0 || items_[item.last_launch].done();
  const bool follows_kernel = !is_next && needs_turn(items_[item.last_launch]);
  if (item.is_launch()) {
    if (is_next || follows_kernel) ++came_;
  } else if (follows_kernel && (item.kind == Kind::record || item.kind == Kind::transfer)) {
    item.behind_launch = true;
    ++behind_launches_;
    ++came_;
  }
}

int32_t Streams::push(const Item& item) {
  const auto index = static_cast<int32_t>(items_.size());
  items_.push_back(item);
  if (item.non_blocking && first_undone_ == index) ++first_undone_;
  return index;
}

bool Streams::is_programmatic(const Launch& launch, const StreamState& stream) const {
  if (!launch.programmatic || launch.cooperative || stream.last_launch < 0) return false;
  const Item& before = items_[stream.last_launch];
  if (before.kind != Kind::launch || before.done() || stream.waits_for_event) return false;
  const int32_t in_between = stream.legacy ? last_other_ : last_legacy_;
  return stream.non_blocking || in_between < stream.last_launch;
}

int32_t Streams::launch_before(int32_t index, const int32_t count) const {
  for (int32_t k = 0; k < count && index >= 0; ++k) index = items_[index].last_launch;
  return index;
}

void Streams::depend(const int32_t index, const int32_t on, const Until until,
                     const int32_t latency_ns) {
  if (on < 0 || items_[on].has_been(until)) return;
  Item& item = items_[index];
  // When a programmatic launch starts, what comes before it may still run.
  if (until != Until::over || !item.programmatic) ++item.unmet;
  dependents_.push_back({index, items_[on].first_dependent, latency_ns, until});
  items_[on].first_dependent = static_cast<int32_t>(dependents_.size()) - 1;
}

std::optional<int32_t> Streams::take(const bool room_for_grid, const int64_t now) {
  settle(now);
  if (!transfers_.empty()) begin_transfers(now);
  if (!room_for_grid) return std::nullopt;
  Queue* first = nullptr;
  for (Queue& queue : queues_) {
    if (queue.empty() || !ready(queue.items[queue.head], now)) continue;
    if (begins_delay(queue.items[queue.head], now)) continue;
    if (first == nullptr || before(queue.items[queue.head], first->items[first->head])) {
      first = &queue;
    }
  }
  int32_t taken = first == nullptr ? -1 : first->items[first->head];
  if (!nodes_.empty() && (taken < 0 || before(nodes_.begin()->item, taken))) {
    taken = nodes_.extract(nodes_.begin()).value().item;
  } else if (first == nullptr) {
    return std::nullopt;
  } else {
    pass_head(*first, now);
  }
  ++running_;
  const Item& item = items_[taken];
  if (item.record >= 0) {
    change_later({now + spec_.launch_completion_latency_ns, item.record, Change::done});
  }
  return item.launch;
}

void Streams::pass_head(Queue& queue, const int64_t now) {
  if (!places_awaited_.empty()) give_place(queue.items[queue.head]);
  if (++queue.head < queue.items.size()) {
    items_[queue.items[queue.head]].at_head_ns = now;
  } else {
    --front_ends_[front_end(items_[queue.items.back()].queue)].filled;
  }
}

int32_t Streams::rank(const int32_t index) const {
  return order_.by_priority ? items_[index].priority : 0;
}

int32_t Streams::turn(const int32_t index) const {
  const int32_t launch = items_[index].launch;
  return launch >= 0 && std::cmp_less(launch, turns_.size()) ? turns_[launch] : 0;
}

bool Streams::before(const int32_t a, const int32_t b) const {
  return std::tuple(rank(a), turn(a), a) < std::tuple(rank(b), turn(b), b);
}

bool Streams::ready(const int32_t index, const int64_t now) const {
  const Item& item = items_[index];
  return waits_for_nothing(index) && item.seen_ns <= now && reaches_gpu_ns(index) <= now;
}

bool Streams::begins_delay(const int32_t index, const int64_t now) {
  Item& item = items_[index];
  if (item.delay_ns == 0) return false;
  item.seen_ns = now + std::exchange(item.delay_ns, 0);
  change_later({item.seen_ns, index, Change::reached});
  return true;
}

bool Streams::waits_for_nothing(const int32_t index) const {
  const Item& item = items_[index];
  return item.unmet == 0 && (!item.waits_for_all() || first_undone_ == index);
}

int64_t Streams::next_change(const int64_t now) const {
  const int64_t own_ns = later_.empty() ? kNever : later_.top().time_ns;
  const int64_t live_ns = live_.empty() ? kNever : live_.top().time_ns - late_ns_;
  return std::max(std::min(own_ns, live_ns), now);
}

void Streams::trigger(const int32_t launch, const int64_t at_ns) {
  change_later({at_ns + spec_.trigger_latency_ns, item_of(launch), Change::triggered});
}

std::span<const int32_t> Streams::end(const int32_t launch, const int64_t now) {
  const int32_t index = item_of(launch);
  first_in_stream_.clear();
  items_[index].left = true;
  --running_;
  --not_over_;
  idle_since_ns_ = now;
  if (first_in_stream(launch)) get_over(index, now);
  return first_in_stream_;
}

bool Streams::first_in_stream(const int32_t launch) const {
  const Item& item = items_[item_of(launch)];
  return !item.programmatic || items_[item.last_launch].has_been(Until::over);
}

void Streams::get_over(int32_t index, const int64_t now) {
  while (index >= 0) {
    items_[index].over_ns = now;
    change_later({now + spec_.completion_latency_ns, index, Change::done});
    int32_t next = -1;
    for (int32_t edge = items_[index].first_dependent; edge >= 0; edge = dependents_[edge].next) {
      const Dependent& dependent = dependents_[edge];
      if (dependent.until != Until::over) continue;
      Item& item = items_[dependent.item];
      if (item.programmatic) {
        first_in_stream_.push_back(item.launch);
        if (item.left) next = dependent.item;
        continue;
      }
      const int64_t known_ns = now + dependent.latency_ns;
      change_later({known_ns, dependent.item, Change::one_met, ++nodes_served_});
      if (known_ns < item.at_head_ns) continue;
      item.at_head_ns = known_ns;
      item.ahead = index;
    }
    index = next;
  }
}

void Streams::settle(const int64_t now) {
  do {
    while (std::priority_queue<Later>* const first = first_changes(now)) {
      const Later later = first->top();
      first->pop();
      if (stirs(later)) --stirring_;
      happen(later, now);
    }
    while (!finished_.empty()) {
      const int32_t item = finished_.back();
      finished_.pop_back();
      finish(item, now);
    }
  } while (!transfers_.empty() && begin_engines(now));
}

// Its time is by the clock that stands still with the process.
void Streams::change_later(Later later) {
  if (stirs(later)) ++stirring_;
  const Item& item = items_[later.item];
  const bool is_live = !needs_turn(item) || later.change == Change::issued ||
                       (later.change == Change::done && is_awaited(item));
  if (is_live) later.time_ns += late_ns_;
  (is_live ? live_ : later_).push(later);
}

bool Streams::needs_turn(const Item& item) const {
  return (item.is_launch() || item.kind == Kind::load) && !moved_by_engine(item);
}

// Whether anything waits for it that needs no turn.
bool Streams::is_awaited(const Item& item) const {
  for (int32_t edge = item.first_dependent; edge >= 0; edge = dependents_[edge].next) {
    if (!needs_turn(items_[dependents_[edge].item])) return true;
  }
  return false;
}

// Whether it says that something is over that others wait for.
bool Streams::stirs(const Later& later) const {
  return later.change != Change::reached &&
         !(later.change == Change::transferred && moved_by_engine(items_[later.item]));
}

bool Streams::moved_by_engine(const Item& item) const {
  return item.transfer >= 0 && transfers_.has_engine(item.transfer);
}

int64_t Streams::works_from_ns(const int64_t now, const bool looks_at_all) const {
  if (looks_at_all && !put_off_.empty()) return now;
  if (std::cmp_equal(not_over_, looks_at_all ? 0 : unnoticed_.size())) return kNever;
  if (running_ > 0 || !nodes_.empty()) return now;
  int64_t first_ns = kNever;
  const auto look_at = [&](const int32_t item) {
    if (stirring_ == 0 && !waits_for_nothing(item)) return;
    const int64_t seen_ns = items_[item].seen_ns;
    if (seen_ns == kNever && !looks_at_all) return;
    const int64_t free_ns = seen_ns == kNever ? now : std::max(now, seen_ns);
    first_ns = std::min(first_ns, std::max(free_ns, reaches_gpu_ns(item)));
  };
  for (const Queue& queue : queues_) {
    if (!queue.empty()) look_at(queue.items[queue.head]);
  }
  if (looks_at_all) std::ranges::for_each(unnoticed_, look_at);
  return first_ns == kNever && stirring_ > 0 ? now : first_ns;
}

int64_t Streams::first_arrival_ns(const int64_t now) const {
  if (running_ > 0 || !nodes_.empty()) return now;
  int64_t first_ns = kNever;
  const auto look_at = [&](const int32_t item) {
    first_ns = std::min(first_ns, std::max(now, reaches_gpu_ns(item)));
  };
  for (const Queue& queue : queues_) {
    if (!queue.empty()) look_at(queue.items[queue.head]);
  }
  std::ranges::for_each(unnoticed_, look_at);
  return first_ns;
}

// Of both kinds the one of which the next has happened by now, first of all.
std::priority_queue<Streams::Later>* Streams::first_changes(const int64_t now) {
  const bool own = !later_.empty() && later_.top().time_ns <= now;
  const bool live = !live_.empty() && live_.top().time_ns <= now + late_ns_;
  if (!live) return own ? &later_ : nullptr;
  if (!own) return &live_;
  Later of_live = live_.top();
  of_live.time_ns -= late_ns_;
  return of_live < later_.top() ? &later_ : &live_;
}

void Streams::happen(const Later& later, const int64_t now) {
  switch (later.change) {
    case Change::done:
      finished_.push_back(later.item);
      break;
    case Change::triggered:
      get_triggered(later.item, now);
      break;
    case Change::one_met:
      met(later.item, now);
      break;
    case Change::issued:
      // By the clock of the GPU: the own one may not have gone on since.
      items_[later.item].issued_ns = std::min(items_[later.item].issued_ns, now);
      if (items_[later.item].follows_nodes) {
        use_queue(items_[later.item].stream);
      } else {
        enqueue(later.item);
      }
      break;
    case Change::reached:
      break;
    case Change::transferred:
      end_transfer(later.item, now);
      break;
  }
}

void Streams::get_triggered(const int32_t index, const int64_t now) {
  if (items_[index].has_been(Until::triggered)) return;
  items_[index].triggered_ns = now;
  for (int32_t edge = items_[index].first_dependent; edge >= 0; edge = dependents_[edge].next) {
    if (dependents_[edge].until == Until::triggered) met(dependents_[edge].item, now);
  }
}

void Streams::finish(const int32_t index, const int64_t now) {
  Item& item = items_[index];
  item.done_ns = now;
  if (item.kind == Kind::host) over_.push_back(index);
  if (item.kind == Kind::load) --not_over_;
  const bool triggers = !item.has_been(Until::triggered);
  if (triggers) item.triggered_ns = now;
  for (int32_t edge = item.first_dependent; edge >= 0; edge = dependents_[edge].next) {
    const auto [dependent, next, latency_ns, until] = dependents_[edge];
    if (until == Until::triggered && triggers) met(dependent, now);
    if (until != Until::done) continue;
    if (items_[dependent].kind == Kind::graph_end) items_[dependent].launch = item.launch;
    items_[dependent].after_copy =
        item.kind == Kind::transfer || (!item.is_launch() && item.after_copy);
    const int64_t known_ns = known_ns_of(index, dependent) + latency_ns;
    if (known_ns > now) {
      change_later({known_ns, dependent, Change::one_met});
    } else {
      met(dependent, now);
    }
  }
  if (index == first_undone_) turn_to_next_undone(now);
}

void Streams::turn_to_next_undone(const int64_t now) {
  const int32_t finished = first_undone_;
  const auto count = static_cast<int32_t>(items_.size());
  const auto is_passed = [](const Item& item) { return item.done() || item.non_blocking; };
  while (first_undone_ < count && is_passed(items_[first_undone_])) ++first_undone_;
  if (first_undone_ == count || !items_[first_undone_].waits_for_all()) return;
  Item& legacy = items_[first_undone_];
  legacy.legacy_until_ns = now;
  legacy.legacy_behind = finished;
  if (legacy.unmet > 0) return;
  if (legacy.is_launch()) {
    be_seen(first_undone_, now);
  } else {
    go_on(first_undone_, now);
  }
}

// When one that waits for an item knows that it is done.
int64_t Streams::known_ns_of(const int32_t done, const int32_t dependent) const {
  const bool is_event = items_[dependent].record == done;
  return items_[done].done_ns + (is_event ? spec_.event_latency_ns : 0);
}

void Streams::met(const int32_t index, const int64_t now) {
  Item& item = items_[index];
  if (--item.unmet > 0) return;
  if (item.kind == Kind::load) {
    change_later({now + spec_.load_ns, index, Change::done});
  } else if (!item.is_launch()) {
    if (!item.legacy || first_undone_ == index) go_on(index, now);
  } else if (item.follows_nodes && item.transfer >= 0) {
    begin_transfer(index, now);
  } else if (item.follows_nodes) {
    nodes_.insert({rank(index), ++nodes_ready_, index});
  } else if (waits_for_nothing(index) && !item.programmatic) {
    if (item.after_copy && dozing_ && !waits_elsewhere(index)) {
      item.seen_ns = kNever;
      asleep_.push_back(index);
      return;
    }
    if (item.after_copy) {
      ++woken_;
      wake(index, now);
    }
    be_seen(index, now);
  }
}

}  // namespace tbsched
