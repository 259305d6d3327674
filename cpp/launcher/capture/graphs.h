// Graphs that the program has instantiated, as the driver describes their nodes: CUPTI has a record
// of a node only when it has ended.
#pragma once

#include <cupti.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "launcher/capture/cupti.h"
#include "launcher/capture/launched.h"
#include "launcher/capture/operations.h"
#include "launcher/capture/words.h"

namespace tbsched::capture {

// A node. Those of a child graph, or of a body of a conditional node, come after that node.
struct GraphNode {
  static constexpr uint32_t kNone = ~uint32_t{0};

  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  bool is_known = true;     // the driver has described it
  uint32_t parent = kNone;  // the number of the node that it is in
  uint32_t body = 0;        // which of the parent's bodies
  Shape shape;              // of a kernel; its pointers are null
  const Function* function = nullptr;
  size_t first_word = 0;  // of a kernel's arguments
  size_t words = 0;
  bool has_separate_arguments = true;  // they are not in one buffer
  uint64_t event = 0;                  // the driver's handle
  bool waits_for_value = false;        // of a batch of operations on memory
};

struct GraphEdge {
  uint32_t before = 0;
  uint32_t after = 0;
  bool programmatic = false;
};

// How many of the nodes of a graph CUPTI has records of.
struct GraphRecords {
  uint64_t kernels = 0;
  uint64_t transfers = 0;
};

// An instantiated graph.
struct Graph {
  uint64_t number = 0;      // of all that were read
  uint32_t executable = 0;  // as CUPTI numbers it
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
  bool is_whole = true;                 // the driver has listed all nodes and edges
  std::optional<GraphRecords> records;  // none: a node may take time without a record of its own
  std::vector<Word> words;
  // A pair for each name of a kernel, in the order of the nodes: the counter of launches of that
  // name, which all graphs share, and the number of nodes with that name.
  std::vector<std::pair<std::atomic<uint64_t>*, uint64_t>> kernels;
};

// A launch of one.
struct GraphLaunch {
  std::shared_ptr<const Graph> graph;
  bool is_changed = false;       // nodes have other parameters than the graph had
  std::vector<uint64_t> before;  // of each of its names of kernels, launches of it so far
};

// Calls that make or change graphs.
std::span<const CUpti_CallbackId> graph_callbacks();

// Returns whether a graph is read when such a call returns, which takes time.
bool reads_graph(CUpti_CallbackId id);

// Thread-safe.
class Graphs {
 public:
  explicit Graphs(Launched& launched) : launched_(launched) {}

  // Forgets what a call is about to destroy: later, another graph may have its handle.
  void enter(CUpti_CallbackId id, const void* parameters);

  // Notes what a call has done that has succeeded.
  void take(const Cupti& cupti, CUpti_CallbackId id, const void* parameters);

  // Notes that a graph is launched. Null: it was instantiated before the capture began.
  std::shared_ptr<const GraphLaunch> launch(uint64_t executable);

 private:
  struct Known {
    std::shared_ptr<const Graph> graph;
    bool is_changed = false;
  };
  class Reading;

  void read(const Cupti& cupti, CUgraphExec executable, CUgraph graph);
  void added(CUgraphNode node, const CUgraphNodeParams& given);
  void changed(uint64_t executable);
  std::vector<CUgraph> bodies_of(CUgraphNode node);

  Launched& launched_;
  std::atomic<uint64_t> count_ = 0;
  std::mutex mutex_;                                           // of what follows
  std::unordered_map<uint64_t, Known> known_;                  // by the driver's handle
  std::unordered_map<uint64_t, std::vector<CUgraph>> bodies_;  // of conditional nodes
};

}  // namespace tbsched::capture
