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

void Issued::apply(const std::vector<CallLog::Taken::Row>& notes) {
  for (const auto& [note, arguments] : notes) {
    switch (note->kind) {
      case Note::Kind::kIssued:
        add(*note, arguments);
        break;
      case Note::Kind::kLoaded:
        set_function(*note, arguments);
        break;
      case Note::Kind::kFailed:
        if (Entry* const failed = find(note->operation.call)) failed->is_done = true;
        break;
      case Note::Kind::kWaited:
        end_awaited(*note);
        break;
      case Note::Kind::kHappened:
        end_latest_record(*note);
        break;
    }
  }
}

Issued::Entry* Issued::find(const uint32_t call) {
  const auto stream = stream_of_.find(call);
  if (stream == stream_of_.end()) return nullptr;
  for (Entry& each : streams_[stream->second]) {
    if (each.note.operation.call == call) return &each;
  }
  return nullptr;
}

void Issued::set_function(const Note& note, const std::span<const std::byte> arguments) {
  Entry* const entry = find(note.operation.call);
  if (entry == nullptr) return;
  entry->note.function = note.function;
  entry->arguments.assign(arguments.begin(), arguments.end());
}

void Issued::add(const Note& note, const std::span<const std::byte> arguments) {
  const Operation& operation = note.operation;
  if (!operation.has_stream) return;
  const Stream stream{operation.context, operation.stream};
  Entry entry{.note = note, .arguments = {arguments.begin(), arguments.end()}};
  if (note.graph != nullptr && !note.graph->is_changed) {
    entry.remaining_records = note.graph->graph->records;
  }
  const uint64_t record_id = note.by.order + 1;
  if (operation.is_null_stream) null_streams_[operation.context] = operation.stream;
  if (operation.what == What::kRecord) {
    latest_record_[operation.event] = record_id;
    if (!streams_.contains(stream) && !is_held_up(stream, record_id)) return;  // it happens at once
    forget_earlier_record(stream, operation.event);
    pending_records_.insert(record_id);
  } else if (operation.what == What::kWait) {
    const auto latest = latest_record_.find(operation.event);
    if (latest == latest_record_.end() || !pending_records_.contains(latest->second)) return;
    entry.waits_for = latest->second;
    awaited_records_.insert(entry.waits_for);
  }
  streams_[stream].push_back(std::move(entry));
  stream_of_[operation.call] = stream;
}

void Issued::forget_earlier_record(const Stream& stream, const uint64_t event) {
  constexpr size_t kMaxRecords = 64;  // that are searched
  const auto known = streams_.find(stream);
  if (known == streams_.end()) return;
  Entries& entries = known->second;
  for (size_t back = 1; back <= std::min(kMaxRecords, entries.size()); ++back) {
    const auto each = std::prev(entries.end(), static_cast<Entries::difference_type>(back));
    const Operation& operation = each->note.operation;
    if (operation.what != What::kRecord) return;
    if (operation.event != event || awaited_records_.contains(each->note.by.order + 1)) continue;
    forget(*each, false);
    entries.erase(each);
    return;
  }
}

bool Issued::is_held_up(const Stream& stream, const uint64_t record_id) const {
  const auto null_stream = null_streams_.find(stream.first);
  if (null_stream == null_streams_.end()) return false;
  const auto is_before = [record_id](const Entry& each) {
    return each.note.by.order + 1 < record_id && is_work(each.note.operation.what);
  };
  return std::ranges::any_of(streams_, [&](const auto& each) {
    const auto& [other, entries] = each;
    const bool waits =
        other.first == stream.first && other.second != stream.second &&
        (stream.second == null_stream->second || other.second == null_stream->second);
    return waits && std::ranges::any_of(entries, is_before);
  });
}

void Issued::forget(const Entry& entry, const bool has_record) {
  const Operation& operation = entry.note.operation;
  stream_of_.erase(operation.call);
  if (operation.what == What::kRecord) {
    pending_records_.erase(entry.note.by.order + 1);
    awaited_records_.erase(entry.note.by.order + 1);
  }
  if (entry.is_written && !has_record) ended_.push_back(operation.call);
}

Issued::Entries::iterator Issued::end_before(Entries& entries, const Entries::iterator last) {
  const int32_t thread = last->note.by.os_thread;
  Entries others;
  for (auto each = entries.begin(); each != last; ++each) {
    if (each->note.by.os_thread != thread) {
      others.push_back(*each);
      continue;
    }
    if (each->waits_for != 0) passed_.push_back(each->waits_for);
    forget(*each, false);
  }
  entries.erase(entries.begin(), last);
  entries.insert(entries.begin(), others.begin(), others.end());
  return std::next(entries.begin(), static_cast<Entries::difference_type>(others.size()));
}

void Issued::end_through(Entries& entries, const Entries::iterator last, const bool has_record) {
  const auto ended = end_before(entries, last);
  forget(*ended, has_record);
  entries.erase(ended);
}

void Issued::end_node(const uint32_t call, const bool is_kernel) {
  const auto key = stream_of_.find(call);
  if (key == stream_of_.end()) return;
  const auto stream = streams_.find(key->second);
  const auto entry = std::ranges::find_if(
      stream->second, [&](const Entry& each) { return each.note.operation.call == call; });
  if (entry == stream->second.end()) return;
  const auto graph = end_before(stream->second, entry);
  if (graph->remaining_records) {
    uint64_t& remaining =
        is_kernel ? graph->remaining_records->kernels : graph->remaining_records->transfers;
    if (remaining > 0) --remaining;
    if (graph->remaining_records->kernels + graph->remaining_records->transfers == 0) {
      end_through(stream->second, graph, false);
      if (stream->second.empty()) streams_.erase(stream);
    }
  }
  end_passed_records();
}

void Issued::end(const uint32_t call) {
  const auto key = stream_of_.find(call);
  if (key == stream_of_.end()) return;
  const auto stream = streams_.find(key->second);
  const auto entry = std::ranges::find_if(
      stream->second, [&](const Entry& each) { return each.note.operation.call == call; });
  // Records of a graph's nodes are counted: see end_node().
  if (entry == stream->second.end() || entry->note.operation.what == What::kGraph) return;
  end_through(stream->second, entry, true);
  if (stream->second.empty()) streams_.erase(stream);
  end_passed_records();
}

void Issued::end_awaited(const Note& note) {
  const Operation& operation = note.operation;
  for (auto& [stream, entries] : streams_) {
    if (stream.first != operation.context) continue;
    if (operation.has_stream && stream.second != operation.stream) continue;
    // What was issued while the host waited may not have ended.
    for (Entry& each : entries) each.is_done |= each.note.by.order < note.by.order;
  }
  remove_done();
}

void Issued::end_latest_record(const Note& note) {
  const auto latest = latest_record_.find(note.operation.event);
  if (latest == latest_record_.end() || !pending_records_.contains(latest->second)) return;
  // A record that was made while the host waited may not be the one that it waited for.
  if (latest->second > note.by.order) return;
  end_record(latest->second);
  end_passed_records();
  remove_done();
}

void Issued::end_record(const uint64_t record_id) {
  if (!pending_records_.contains(record_id)) return;
  for (auto& [stream, entries] : streams_) {
    const auto entry = std::ranges::find_if(
        entries, [&](const Entry& each) { return each.note.by.order + 1 == record_id; });
    if (entry == entries.end()) continue;
    return end_through(entries, entry, false);
  }
}

void Issued::end_passed_records() {
  while (!passed_.empty()) {
    const uint64_t record_id = passed_.back();
    passed_.pop_back();
    end_record(record_id);
  }
}

void Issued::remove_done() {
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    std::erase_if(stream->second, [&](const Entry& each) {
      if (each.is_done) forget(each, false);
      return each.is_done;
    });
    stream = stream->second.empty() ? streams_.erase(stream) : std::next(stream);
  }
}

void Issued::end_completed_events() {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (auto& [stream, entries] : streams_) {
      while (!entries.empty()) {
        const Entry& first = entries.front();
        const What what = first.note.operation.what;
        const bool is_mark = what == What::kRecord || what == What::kWriteValue;
        const bool has_happened =
            first.is_done || (is_mark && !is_held_up(stream, first.note.by.order + 1)) ||
            (what == What::kWait && !pending_records_.contains(first.waits_for));
        if (!has_happened) break;
        forget(first, false);
        entries.pop_front();
        has_changed = true;
      }
    }
  }
  remove_done();
}

void Issued::for_each_written(const std::function<void(const Entry&)>& action) const {
  for (const auto& [stream, entries] : streams_) {
    for (const Entry& each : entries) {
      if (each.is_written) action(each);
    }
  }
}

void Issued::write_older(const uint64_t before_ns,
                         const std::function<void(const Entry&)>& action) {
  std::vector<Entry*> older;
  for (auto& [stream, entries] : streams_) {
    for (Entry& each : entries) {
      if (!each.is_written && each.note.by.begin_ns < before_ns) older.push_back(&each);
    }
  }
  std::ranges::sort(older, {}, [](const Entry* const each) { return each->note.by.order; });
  for (Entry* const each : older) {
    each->is_written = true;
    action(*each);
  }
}

}  // namespace tbsched::capture
