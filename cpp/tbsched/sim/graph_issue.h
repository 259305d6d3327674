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

  // Uploads a graph to the GPU. Call it before anything is issued, in the order of the program.
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
  // Adds the end of a graph behind its nodes.
  void end(const GraphLaunch& launched, int32_t begin, int32_t end);
  // When the driver has issued the last graph, by the process's own clock.
  int64_t until_ns() const { return clock_.to_own(until_gpu_ns_); }

  static constexpr int64_t kBehindGraph = 2;  // the place of a launch behind the roots

 private:
  struct UploadedGraph {
    GraphOrder order;
    std::vector<int32_t> streams;  // of each root; the first is in that of the first launch
    int32_t last_end = -1;
  };
  // When the driver issues each node; the times of the first `known` were given.
  struct IssueTimes {
    std::vector<int64_t> times_ns;
    size_t known = 0;
  };

  bool is_slow(const Operation& node) const;
  int64_t issue_nodes(const UploadedGraph& graph, int32_t begin, const IssueTimes& issued,
                      int64_t from_ns);
  IssueTimes issue_times(const GraphOrder& order, int32_t begin, int32_t first_launch,
                         int32_t launches, std::span<const int64_t> issue_ns,
                         int64_t from_ns) const;
  void add_node(const Node& node, int32_t begin, EventNumbers& numbers, Numbering& numbering);
  template <typename Transfer>
  void add_transfer(const Transfer& asked, int32_t begin, EventNumbers& numbers,
                    Numbering& numbering);
  void add(int32_t launch, int32_t priority, int32_t begin);

  const DeviceSpec& spec_;
  const Clock& clock_;
  OpGraph& operations_;
  HardwareQueues& queues_;
  CopyEngines& engines_;
  std::unordered_map<const Graph*, UploadedGraph> graphs_;
  int64_t until_gpu_ns_ = 0;  // by the GPU's clock: the driver issues whoever has the GPU
};

}  // namespace tbsched
