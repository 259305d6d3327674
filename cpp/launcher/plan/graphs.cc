#include "launcher/plan/graphs.h"

#include <array>
#include <variant>
#include <vector>

#include "launcher/plan/plan.h"
#include "launcher/probe/probe.h"

namespace tbsched::cuda {
namespace {

void set(const Driver& driver, const CUgraphNode node, const CUlaunchAttribute& attribute) {
  driver.graph_set_attribute(node, attribute.id, &attribute.value);
}

CUgraphNode add_node(const Context& context, const CudaGraph& graph, PlannedLaunch& planned) {
  const Launch& launch = planned.launch;
  planned.function->prepare(launch);
  const LaunchConfiguration configuration(launch, nullptr, nullptr);
  const CUlaunchConfig& config = configuration.config;
  std::array<void*, 1> arguments{&planned.arguments};
  CUDA_KERNEL_NODE_PARAMS parameters{};
  if (planned.partition != nullptr) {
    parameters.kern = planned.function->kernel();
    parameters.ctx = planned.partition->context();
  } else {
    parameters.func = planned.function->handle(launch);
  }
  parameters.gridDimX = config.gridDimX;
  parameters.gridDimY = parameters.gridDimZ = 1;
  parameters.blockDimX = config.blockDimX;
  parameters.blockDimY = parameters.blockDimZ = 1;
  parameters.sharedMemBytes = config.sharedMemBytes;
  parameters.kernelParams = arguments.data();
  CUgraphNode node = nullptr;
  const Driver& driver = context.driver();
  driver.graph_add_kernel(&node, graph.handle(), nullptr, 0, &parameters);
  for (const CUlaunchAttribute& attribute : configuration.attributes()) {
    set(driver, node, attribute);
  }
  CUlaunchAttribute priority{};
  priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  priority.value.priority = launch.priority;
  set(driver, node, priority);
  return node;
}

}  // namespace

void PlannedGraph::make(const Context& context, const std::span<PlannedLaunch> launches,
                        const TransferMemory& memory) {
  const Driver& driver = context.driver();
  const CudaGraph made(driver);
  std::vector<CUgraphNode> nodes;
  size_t launch = first;
  const auto transfer = [&](const auto& node) { return memory.add(context, made, node); };
  for (const Node& node : graph->nodes) {
    nodes.push_back(
        std::visit(Overloaded{
                       [&](const Launch&) { return add_node(context, made, launches[launch++]); },
                       [&](const Copy& copy) { return transfer(copy); },
                       [&](const Memset& memset) { return transfer(memset); },
                   },
                   node));
  }
  for (const auto& [before, after] : graph->edges) {
    driver.graph_add_dependencies(made.handle(), &nodes[static_cast<size_t>(before)],
                                  &nodes[static_cast<size_t>(after)], 1);
  }
  executable = std::make_unique<ExecutableGraph>(driver, made, stream);
}

}  // namespace tbsched::cuda
