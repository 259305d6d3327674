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

// Keeps the operations of each stream in the order of their issue. What ends in a stream ends all
// that its thread issued there before. Not thread-safe.
class Issued {
 public:
  // An operation that is kept.
  struct Entry {
    Note note;
    std::vector<Word> words = {};  // of a launch's arguments
    uint64_t waits_for = 0;        // number of the record of an event; 0: of none
    // How many nodes of a launched graph have no record yet; none: no graph, or some get none.
    std::optional<GraphRecords> nodes = std::nullopt;
    bool is_written = false;
    bool is_done = false;
  };

  // Takes notes of calls, in their order.
  void take(const std::vector<CallLog::Taken::Row>& notes);

  // Ends an operation whose record has its end.
  void ended(uint32_t call);

  // Takes the record of a node of a graph that has ended: what was before the graph in its stream
  // has ended, and so has the graph with its last node.
  void node_ended(uint32_t call, bool is_kernel);

  // Forgets events that have happened, and waits for them. Afterwards only that is kept which may
  // not have ended.
  void forget_events();

  // Calls action(entry) for each operation that began before `before_ns` and was not written yet.
  void write_older(uint64_t before_ns, const std::function<void(const Entry&)>& action);

  // Calls action(entry) for each operation that was written and has not ended.
  void for_written(const std::function<void(const Entry&)>& action) const;

  // Returns the calls of operations that were written, and ended without a record of their own.
  std::vector<uint32_t> take_ended() { return std::exchange(ended_, {}); }

  bool is_empty() const { return streams_.empty(); }

 private:
  using Stream = std::pair<uint32_t, uint32_t>;  // context and stream
  using Entries = std::deque<Entry>;

  void issue(const Note& note, std::span<const Word> words);
  void loaded(const Note& note, std::span<const Word> words);
  Entry* find(uint32_t call);
  void waited(const Note& note);
  void happened(const Note& note);
  bool is_held_up(const Stream& stream, uint64_t number) const;
  void forget_earlier_record(const Stream& stream, uint64_t event);
  void end_record(uint64_t number);
  void end_passed();
  void drop(const Entry& entry, bool has_record);
  Entries::iterator end_before(Entries& entries, Entries::iterator last);
  void end_through(Entries& entries, Entries::iterator last, bool has_record);
  void remove_empty();

  std::map<Stream, Entries> streams_;
  std::unordered_map<uint32_t, Stream> stream_of_;        // by call
  std::unordered_map<uint32_t, uint32_t> null_streams_;   // by context
  std::unordered_map<uint64_t, uint64_t> latest_record_;  // by event: its number
  std::unordered_set<uint64_t> pending_records_;          // numbers
  std::unordered_set<uint64_t> awaited_records_;          // those that a stream waits for
  std::vector<uint32_t> ended_;
  std::vector<uint64_t> passed_;  // records that have happened: waits for them have ended
};

}  // namespace tbsched::capture
