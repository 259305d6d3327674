#include "launcher/capture/issued.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tbsched::capture {
namespace {

// Returns whether an operation takes time by itself.
bool is_work(const What what) {
  return what != What::kRecord && what != What::kWait && what != What::kWriteValue;
}

}  // namespace

void Issued::take(const std::vector<CallLog::Taken::Row>& notes) {
  for (const auto& [note, words] : notes) {
    switch (note->kind) {
      case Note::Kind::kIssued:
        issue(*note, words);
        break;
      case Note::Kind::kLoaded:
        loaded(*note, words);
        break;
      case Note::Kind::kFailed:
        if (Entry* const failed = find(note->operation.call)) failed->is_done = true;
        break;
      case Note::Kind::kWaited:
        waited(*note);
        break;
      case Note::Kind::kHappened:
        happened(*note);
        break;
    }
  }
}

Issued::Entry* Issued::find(const uint32_t call) {
  const auto found = stream_of_.find(call);
  if (found == stream_of_.end()) return nullptr;
  for (Entry& each : streams_[found->second]) {
    if (each.note.operation.call == call) return &each;
  }
  return nullptr;
}

void Issued::loaded(const Note& note, const std::span<const Word> words) {
  Entry* const entry = find(note.operation.call);
  if (entry == nullptr) return;
  entry->note.function = note.function;
  entry->words.assign(words.begin(), words.end());
}

void Issued::issue(const Note& note, const std::span<const Word> words) {
  const Operation& operation = note.operation;
  if (!operation.has_stream) return;
  const Stream stream{operation.context, operation.stream};
  Entry entry{.note = note, .words = {words.begin(), words.end()}};
  if (note.graph != nullptr && !note.graph->is_changed) entry.nodes = note.graph->graph->records;
  // Numbers count from 1, so that 0 is none.
  const uint64_t number = note.by.number + 1;
  if (operation.is_null_stream) null_streams_[operation.context] = operation.stream;
  if (operation.what == What::kRecord) {
    latest_record_[operation.event] = number;
    if (!streams_.contains(stream) && !is_held_up(stream, number)) return;  // it happens at once
    forget_earlier_record(stream, operation.event);
    pending_records_.insert(number);
  } else if (operation.what == What::kWait) {
    const auto latest = latest_record_.find(operation.event);
    if (latest == latest_record_.end() || !pending_records_.contains(latest->second)) return;
    entry.waits_for = latest->second;
    awaited_records_.insert(entry.waits_for);
  }
  streams_[stream].push_back(std::move(entry));
  stream_of_[operation.call] = stream;
}

// Forgets an earlier record of an event, for which nothing waits, if no work came between:
// otherwise a program that records in an idle stream, which others hold up, would add one each
// time.
void Issued::forget_earlier_record(const Stream& stream, const uint64_t event) {
  constexpr size_t kMost = 64;  // records that are looked at
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  Entries& entries = found->second;
  for (size_t back = 1; back <= std::min(kMost, entries.size()); ++back) {
    const auto each = std::prev(entries.end(), static_cast<Entries::difference_type>(back));
    const Operation& operation = each->note.operation;
    if (operation.what != What::kRecord) return;
    if (operation.event != event || awaited_records_.contains(each->note.by.number + 1)) continue;
    drop(*each, false);
    entries.erase(each);
    return;
  }
}

// Returns whether work that came before an operation in other streams may hold it up: the legacy
// default stream waits for the others, and they for it. Those that are non-blocking do not, but
// what is kept too long does no harm.
bool Issued::is_held_up(const Stream& stream, const uint64_t number) const {
  const auto null_stream = null_streams_.find(stream.first);
  if (null_stream == null_streams_.end()) return false;
  const auto is_before = [number](const Entry& each) {
    return each.note.by.number + 1 < number && is_work(each.note.operation.what);
  };
  return std::ranges::any_of(streams_, [&](const auto& each) {
    const auto& [other, entries] = each;
    const bool waits =
        other.first == stream.first && other.second != stream.second &&
        (stream.second == null_stream->second || other.second == null_stream->second);
    return waits && std::ranges::any_of(entries, is_before);
  });
}

void Issued::drop(const Entry& entry, const bool has_record) {
  const Operation& operation = entry.note.operation;
  stream_of_.erase(operation.call);
  if (operation.what == What::kRecord) {
    pending_records_.erase(entry.note.by.number + 1);
    awaited_records_.erase(entry.note.by.number + 1);
  }
  if (entry.is_written && !has_record) ended_.push_back(operation.call);
}

// Ends all before an entry that its thread issued. Returns where the entry is then.
Issued::Entries::iterator Issued::end_before(Entries& entries, const Entries::iterator last) {
  const int32_t thread = last->note.by.system;
  Entries others;
  for (auto each = entries.begin(); each != last; ++each) {
    if (each->note.by.system != thread) {
      others.push_back(*each);
      continue;
    }
    if (each->waits_for != 0) passed_.push_back(each->waits_for);
    drop(*each, false);
  }
  entries.erase(entries.begin(), last);
  entries.insert(entries.begin(), others.begin(), others.end());
  return std::next(entries.begin(), static_cast<Entries::difference_type>(others.size()));
}

// Ends an entry, and all before it that its thread issued.
void Issued::end_through(Entries& entries, const Entries::iterator last, const bool has_record) {
  const auto own = end_before(entries, last);
  drop(*own, has_record);
  entries.erase(own);
}

void Issued::node_ended(const uint32_t call, const bool is_kernel) {
  const auto found = stream_of_.find(call);
  if (found == stream_of_.end()) return;
  const auto stream = streams_.find(found->second);
  const auto entry = std::ranges::find_if(
      stream->second, [&](const Entry& each) { return each.note.operation.call == call; });
  if (entry == stream->second.end()) return;
  const auto own = end_before(stream->second, entry);
  if (own->nodes) {
    uint64_t& left = is_kernel ? own->nodes->kernels : own->nodes->transfers;
    if (left > 0) --left;
    if (own->nodes->kernels + own->nodes->transfers == 0) {
      end_through(stream->second, own, false);
      if (stream->second.empty()) streams_.erase(stream);
    }
  }
  end_passed();
}

void Issued::ended(const uint32_t call) {
  const auto found = stream_of_.find(call);
  if (found == stream_of_.end()) return;
  const auto stream = streams_.find(found->second);
  const auto entry = std::ranges::find_if(
      stream->second, [&](const Entry& each) { return each.note.operation.call == call; });
  // Records of a graph's nodes are counted: see node_ended().
  if (entry == stream->second.end() || entry->note.operation.what == What::kGraph) return;
  end_through(stream->second, entry, true);
  if (stream->second.empty()) streams_.erase(stream);
  end_passed();
}

// The host has waited for a stream, or for all of a context. What was issued while it waited may
// not have ended.
void Issued::waited(const Note& note) {
  const Operation& operation = note.operation;
  for (auto& [stream, entries] : streams_) {
    if (stream.first != operation.context) continue;
    if (operation.has_stream && stream.second != operation.stream) continue;
    for (Entry& each : entries) each.is_done |= each.note.by.number < note.by.number;
  }
  remove_empty();
}

void Issued::happened(const Note& note) {
  const auto latest = latest_record_.find(note.operation.event);
  if (latest == latest_record_.end() || !pending_records_.contains(latest->second)) return;
  // A record that was made while the host waited may not be the one that it waited for.
  if (latest->second > note.by.number) return;
  end_record(latest->second);
  end_passed();
  remove_empty();
}

// Ends a record of an event, and all before it that its thread issued.
void Issued::end_record(const uint64_t number) {
  if (!pending_records_.contains(number)) return;
  for (auto& [stream, entries] : streams_) {
    const auto entry = std::ranges::find_if(
        entries, [&](const Entry& each) { return each.note.by.number + 1 == number; });
    if (entry == entries.end()) continue;
    return end_through(entries, entry, false);
  }
}

// A wait that has ended was for a record that has happened, after all before it.
void Issued::end_passed() {
  while (!passed_.empty()) {
    const uint64_t number = passed_.back();
    passed_.pop_back();
    end_record(number);
  }
}

void Issued::remove_empty() {
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    std::erase_if(stream->second, [&](const Entry& each) {
      if (each.is_done) drop(each, false);
      return each.is_done;
    });
    stream = stream->second.empty() ? streams_.erase(stream) : std::next(stream);
  }
}

void Issued::forget_events() {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (auto& [stream, entries] : streams_) {
      while (!entries.empty()) {
        const Entry& first = entries.front();
        const bool is_record = first.note.operation.what == What::kRecord;
        const bool has_happened = first.is_done ||
                                  (is_record && !is_held_up(stream, first.note.by.number + 1)) ||
                                  first.note.operation.what == What::kWriteValue ||
                                  (first.note.operation.what == What::kWait &&
                                   !pending_records_.contains(first.waits_for));
        if (!has_happened) break;
        drop(first, false);
        entries.pop_front();
        has_changed = true;
      }
    }
  }
  remove_empty();
}

void Issued::for_written(const std::function<void(const Entry&)>& action) const {
  for (const auto& [stream, entries] : streams_) {
    for (const Entry& each : entries) {
      if (each.is_written) action(each);
    }
  }
}

void Issued::write_older(const uint64_t before_ns,
                         const std::function<void(const Entry&)>& action) {
  std::vector<Entry*> found;
  for (auto& [stream, entries] : streams_) {
    for (Entry& each : entries) {
      if (!each.is_written && each.note.by.begin_ns < before_ns) found.push_back(&each);
    }
  }
  std::ranges::sort(found, {}, [](const Entry* const each) { return each->note.by.number; });
  for (Entry* const each : found) {
    each->is_written = true;
    action(*each);
  }
}

}  // namespace tbsched::capture
