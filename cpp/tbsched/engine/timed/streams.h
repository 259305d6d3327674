// Streams, CUDA events and hardware queues: what the host has issued, and which launch may go on to
// the thread block scheduler.
//
// Launches reach the GPU through a few queues, each first in, first out: the launch at its head
// waits for all work before it in its stream, for the events that its stream waits for and for the
// legacy stream, and meanwhile holds up everything behind it. Recording an event and waiting for
// one take no place in a queue; a wait takes effect with the next launch of its stream.
//
// Front ends of the GPU look at the queues of which the head waits, each at its own. Where several
// of them wait, it goes round, and sees later that one need not. Source: traces ways/waiting;
// docs/explanation/time-on-an-h200.md.
//
// Three kinds of work wait for less:
//   - A programmatic launch waits for the triggers of the launch before it in its stream. It counts
//     as over, to what comes later, only when that launch is over too.
//   - A node of a graph waits for the nodes that it depends on, and takes no queue. Those without
//     such nodes wait for what comes before the graph. The first is as a launch of the graph's
//     stream, each other as a launch of a stream of its own, the same whenever the graph comes.
//   - Work of a non-blocking stream and the legacy stream do not wait for each other.
//
// Which queue a launch takes is the driver's choice, made at the launch call. A stream goes on with
// its queue as long as it was the last one to use it. Else it takes the queue that was used longest
// ago: of those from which the GPU has taken everything, or, where there is none, of all. Among
// queues that were never used, and always for a graph, it prefers the front end that did not get
// the launch before. Source: traces h200-timed/queues, ways/waiting;
// docs/explanation/time-on-an-h200.md says how often it is right.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tbsched/engine/timed/graph_order.h"
#include "tbsched/engine/timed/transfers.h"
#include "tbsched/hardware/device_spec.h"
#include "tbsched/policy/launch_order.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"

namespace tbsched {

// The numbers of what an event issues first, each among all of a sequence.
struct EventNumbers {
  int32_t launch = 0;
  int32_t transfer = 0;
  int32_t hidden = 0;  // a relay of a graph, or a kernel of the driver
};

class Streams {
 public:
  explicit Streams(const DeviceSpec& spec);

  // Before anything is issued: of launches that may go on at the same time, and are equally urgent,
  // the one of the least number goes first; by launch. Without: the first one issued.
  void take_turns(std::vector<int32_t> turns) { turns_ = std::move(turns); }
  // Before anything is issued: other processes use the copy engines, too.
  void share(const std::span<EngineTurns, Transfers::kEngines> engines, const int32_t process) {
    transfers_.share(engines, process);
  }
  // Before anything is issued: which streams are non-blocking.
  void make_non_blocking(int32_t stream);
  // Before anything is issued, in the order of the program: the driver brings the graph to the GPU.
  const GraphOrder& bring(const GraphLaunch& launched);
  // Before anything is issued: how many launches there are, relays of graphs and driver's kernels,
  // which are numbered behind them, and copies and memsets.
  void expect(int32_t launches, int32_t hidden, int32_t transfers);
  // The host issues it. `numbers`: of its first launch, copy or memset, and relay or driver's
  // kernel; further ones follow. `issue_ns`: when the driver issues each launch; of a graph, a root
  // whose time is not later, or not given, follows the root before it. Returns when the call ends,
  // if it waits for nothing: the driver launches the roots of a graph within it.
  int64_t issue(const Event& event, const EventNumbers& numbers, std::span<const int64_t> issue_ns,
                int64_t now);
  // The kernel of a launch is loaded, which waits for all work issued so far. All later work waits
  // for that, whatever its stream.
  void load(int32_t launch, int64_t now);
  // What the host waits for where it synchronizes, or before it launches; none: nothing.
  std::optional<int32_t> wait_for(const Event& event, int64_t now);
  // The same where it waits for the end of a copy that it has issued.
  std::optional<int32_t> wait_for_transfer(int32_t transfer, int64_t now);
  // The same of a launch call: a place in its hardware queue.
  std::optional<int32_t> wait_for_place(const Launch& launch, int64_t now);
  // Of those, which are over now and were not when this was last asked; valid until the next call.
  std::span<const int32_t> over(int64_t now);
  // Takes, if there is room for a grid, the launch that may start: of several the first in the
  // order of launches.
  std::optional<int32_t> take(bool room_for_grid, int64_t now);
  // All blocks of a launch will have triggered or ended by `at_ns`, now or later.
  void trigger(int32_t launch, int64_t at_ns);
  // The last block of a launch has left. Returns the launches before which, in their streams,
  // nothing is left now; valid until the next call.
  std::span<const int32_t> end(int32_t launch, int64_t now);
  // Whether all that comes before it in its stream has left.
  bool first_in_stream(int32_t launch) const;
  // From now on the GPU does not look at a queue that was empty and gets something, nor at a launch
  // that waited for an engine. An event that is recorded behind launches that are over waits, too.
  void doze() { dozing_ = true; }
  // It looks at all queues again.
  void look_again(int64_t now);
  // Whether anything waits in a queue that it looks at: a launch, or a copy or the record of an
  // event behind a launch that is not over.
  bool waits() const { return waits_elsewhere(-1); }
  // How many launches have come to queues, but for those that wait for a copy of an engine; and how
  // many have gone on after such a copy.
  int64_t came() const { return came_; }
  int64_t woken() const { return woken_; }
  // When something changes here by itself after `now`; kNever: it does not.
  int64_t next_change(int64_t now) const;

  // While another process has the GPU, time stands still here, but not for copies by engines, nor
  // for what the host waits for: by their clock, that of the GPU, it is so much later.
  int64_t late_ns() const { return late_ns_; }
  void be_late(const int64_t ns) { late_ns_ = ns; }
  // Everything that has happened by now.
  void settle(int64_t now);
  // When such a thing changes next, by the clock of the GPU.
  int64_t next_live_change() const { return live_.empty() ? kNever : live_.top().time_ns; }
  // From when on any launch does anything, or any copy that no engine makes, unless all of them are
  // over or wait for engines; kNever: they do. Those that the GPU does not look at now do nothing,
  // unless it looks at all.
  int64_t works_from_ns(int64_t now, bool looks_at_all) const;
  // When the first launch is there of those that are on the way, or were; kNever: there is none.
  int64_t first_arrival_ns(int64_t now) const;

  // When each copy and memset that was issued moved its bytes.
  const std::vector<TransferTime>& transfer_times() const { return transfers_.times(); }
  // -1: a node of a graph that took none.
  int32_t hardware_queue(int32_t launch) const { return items_[item_of(launch)].queue; }
  // What a launch that is taken now has waited for since it reached the GPU.
  void append_waits(int32_t launch, int64_t now, std::vector<Wait>& waits) const;

 private:
  // So many launches of a stream can be under way at once (traces ways/dependent).
  static constexpr int32_t kMostInFlight = 8;
  static constexpr int64_t kBehindGraph = 2;  // the place of a launch behind the roots

  // A copy by an engine is a transfer, if it is in a stream. All other copies and memsets, and all
  // nodes of graphs, are launches. In no stream: host, what a host thread waits for, and load, a
  // kernel that is loaded.
  enum class Kind : uint8_t { launch, transfer, record, wait, graph_begin, graph_end, host, load };
  // What of an item another one waits for.
  enum class Until : uint8_t { triggered, over, done };
  // Everything that the host issues, in order. Indices are into items_, -1 for none.
  struct Item {
    Kind kind;
    bool legacy = false;
    bool non_blocking = false;   // it and the legacy stream do not wait for each other
    bool programmatic = false;   // and nothing keeps it from being so
    bool follows_nodes = false;  // of its graph, and so takes no queue
    bool left = false;           // all of its blocks have
    bool is_prepared = false;    // of a root: if it is a copy, it begins when it reaches the GPU
    bool after_copy = false;     // what it waited for last is a copy of an engine
    bool behind_launch = false;  // a copy or a record behind a launch that is not over
    int32_t stream = -1;         // into streams_
    // Itself, as Wait::behind names it; of the end of a graph: what was done last.
    int32_t launch = -1;
    int32_t transfer = -1;  // the number of a copy or memset that is no kernel
    int32_t priority = 0;
    int32_t queue = -1;            // of a launch
    int32_t unmet = 0;             // what it still waits for, but for the legacy stream's own items
    int32_t first_dependent = -1;  // into dependents_
    int32_t ahead = -1;            // before it in its queue, or the last node that it waited for
    // What a wait waits for; a launch's completion event; the end of the launch before of a graph.
    int32_t record = -1;
    // The last launch, copy, memset or end of a graph before it in its stream.
    int32_t last_launch = -1;
    int32_t last_wait = -1;       // the last wait before it in its stream, after last_launch
    int32_t last_legacy = -1;     // the last item of the legacy stream before it
    int32_t last_load = -1;       // the last kernel that was loaded before it
    int32_t legacy_behind = -1;   // of the legacy stream: the last item that it waited for,
    int64_t legacy_until_ns = 0;  // and until when
    int32_t graph = -1;           // of a node: the begin of its graph
    int64_t delay_ns = 0;         // of a launch that still waits
    int64_t issued_ns = 0;        // by the driver, of a root after the call
    int64_t seen_ns = 0;          // when the GPU sees that it need not wait any more
    int64_t at_head_ns = 0;  // of its queue; of a node without one: when it need not wait any more
    int64_t triggered_ns = -1;  // when programmatic launches know it
    int64_t over_ns = -1;       // it has left, and so has all before it in its stream
    int64_t done_ns = -1;       // what waits for it knows that it is over

    bool done() const { return done_ns >= 0; }
    bool has_been(const Until until) const {
      return (until == Until::triggered ? triggered_ns
              : until == Until::over    ? over_ns
                                        : done_ns) >= 0;
    }
    bool is_launch() const { return kind == Kind::launch; }
    // Whether it has to wait until nothing before it is left in any stream that blocks.
    bool waits_for_all() const { return legacy && !programmatic; }
  };
  struct Dependent {
    int32_t item;
    int32_t next;
    int32_t latency_ns;
    Until until;
  };
  struct StreamState {
    bool legacy = false;
    bool non_blocking = false;
    bool open = false;  // it is among open_
    // Since the last launch a wait was issued for an event that had not happened.
    bool waits_for_event = false;
    int32_t queue = -1;
    int32_t last = -1;
    int32_t last_launch = -1;
    int32_t last_wait = -1;

    // From a launch, copy, memset or the end of a graph.
    void go_on_from(const int32_t item) {
      last_launch = item;
      last_wait = -1;
      waits_for_event = false;
    }
  };
  struct Queue {
    std::vector<int32_t> items;
    size_t head = 0;
    int64_t last_use = 0;      // counts uses of all queues
    int32_t last_stream = -1;  // counts streams
    bool goes_unnoticed = false;

    bool empty() const { return head == items.size(); }
  };
  struct GraphState {
    GraphOrder order;
    std::vector<int32_t> streams;  // of each root; the first is in that of the first launch
    int32_t last_end = -1;         // of the launch before
  };
  // Of each node that the driver issues; of the first `known` somebody has said when.
  struct IssueTimes {
    std::vector<int64_t> times_ns;
    size_t known = 0;
  };
  // It looks at some of the queues.
  struct FrontEnd {
    int32_t filled = 0;        // so many of them are not empty
    int32_t waiting = 0;       // so many of them wait
    int64_t last_seen_ns = 0;  // when it last saw that one of several need not
  };
  // What happens to an item by itself, a while after its cause.
  enum class Change : uint8_t { done, triggered, one_met, issued, reached, transferred };
  struct Later {
    int64_t time_ns;
    int32_t item;
    Change change;
    int64_t place = 0;  // of a node that is served: of several at once, in this order

    // The first is at the top of a heap.
    bool operator<(const Later& other) const {
      return std::tie(time_ns, place, item) > std::tie(other.time_ns, other.place, other.item);
    }
  };
  // Of a graph, one that need not wait any more, and waits for room for a grid.
  struct ReadyNode {
    int32_t rank;
    int64_t place;  // in the order in which they became so
    int32_t item;

    auto operator<=>(const ReadyNode&) const = default;
  };

  void issue(const Launch& launch, int32_t number, int64_t now);
  void issue(const RecordEvent& record, int64_t now);
  void issue(const WaitEvent& wait, int64_t now);
  void issue(const Copy& copy, const EventNumbers& numbers, int64_t now);
  void issue(const Memset& memset, const EventNumbers& numbers, int64_t now);
  template <typename Transfer>
  void issue_transfer(const Transfer& asked, const EventNumbers& numbers, int64_t now);
  int64_t issue(const GraphLaunch& launched, EventNumbers numbers,
                std::span<const int64_t> issue_ns, int64_t now);
  int64_t issue_nodes(const GraphState& graph, int32_t begin, int32_t first_launch,
                      std::span<const int64_t> issue_ns, int64_t now);
  IssueTimes issue_times(const GraphOrder& order, int32_t begin, int32_t first_launch,
                         std::span<const int64_t> issue_ns, int64_t now) const;
  void give_place(int32_t taken);
  void depend_on_streams(int32_t item, bool blocking_alone);
  int32_t stream_named(std::optional<int32_t> name);  // into streams_
  // These return the index of the item.
  int32_t add(Item item, int32_t stream, int64_t now);
  int32_t push(const Item& item);
  void add_node(const Node& node, int32_t begin, EventNumbers& numbers);
  template <typename Transfer>
  void add_transfer_node(const Transfer& asked, int32_t begin, EventNumbers& numbers);
  void add_node(int32_t launch, int32_t priority, int32_t begin);
  int32_t item_of(const int32_t launch) const {
    return launch < launches_ ? item_of_launch_[launch] : item_of_relay_[launch - launches_];
  }
  bool is_programmatic(const Launch& launch, const StreamState& stream) const;
  int32_t launch_before(int32_t launch, int32_t count) const;
  void depend(int32_t item, int32_t on, Until until = Until::done, int32_t latency_ns = 0);
  void enqueue(int32_t index, int64_t now);
  void enqueue(int32_t item);
  void join_queue(int32_t item, int64_t seen_ns);
  int32_t use_queue(int32_t stream_number);  // returns it
  void begin_transfers(int64_t now);
  void begin_transfer(int32_t item, int64_t now);
  void end_transfer_at(int32_t item, int64_t now, int64_t end_ns);
  bool begin_engines(int64_t now);
  void end_transfer(int32_t item, int64_t now);
  void wake(int32_t item, int64_t now);
  void go_on(int32_t item, int64_t now);
  void pass_head(Queue& queue, int64_t now);
  // The one that its next launch takes. `stream_number`: -1: a new stream.
  int32_t queue_of(int32_t stream_number) const;
  int32_t choose_queue() const;
  int32_t front_end(const int32_t queue) const { return queue % spec_.front_ends; }
  bool ready(int32_t item, int64_t now) const;
  // Of one that is ready, whether it begins to be late now, as the program has it.
  bool begins_delay(int32_t item, int64_t now);
  bool waits_for_nothing(int32_t item) const;
  int32_t rank(int32_t item) const;
  int32_t turn(int32_t item) const;
  bool before(int32_t a, int32_t b) const;
  int64_t reaches_gpu_ns(const int32_t item) const {
    const Item& found = items_[item];
    const int64_t latency_ns = found.graph < 0 ? spec_.launch_latency_ns : spec_.graph_latency_ns;
    return found.issued_ns + latency_ns;
  }
  void change_later(Later later);
  bool stirs(const Later& later) const;
  bool moved_by_engine(const Item& item) const;
  bool needs_turn(const Item& item) const;
  bool is_awaited(const Item& item) const;
  void count_arrival(int32_t item);
  bool waits_elsewhere(int32_t item) const;
  bool goes_unnoticed(int32_t before) const;
  // Whether nothing is left in it once a launch has come that is on the way.
  bool runs_empty(const Queue& queue) const {
    return queue.empty() ||
           (queue.head + 1 == queue.items.size() && items_[queue.items.back()].unmet == 0);
  }
  std::priority_queue<Later>* first_changes(int64_t now);
  void happen(const Later& later, int64_t now);
  void get_triggered(int32_t item, int64_t now);
  void get_over(int32_t item, int64_t now);
  void finish(int32_t item, int64_t now);
  void turn_to_next_undone(int64_t now);
  int64_t known_ns_of(int32_t done, int32_t dependent) const;
  void met(int32_t item, int64_t now);  // one of what it waits for
  void be_seen(int32_t item, int64_t now);
  int32_t behind(int32_t item) const;

  const DeviceSpec& spec_;
  LaunchOrder order_;
  Transfers transfers_;
  std::vector<Item> items_;
  std::vector<Dependent> dependents_;
  int32_t launches_ = 0;
  std::vector<int32_t> item_of_launch_;
  std::vector<int32_t> item_of_relay_;  // of relays of graphs, and of driver's kernels
  std::vector<int32_t> item_of_transfer_;
  std::unordered_map<int32_t, int32_t> number_of_stream_;
  std::vector<StreamState> streams_;
  std::unordered_map<int32_t, int32_t> last_record_;  // by event
  std::vector<Queue> queues_;
  int64_t queue_uses_ = 0;
  int32_t last_queue_ = -1;  // that was used
  std::vector<FrontEnd> front_ends_;
  bool dozing_ = false;
  std::vector<int32_t> unnoticed_;  // which are in no queue yet
  std::vector<int32_t> asleep_;     // which waited for an engine
  std::vector<int32_t> put_off_;    // records
  std::set<ReadyNode> nodes_;
  int32_t running_ = 0;        // launches that were taken and have not left
  int64_t idle_since_ns_ = 0;  // where there is none
  int64_t nodes_served_ = 0;
  std::vector<int32_t> turns_;
  int64_t nodes_ready_ = 0;
  std::unordered_map<const Graph*, GraphState> graphs_;
  std::priority_queue<Later> later_;
  std::priority_queue<Later> live_;  // by the clock of the GPU: what goes on without the process
  int64_t graph_until_ns_ = 0;       // the driver issues one
  int64_t late_ns_ = 0;
  int32_t not_over_ = 0;         // launches, and kernels that are loaded
  int32_t behind_launches_ = 0;  // copies and records
  int64_t came_ = 0;
  int64_t woken_ = 0;
  int32_t stirring_ = 0;                  // of later_ and live_
  std::vector<int32_t> finished_;         // whose dependents are to be told
  std::vector<int32_t> first_in_stream_;  // launches that have become so
  std::vector<int32_t> open_;             // streams that may have work that is not done
  std::vector<int32_t> over_;             // what the host waited for, and was not told of
  std::vector<int32_t> told_over_;
  // What the host waits for, by the launch that must be taken from its queue.
  std::unordered_multimap<int32_t, int32_t> places_awaited_;
  int32_t last_legacy_ = -1;
  int32_t last_load_ = -1;
  int32_t last_other_ = -1;  // the last item outside the legacy stream, of a stream that blocks
  int32_t first_undone_ = 0;
};

}  // namespace tbsched
