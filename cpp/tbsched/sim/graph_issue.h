// How the driver issues CUDA graphs.
//
// It uploads a graph to the GPU once, and gives its branches streams. At each launch it issues the
// roots, the copies and memsets, and the nodes that follow these, one after the other within the
// host's call. Until then it issues nothing else. The other nodes follow by themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"
#include "tbsched/sim/clock.h"
#include "tbsched/sim/copy_engines.h"
#include "tbsched/sim/graph_order.h"
#include "tbsched/sim/hardware_queues.h"
#include "tbsched/sim/numbering.h"
#include "tbsched/sim/op_graph.h"

namespace tbsched {

class GraphIssue {
 public:
  // The arguments outlive it.
  GraphIssue(const DeviceSpec& spec, const Clock& clock, OpGraph& operations,
             HardwareQueues& queues, CopyEngines& engines)
      : spec_(spec), clock_(clock), operations_(operations), queues_(queues), engines_(engines) {}

  // Uploads a graph, once: binds its roots to streams and hardware queues. Returns the order of its
  // nodes. Call it before anything is issued, in the order of the program.
  const GraphOrder& upload(const GraphLaunch& launched);
  // Adds the nodes of a graph behind its begin. `issue_ns`: when the driver issues each launch; a
  // root without a time, or with one that is not later, follows the root before it. Returns the
  // number of added operations.
  int32_t issue(const GraphLaunch& launched, int32_t begin, EventNumbers numbers,
                std::span<const int64_t> issue_ns, Numbering& numbering);
  // Returns the end of the last launch of a graph, or -1.
  int32_t last_end(const GraphLaunch& launched) const;
  // Returns the nodes of a graph that record events or wait for them, each behind those that it
  // waits for.
  const std::vector<int32_t>& marks(const GraphLaunch& launched) const;
  // Makes the operation `end` depend on all nodes of a graph, and notes it as its last end.
  void set_end(const GraphLaunch& launched, int32_t begin, int32_t end);
  // Returns when the driver has issued the last graph, by the process's own clock.
  int64_t until_ns() const { return clock_.to_own(until_gpu_ns_); }

  static constexpr int64_t kBehindGraph = 2;  // TimedEvent::order of a launch behind the roots

 private:
  struct UploadedGraph {
    GraphOrder order;
    std::vector<int32_t> streams;   // of each root; the first is in that of the first launch
    int32_t resetting_stream = -1;  // the last one, if it resets conditions of conditional nodes
    int32_t last_end = -1;
  };
  // When the driver issues each node; the times of the first `known` were given.
  struct IssueTimes {
    std::vector<int64_t> times_ns;
    size_t known = 0;
  };

  // Returns whether the driver may take long to issue a node: a copy by an engine, a host function.
  bool is_slow(const Operation& node) const;
  // Schedules the nodes that the driver issues. Returns when it has issued the last one.
  int64_t issue_nodes(const UploadedGraph& graph, int32_t begin, const IssueTimes& issued,
                      int64_t from_ns);
  // Returns when the driver issues each node that it issues itself. `issue_ns`: as for issue().
  IssueTimes issue_times(const GraphOrder& order, int32_t begin, int32_t first_launch,
                         int32_t launches, std::span<const int64_t> issue_ns,
                         int64_t from_ns) const;
  // Add the operation of a node behind the begin of its graph, and advance the numbers of the next
  // one.
  void add_node(const Node& node, int32_t begin, EventNumbers& numbers, Numbering& numbering);
  // Adds the operation of a copy, memset, host function, record or wait of a graph.
  template <typename Transfer>
  void add_transfer(const Transfer& asked, int32_t begin, EventNumbers& numbers,
                    Numbering& numbering);
  // Adds the reset of the conditions of conditional nodes, for which the roots of other streams
  // than the last one wait.
  void add_reset(const UploadedGraph& graph, int32_t begin, int64_t issued_ns);
  // Adds a node's launch. It waits for the work before the graph, or for other nodes; later work
  // waits for all nodes.
  void add_launch(int32_t launch, int32_t priority, int32_t begin);

  const DeviceSpec& spec_;
  const Clock& clock_;
  OpGraph& operations_;
  HardwareQueues& queues_;
  CopyEngines& engines_;
  std::unordered_map<const Graph*, UploadedGraph> graphs_;
  int64_t until_gpu_ns_ = 0;  // by the GPU's clock: the driver issues whoever has the GPU
};

}  // namespace tbsched
