#include "launcher/plan/decisions.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <variant>

#include "launcher/probe/probe_abi.h"

namespace tbsched::cuda {
namespace {

constexpr int64_t kMostDecisions = std::size(Runs{}.decides);

// Returns the places of the kernels of a body itself.
template <typename Nodes>
std::vector<size_t> kernels_of(const Nodes& nodes) {
  std::vector<size_t> found;
  for (size_t place = 0; place < nodes.size(); ++place) {
    if (std::holds_alternative<Launch>(nodes[place])) found.push_back(place);
  }
  return found;
}

// Returns which places can be reached from one by edges, or, backwards, from which it can be.
std::vector<bool> reached_from(const size_t from, const size_t places, const Edges& edges,
                               const bool backwards) {
  std::vector<bool> reached(places);
  std::vector<size_t> left = {from};
  while (!left.empty()) {
    const auto at = static_cast<int32_t>(left.back());
    left.pop_back();
    for (const auto& edge : edges) {
      if (edge[backwards ? 1 : 0] != at) continue;
      const auto next = static_cast<size_t>(edge[backwards ? 0 : 1]);
      if (!reached[next]) left.push_back(next);
      reached[next] = true;
    }
  }
  return reached;
}

[[noreturn]] void refuse_to_decide(const std::string& why) {
  throw std::invalid_argument("Conditional.graph: " + why + "; that can only be predicted");
}

}  // namespace

std::vector<BodyDecision> decisions_of(const Conditional& conditional, const bool repeats) {
  const Graph& body = *conditional.body;
  const std::vector<size_t> kernels =
      body.parts.empty() ? kernels_of(body.nodes) : kernels_of(body.parts);
  std::vector<BodyDecision> found;
  if (conditional.times > 1) {
    if (kernels.empty()) {
      refuse_to_decide("it runs several times, but has no Launch of its own to decide that");
    }
    found.push_back({.kernel = kernels.back(), .every = static_cast<uint32_t>(conditional.times)});
  }
  for (size_t place = 0; repeats && place < body.parts.size(); ++place) {
    const auto* const inner = std::get_if<Conditional>(&body.parts[place]);
    if (inner == nullptr || inner->times < 2) continue;
    const std::vector<bool> behind =
        reached_from(place, body.parts.size(), body.part_edges, /*backwards=*/false);
    const std::vector<bool> ahead =
        reached_from(place, body.parts.size(), body.part_edges, /*backwards=*/true);
    const auto decider = std::ranges::find_if(kernels, [&](const size_t kernel) {
      return (ahead[kernel] || behind[kernel]) &&
             std::ranges::count(found, kernel, &BodyDecision::kernel) < kMostDecisions;
    });
    if (decider == kernels.end()) {
      refuse_to_decide(
          "a Conditional in it runs several times, but no Launch that comes before or "
          "behind it there is free to decide that it does so again");
    }
    found.push_back({.kernel = *decider, .node = place});
  }
  return found;
}

}  // namespace tbsched::cuda
