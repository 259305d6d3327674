// Which nodes of a CUDA graph the driver launches itself, and how soon each other node follows
// those that it waits for.
//
// An example: nodes 0 and 1 wait for nothing, 2 waits for 0, and 3 for 1 and 2. The driver launches
// 0 and 1. The GPU starts 2 by itself, 1 us after 0. But 3 joins two branches. So a relay, a block
// that the user does not see, runs after 1 and after 2. The later one starts 3, 2.1 us after its
// node.
//
// The rules:
//   1. Every root, a node that waits for nothing, begins a branch. Another node belongs to the
//      branch of the nodes that it waits for; of several branches to the one whose root has the
//      highest number.
//   2. A node that waits for nodes of several branches is a join. A relay of each of those starts
//      it. Any other node is a direct dependent of those that it waits for.
//   3. A node has six places for what follows it. Each direct dependent takes one, and the relay
//      one. The places are served in turn, the last two at once; the relay has the last but one.
//   4. Where there are too few places, the relay starts all that follows.
//   5. A relay is more urgent than any launch. It starts nodes in reverse order. It takes no shared
//      memory: where it goes to an idle SM, no launch enters that SM until it has left.
//   6. Direct dependents start in the order of nodes, but taking out the joins changes it: from the
//      last join to the first, the last dependent of the list moves to where the join was.
//   7. The driver divides a graph into streams, and so bodies of conditional nodes. Its roots are
//      launched in those that they begin. But when a graph in which branches join, or one with
//      conditional nodes, is brought to the GPU, the last of all streams takes a hardware queue
//      first, also if no root begins it.
//   8. Copies and memsets that are no kernels are issued by the driver, as roots are. So is what
//      follows them. No relay starts these, but where they join branches it takes as long.
//      Successors of a copy or memset start one after the other, too.
//      So are nodes that record CUDA events or wait for them; that is assumed.
//   9. Each time that a conditional node decides, a decider runs, a kernel of the driver. It is a
//      node as others. So are the nodes of bodies. A root that decides starts one place later than
//      the others.
//  10. The last of all streams of a graph with conditional nodes first resets their conditions. The
//      roots of the other streams wait for that.
//
// Source: traces ways/graphs; docs/explanation/graphs.md.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"

namespace tbsched {

// More urgent than any launch.
inline constexpr int32_t kRelayPriority = std::numeric_limits<int32_t>::min();

struct GraphOrder {
  // Deciders are numbered behind the nodes, and relays behind these.
  struct Edge {
    int32_t from;
    int32_t to;
    int32_t latency_ns;  // from the exit of the last block of `from` until `to` may start
  };

  // A node that the driver issues, and the root of its branch, into `roots`.
  struct Issued {
    int32_t node;
    int32_t root;
  };

  std::vector<int32_t> roots;     // in the order in which the driver issues them
  std::vector<int32_t> queued;    // into roots, in the order in which they take hardware queues
  bool last_root_first = false;   // whether the last of these begins the last stream of all
  std::vector<Issued> issued;     // in this order
  std::vector<int32_t> marks;     // nodes that record events or wait for them, each behind those
                                  // that it waits for
  int32_t nodes = 0;              // without deciders and relays
  std::vector<int32_t> deciders;  // a node before each one, or -1
  std::vector<int32_t> relays;    // the node that each one follows
  std::vector<Edge> edges;        // those of one `from` in the order in which they are served
};

// Returns in which order, and how many ns after each other, the driver and the GPU start the nodes
// of a graph, by the rules above. Throws std::invalid_argument for no nodes, for
// an edge to or from a node that is not there, and for a circle.
GraphOrder graph_order(const Graph& graph, const DeviceSpec& spec);

}  // namespace tbsched
