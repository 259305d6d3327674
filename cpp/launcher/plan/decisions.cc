#include "launcher/plan/decisions.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <variant>

#include "launcher/probe/probe_abi.h"

namespace tbsched::cuda {
namespace {

constexpr int64_t kMaxDecisions = std::size(Runs{}.decides);

// Returns the positions of the kernels among the nodes of a body, without those of bodies in it.
template <typename Nodes>
std::vector<size_t> kernels_of(const Nodes& nodes) {
  std::vector<size_t> positions;
  for (size_t position = 0; position < nodes.size(); ++position) {
    if (std::holds_alternative<Launch>(nodes[position])) positions.push_back(position);
  }
  return positions;
}

// Returns which positions can be reached from one along edges; with `backwards`, from which
// positions that one can be reached.
std::vector<bool> reachable(const size_t from, const size_t count, const Edges& edges,
                            const bool backwards) {
  std::vector<bool> reached(count);
  std::vector<size_t> open = {from};
  while (!open.empty()) {
    const auto at = static_cast<int32_t>(open.back());
    open.pop_back();
    for (const auto& edge : edges) {
      if (edge[backwards ? 1 : 0] != at) continue;
      const auto next = static_cast<size_t>(edge[backwards ? 0 : 1]);
      if (!reached[next]) open.push_back(next);
      reached[next] = true;
    }
  }
  return reached;
}

// Throws std::invalid_argument: no kernel can decide whether a body runs again.
[[noreturn]] void refuse_to_decide(const std::string& why) {
  throw std::invalid_argument("Conditional.graph: " + why + "; that can only be predicted");
}

}  // namespace

std::vector<BodyDecision> decisions_of(const Conditional& conditional, const bool repeats) {
  const Graph& body = *conditional.body;
  const std::vector<size_t> kernels =
      body.parts.empty() ? kernels_of(body.nodes) : kernels_of(body.parts);
  std::vector<BodyDecision> decisions;
  if (conditional.times > 1) {
    if (kernels.empty()) {
      refuse_to_decide("it runs several times, but has no Launch of its own to decide that");
    }
    decisions.push_back(
        {.kernel = kernels.back(), .every = static_cast<uint32_t>(conditional.times)});
  }
  for (size_t position = 0; repeats && position < body.parts.size(); ++position) {
    const auto* const inner = std::get_if<Conditional>(&body.parts[position]);
    if (inner == nullptr || inner->times < 2) continue;
    const std::vector<bool> behind =
        reachable(position, body.parts.size(), body.part_edges, /*backwards=*/false);
    const std::vector<bool> before =
        reachable(position, body.parts.size(), body.part_edges, /*backwards=*/true);
    const auto decider = std::ranges::find_if(kernels, [&](const size_t kernel) {
      return (before[kernel] || behind[kernel]) &&
             std::ranges::count(decisions, kernel, &BodyDecision::kernel) < kMaxDecisions;
    });
    if (decider == kernels.end()) {
      refuse_to_decide(
          "a Conditional in it runs several times, but no Launch that comes before or "
          "behind it there is free to decide that it does so again");
    }
    decisions.push_back({.kernel = *decider, .node = position});
  }
  return decisions;
}

}  // namespace tbsched::cuda
