// Copy engines, and copies and memsets that need none: when each begins and ends.
//
// An example: two copies of 16 MB from the host to the GPU may begin at once. The first ends after
// 0.3 ms, the second after 0.6 ms.
//
// The rules:
//   1. There is a copy engine for each direction between the host and the GPU, or one for both. It
//      moves the bytes of one copy at a time. While two engines move bytes, each does so more
//      slowly.
//   2. An engine has a few channels, each first in, first out. A copy that waits for its stream
//      holds up what is behind it in its channel, whatever the stream. Streams take channels as
//      they take hardware queues.
//   3. An engine goes on with the copies of one channel until the next one there must wait. Then it
//      turns to the next channel. An engine that stood still learns a while later that a copy need
//      not wait any more, and by then of others, too: it takes the first channel that has one.
//   4. Small copies from the host and small memsets take no engine. They go through the hardware
//      queue of their stream, and take no room on an SM.
//   5. The host itself copies from and to pageable memory, within the call.
//   6. One more engine writes to the memory of other GPUs, over the links between them. It neither
//      slows the others nor is slowed. Not measured.
// A host function is a transfer that needs no engine: it moves no bytes, and takes its duration. So
// is a node of a graph that records a CUDA event or waits for one, which takes no time.
//
// Source: traces ways/copies; docs/explanation/copies.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"
#include "tbsched/sim/clock.h"
#include "tbsched/sim/engine_sharing.h"

namespace tbsched {

class CopyEngines {
 public:
  static constexpr size_t kShared = 2;   // engines between the host and the GPU
  static constexpr size_t kEngines = 3;  // and one to the memory of other GPUs

  // The arguments outlive it.
  CopyEngines(const DeviceSpec& spec, const Clock& clock);

  // Shares the engines with other processes. Call it before the first transfer.
  void share(const std::span<EngineTurns, kShared> engines, const int32_t process) {
    if (!spec_.mechanisms.copy_engines || spec_.engine_slice_ns == 0) return;
    shared_ = engines.data();
    process_ = process;
  }
  // Sets the number of transfers, which are numbered from 0. Call it before the first one.
  void set_transfers(int32_t count);
  // Notes what a transfer needs.
  void add(int32_t transfer, const Copy& copy) { needs_[transfer] = need_of(copy); }
  void add(int32_t transfer, const Memset& memset) { needs_[transfer] = need_of(memset); }
  void add(int32_t transfer, const HostFunction& function) {
    needs_[transfer] = {.bytes_ns = function.duration_ns, .is_host_function = true};
  }
  void add(int32_t /*transfer*/, const RecordEvent& /*record*/) {}
  void add(int32_t /*transfer*/, const WaitEvent& /*wait*/) {}
  bool empty() const { return needs_.empty(); }
  // Returns whether an engine moves the bytes of a transfer. Else it goes through a hardware queue.
  bool has_engine(const int32_t transfer) const { return needs_[transfer].engine != kNone; }
  // Returns the engine of a copy, or -1.
  int32_t engine_of(const Copy& copy) const { return need_of(copy).engine; }
  // Returns whether the same engine moves two transfers. -1 stands for no transfer.
  bool share_engine(int32_t a, int32_t b) const;
  // Returns how long the host copies within the call of a transfer.
  int64_t call_ns(const int32_t transfer) const { return needs_[transfer].call_ns; }

  // Begins a transfer that needs no engine now, and returns when it ends. All times are by the
  // process's own clock.
  int64_t begin_without_engine(int32_t transfer, bool in_graph);
  // Returns how long a host function takes; none: it is a copy or memset.
  std::optional<int64_t> host_function_ns(const int32_t transfer) const {
    const Need& need = needs_[transfer];
    return need.is_host_function ? std::optional(need.bytes_ns) : std::nullopt;
  }
  // Sets when a host function begins, by the GPU's clock, and returns when it ends.
  int64_t set_begin(int32_t transfer, int64_t begin_ns);

  // Puts a transfer that has an engine into a channel for its stream, at its call.
  void enqueue(int32_t transfer, int32_t stream);
  // Puts a copy node of a graph into the channel for graphs, once it waits for nothing.
  void enqueue_node(int32_t transfer);
  // Marks a transfer as ready: it may move bytes from `from_ns` on. `has_waited`: it has waited for
  // other work.
  void set_ready(int32_t transfer, int64_t from_ns, bool has_waited);
  // Begins the next transfer that an engine can begin now, and returns it; none: there is no such
  // transfer. times() has its end.
  std::optional<int32_t> begin();
  // Returns when a transfer ends that an engine has just begun, unless another transfer delays it.
  int64_t first_end_ns(const int32_t transfer) const {
    return clock_.to_own(times_[transfer].end_ns);
  }
  // Returns when a transfer ends that an engine has begun, as far as is known now. It may be later
  // than before: another transfer slows it down, or another process stops it.
  int64_t ends_ns(int32_t transfer) const;
  // Ends a transfer now: its engine is free again.
  void end(int32_t transfer);

  // Returns the times of each transfer by the GPU's clock; kNever: it has not begun.
  const std::vector<TransferTime>& times() const { return times_; }

 private:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kToPeers = 2;
  // What a transfer needs, and its state.
  struct Need {
    int32_t engine = kNone;  // 0: to the GPU, 1: from it; 0: both, if there is one; 2: to a peer
    int64_t bytes_ns = 0;    // how long it moves bytes
    std::optional<int64_t> in_graph_ns = {};  // the same in a graph, if it differs
    int64_t call_ns = 0;                      // how long the host copies within the call
    int64_t ready_ns = kNever;                // by the GPU's clock; kNever: it is not ready
    bool has_waited = false;                  // for other work
    bool is_slowed = false;                   // while the other engine moves bytes
    bool is_host_function = false;
  };
  struct Channel {
    std::vector<int32_t> waiting;  // transfers, those before `head` excepted
    size_t head = 0;
    int64_t last_use = 0;  // value of Engine::uses at its last use
    int32_t last_stream = kNone;

    bool empty() const { return head == waiting.size(); }
    int32_t next() const { return waiting[head]; }
  };
  struct Engine {
    std::vector<Channel> channels;  // the last is for graphs
    size_t current = 0;             // channel
    bool busy = false;              // moves bytes
    int64_t free_ns = 0;            // when it may begin the next transfer
    int64_t uses = 0;               // calls of enqueue()
    // The transfer in progress, and how long the rest would take alone from `since_ns` on.
    int32_t transfer = kNone;
    int64_t since_ns = 0;
    int64_t rest_ns = 0;
  };

  // Returns which engine a copy or memset needs, and for how long it moves bytes.
  Need need_of(const Copy& copy) const;
  Need need_of(const Memset& memset) const;
  // Returns when the next transfer of a channel is ready.
  int64_t ready_ns(const Channel& channel) const { return needs_[channel.next()].ready_ns; }
  // Returns the channel that a stream used last, if no other one has since; else the least recently
  // used one, of the empty ones if there are any.
  static Channel& channel_for(std::span<Channel> channels, int32_t stream);
  // Removes and returns the next transfer that an engine may begin; kNone: there is none.
  int32_t pop_next(Engine& engine, int64_t now);
  // Lengthens the transfers of two engines for the time in which both move bytes.
  void slow_down(Engine& begun, Engine& other);
  // Returns by which factor the transfer of an engine takes longer while both engines move bytes.
  double slowdown(const Engine& engine) const;
  // Returns how long the rest of a transfer takes while both engines move bytes.
  int64_t concurrent_ns(const Engine& engine) const;
  // Returns how long the bytes that a transfer moves within `concurrent_ns`, while both engines
  // move bytes, would take alone.
  int64_t alone_ns(const Engine& engine, int64_t concurrent_ns) const;

  const DeviceSpec& spec_;
  const Clock& clock_;
  std::vector<Need> needs_;
  std::vector<TransferTime> times_;
  std::array<Engine, kEngines> engines_;
  EngineTurns* shared_ = nullptr;  // of each engine, if processes share it
  int32_t process_ = 0;
};

}  // namespace tbsched
