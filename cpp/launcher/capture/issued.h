// Operations that were issued and are not known to have ended.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "launcher/capture/call_log.h"

namespace tbsched::capture {

// Keeps the operations of each stream in the order of their issue. Once one of them has ended, so
// have all that the same thread issued before it in that stream. A record of an event has an id:
// the order of its call + 1, so that 0 is none. Not thread-safe.
class Issued {
 public:
  // An operation that may not have ended.
  struct Entry {
    Note note;
    std::vector<std::byte> arguments = {};  // of a launch
    uint64_t waits_for = 0;                 // id of the record that a wait is for; 0: none
    // Records that nodes of a launched graph still get; none: no graph, or some nodes get none.
    std::optional<GraphRecords> remaining_records = std::nullopt;
    bool is_written = false;  // write_older() has passed it on
    bool is_done = false;     // ended, or failed: to be removed
  };

  // Adds and ends operations as notes of calls say. Notes must come in their order.
  void apply(const std::vector<CallLog::Taken::Row>& notes);

  // Ends the operation of a call, as its record has an end. Does nothing for a graph: see
  // end_node().
  void end(uint32_t call);

  // Counts the record of an ended node of a graph. What was before the graph in its stream has
  // ended; the graph has once no node is left.
  void end_node(uint32_t call, bool is_kernel);

  // Ends events that have happened, waits for them and written values, as far as nothing unfinished
  // is before them. Afterwards only operations are kept that may not have ended.
  void end_completed_events();

  // Calls action(entry) for each operation that began before `before_ns` and was not written yet,
  // in the order of issue; it is written then.
  void write_older(uint64_t before_ns, const std::function<void(const Entry&)>& action);

  // Calls action(entry) for each operation that was written and has not ended.
  void for_each_written(const std::function<void(const Entry&)>& action) const;

  // Returns, once, the calls of operations that were written and have ended without a record of
  // their own.
  std::vector<uint32_t> take_ended() { return std::exchange(ended_, {}); }

  bool is_empty() const { return streams_.empty(); }

 private:
  using Stream = std::pair<uint32_t, uint32_t>;  // context and stream
  using Entries = std::deque<Entry>;

  // Adds the operation that a call issues.
  void add(const Note& note, std::span<const std::byte> arguments);
  // Sets the function of a launch, and its arguments, once they are known.
  void set_function(const Note& note, std::span<const std::byte> arguments);
  // Returns the operation of a call; null: it is not kept.
  Entry* find(uint32_t call);
  // Ends all that was issued, before the host began to wait, in the stream or the context that it
  // has waited for.
  void end_awaited(const Note& note);
  // Ends the latest record of an event that has happened.
  void end_latest_record(const Note& note);
  // Returns whether work that came before an operation in other streams may hold it up: the legacy
  // default stream waits for the others, and they for it. Non-blocking streams do not, but what is
  // kept too long does no harm.
  bool is_held_up(const Stream& stream, uint64_t record_id) const;
  // Forgets an earlier record of an event, for which nothing waits, if no work came between:
  // otherwise a program that records in an idle stream, which others hold up, would add a record
  // each time.
  void forget_earlier_record(const Stream& stream, uint64_t event);
  // Ends a record of an event, and all before it that its thread issued.
  void end_record(uint64_t record_id);
  // Ends the records in `passed_`: a wait ends after its record, and all before that.
  void end_passed_records();
  // Removes an operation from the maps. `has_record`: CUPTI has written a record of it.
  void forget(const Entry& entry, bool has_record);
  // Ends all before an entry that its thread issued. Returns the new position of the entry.
  Entries::iterator end_before(Entries& entries, Entries::iterator last);
  // Ends an entry, and all before it that its thread issued.
  void end_through(Entries& entries, Entries::iterator last, bool has_record);
  // Removes operations that are done, and streams without operations.
  void remove_done();

  std::map<Stream, Entries> streams_;
  std::unordered_map<uint32_t, Stream> stream_of_;        // by call
  std::unordered_map<uint32_t, uint32_t> null_streams_;   // by context
  std::unordered_map<uint64_t, uint64_t> latest_record_;  // id, by event
  std::unordered_set<uint64_t> pending_records_;          // ids of those that are kept
  std::unordered_set<uint64_t> awaited_records_;          // ids of those that a stream waits for
  std::vector<uint32_t> ended_;                           // calls, for take_ended()
  std::vector<uint64_t> passed_;  // ids of records for which a wait has ended
};

}  // namespace tbsched::capture
