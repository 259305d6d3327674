// CUDA graphs. The context must be current.
#pragma once

#include "launcher/driver/driver.h"

namespace tbsched::cuda {

// A graph under construction: nodes and their dependencies.
class CudaGraph {
 public:
  explicit CudaGraph(const Driver& driver) : driver_(driver) { driver_.graph_create(&handle_, 0); }
  ~CudaGraph() { driver_.graph_destroy.code(handle_); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  CUgraph handle() const { return handle_; }

 private:
  const Driver& driver_;
  CUgraph handle_ = nullptr;
};

// A graph that is on the GPU, ready to be launched.
class ExecutableGraph {
 public:
  ExecutableGraph(const Driver& driver, const CudaGraph& graph, const CUstream stream)
      : driver_(driver) {
    // Else all nodes have the priority of the stream.
    driver_.graph_instantiate(&handle_, graph.handle(),
                              CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    try {
      driver_.graph_upload(handle_, stream);
    } catch (...) {
      driver_.graph_exec_destroy.code(handle_);
      throw;
    }
  }
  ~ExecutableGraph() { driver_.graph_exec_destroy.code(handle_); }
  ExecutableGraph(const ExecutableGraph&) = delete;
  ExecutableGraph& operator=(const ExecutableGraph&) = delete;

  CUgraphExec handle() const { return handle_; }
  // Sets the kernel's parameters in the next launches. `node`: of the graph from which this was
  // made, which must still exist.
  void set_kernel(const CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& parameters) const {
    driver_.graph_exec_set_kernel(handle_, node, &parameters);
  }

 private:
  const Driver& driver_;
  CUgraphExec handle_ = nullptr;
};

}  // namespace tbsched::cuda
