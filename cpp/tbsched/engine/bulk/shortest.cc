#include "tbsched/engine/bulk/shortest.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tbsched/engine/bulk/parallel.h"
#include "tbsched/engine/predict.h"
#include "tbsched/sim/simulation.h"

namespace tbsched {
namespace {

// The best order so far, shared by all threads.
class Best {
 public:
  explicit Best(const int64_t limit_ns) : limit_ns_(limit_ns) {}

  // Returns the makespan below which an order must be: of equally good orders the first one wins.
  int64_t limit(const size_t order) const {
    const std::scoped_lock lock(mutex_);
    return found_ && order < found_->order ? limit_ns_ + 1 : limit_ns_;
  }
  void found(const size_t order, const int64_t makespan_ns) {
    const std::scoped_lock lock(mutex_);
    const bool is_first = found_ && makespan_ns == limit_ns_ && order < found_->order;
    if (makespan_ns >= limit_ns_ && !is_first) return;
    found_ = {order, makespan_ns};
    limit_ns_ = makespan_ns;
  }
  std::optional<Shortest> get() const { return found_; }

 private:
  mutable std::mutex mutex_;
  int64_t limit_ns_;
  std::optional<Shortest> found_;
};

Sequence arranged(const Sequence& sequence, const std::span<const int32_t> order) {
  Sequence result;
  result.reserve(order.size());
  for (const int32_t number : order) {
    if (!std::cmp_less(number, sequence.size()) || number < 0) {
      throw std::invalid_argument("orders: " + std::to_string(number) + " is none of " +
                                  std::to_string(sequence.size()) + " events");
    }
    result.push_back(sequence[number]);
  }
  return result;
}

// Rearranges gaps: the gap before a call moves with the call.
HostCalls arranged(const HostCalls& calls, const std::span<const int32_t> order) {
  const auto* const given = std::get_if<CallGaps>(&calls);
  if (given == nullptr) return calls;
  CallGaps result;
  result.gap_ns.reserve(order.size());
  for (const int32_t number : order) result.gap_ns.push_back(given->gap_ns[number]);
  return result;
}

}  // namespace

std::optional<Shortest> shortest_order(const Model& model, const Sequence& sequence,
                                       const std::span<const int32_t> orders,
                                       const InitialState state, const HostCalls& calls,
                                       const int64_t limit_ns, const int32_t threads) {
  const size_t events = sequence.size();
  const auto is_release = [](const Event& event) { return std::holds_alternative<Release>(event); };
  if (events == 0 || orders.size() % events != 0 || std::ranges::any_of(sequence, is_release)) {
    throw std::invalid_argument("orders: each is of all " + std::to_string(events) +
                                " events, none a release; got " + std::to_string(orders.size()) +
                                " numbers in all");
  }
  if (const auto* const given = std::get_if<CallGaps>(&calls);
      std::holds_alternative<CallTimes>(calls) || (given && given->gap_ns.size() != events)) {
    throw std::invalid_argument("orders: a gap for each of " + std::to_string(events) +
                                " events is needed, or one interval; got " +
                                (given ? std::to_string(given->gap_ns.size()) + " gaps" : "times"));
  }
  Best best(limit_ns);
  const auto try_order = [&](const size_t k) {
    const std::span order = orders.subspan(k * events, events);
    const Sequence some = arranged(sequence, order);
    const int64_t limit = best.limit(k);
    const int64_t found = Simulation(model, state, arranged(calls, order)).makespan(some, limit);
    if (found < limit) best.found(k, found);
  };
  for_each_sequence(orders.size() / events, threads, try_order, "order");
  return best.get();
}

}  // namespace tbsched
