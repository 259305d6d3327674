// Graphs that the program has instantiated, as the driver describes their nodes. CUPTI has a record
// of a node only when that has ended.
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

#include "launcher/capture/arguments.h"
#include "launcher/capture/cupti.h"
#include "launcher/capture/launched.h"
#include "launcher/capture/operations.h"

namespace tbsched::capture {

// A node of a graph. The nodes of a child graph, or of a body of a conditional node, come after
// that node.
struct GraphNode {
  static constexpr uint32_t kNone = ~uint32_t{0};

  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  bool is_known = true;     // the driver has described it
  uint32_t parent = kNone;  // index of the node that it is in; kNone: none
  uint32_t body = 0;        // which of the parent's bodies
  Shape shape;              // of a kernel; its pointers are null
  const Function* function = nullptr;
  size_t first_word = 0;               // index of a kernel's first argument word in Graph::words
  size_t words = 0;                    // number of its argument words
  bool has_separate_arguments = true;  // the arguments are not in one buffer
  uint64_t event = 0;                  // the driver's handle; 0: none
  bool waits_for_value = false;        // of a batch of operations on memory
};

// A dependency between two nodes, by their indices in Graph::nodes.
struct GraphEdge {
  uint32_t before = 0;
  uint32_t after = 0;
  bool programmatic = false;
};

// How many records CUPTI writes for the nodes of a graph.
struct GraphRecords {
  uint64_t kernels = 0;
  uint64_t transfers = 0;
};

// An instantiated graph.
struct Graph {
  uint64_t number = 0;      // position among all graphs that were read
  uint32_t executable = 0;  // CUPTI's number of it
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
  bool is_whole = true;                 // the driver has listed all nodes and edges
  std::optional<GraphRecords> records;  // none: see count_records()
  std::vector<Word> words;              // argument words of all kernels
  // A pair for each name of a kernel, in the order of the nodes: the counter of launches of that
  // name, which all graphs share, and the number of nodes with that name.
  std::vector<std::pair<std::atomic<uint64_t>*, uint64_t>> kernels;
};

// A launch of an instantiated graph.
struct GraphLaunch {
  std::shared_ptr<const Graph> graph;
  bool is_changed = false;       // the program has changed parameters of nodes since
  std::vector<uint64_t> before;  // earlier launches of each name in Graph::kernels
};

// Returns the callbacks of calls that make or change graphs.
std::span<const CUpti_CallbackId> graph_callbacks();

// Returns whether a graph is read when such a call returns. That takes time.
bool reads_graph(CUpti_CallbackId id);

// The graphs that the program has instantiated since the capture began. Thread-safe.
class Graphs {
 public:
  explicit Graphs(LaunchedFunctions& launched) : launched_(launched) {}

  // Forgets the graph that a call is about to destroy: later, another graph may have its handle.
  void before_call(CUpti_CallbackId id, const void* parameters);

  // Reads the graph that a call has instantiated or updated, or notes how it has changed one. The
  // call has succeeded.
  void after_call(const Cupti& cupti, CUpti_CallbackId id, const void* parameters);

  // Counts the launches of the kernels of a graph that is launched. Returns the launch; null: the
  // graph was instantiated before the capture began.
  std::shared_ptr<const GraphLaunch> count_launch(uint64_t executable);

 private:
  struct Known {
    std::shared_ptr<const Graph> graph;
    bool is_changed = false;
  };
  class Reader;

  // Reads a graph and keeps it as what `executable` runs.
  void read(const Cupti& cupti, CUgraphExec executable, CUgraph graph);
  // Keeps the bodies of a conditional node: the driver gives them to the call that adds the node,
  // and to nobody later.
  void keep_bodies(CUgraphNode node, const CUgraphNodeParams& given);
  // Notes that nodes of an executable graph have other parameters than when it was read.
  void mark_changed(uint64_t executable);
  // Returns the bodies of a conditional node; empty: it was added before the capture began.
  std::vector<CUgraph> bodies_of(CUgraphNode node);

  LaunchedFunctions& launched_;
  std::atomic<uint64_t> count_ = 0;
  std::mutex mutex_;                                           // guards what follows
  std::unordered_map<uint64_t, Known> known_;                  // by the driver's handle
  std::unordered_map<uint64_t, std::vector<CUgraph>> bodies_;  // by handle of a conditional node
};

}  // namespace tbsched::capture
