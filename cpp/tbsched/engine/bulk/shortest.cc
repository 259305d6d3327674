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

  // Returns the makespan in ns below which this order is better than the best one: of equally good
  // orders the first one wins.
  int64_t limit_ns(const size_t order) const {
    const std::scoped_lock lock(mutex_);
    return best_ && order < best_->order ? limit_ns_ + 1 : limit_ns_;
  }
  // Keeps the order if it is better than the best one.
  void offer(const size_t order, const int64_t makespan_ns) {
    const std::scoped_lock lock(mutex_);
    const bool is_first = best_ && makespan_ns == limit_ns_ && order < best_->order;
    if (makespan_ns >= limit_ns_ && !is_first) return;
    best_ = {order, makespan_ns};
    limit_ns_ = makespan_ns;
  }
  // Returns the best order; nothing: none is below the limit.
  std::optional<Shortest> get() const { return best_; }

 private:
  mutable std::mutex mutex_;
  int64_t limit_ns_;  // that of the caller, then the makespan of the best order
  std::optional<Shortest> best_;
};

// Returns the events in this order. Refuses a number that is no event's.
Sequence arranged(const Sequence& sequence, const std::span<const int32_t> order) {
  Sequence result;
  result.reserve(order.size());
  for (const int32_t event : order) {
    if (!std::cmp_less(event, sequence.size()) || event < 0) {
      throw std::invalid_argument("orders: " + std::to_string(event) + " is none of " +
                                  std::to_string(sequence.size()) + " events");
    }
    result.push_back(sequence[event]);
  }
  return result;
}

// Returns the times of the calls in this order: the gap before a call moves with the call.
HostCalls arranged(const HostCalls& calls, const std::span<const int32_t> order) {
  const auto* const given = std::get_if<CallGaps>(&calls);
  if (given == nullptr) return calls;
  CallGaps result;
  result.gap_ns.reserve(order.size());
  for (const int32_t event : order) result.gap_ns.push_back(given->gap_ns[event]);
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
    const Sequence reordered = arranged(sequence, order);
    const int64_t limit = best.limit_ns(k);
    const int64_t makespan =
        Simulation(model, state, arranged(calls, order)).makespan(reordered, limit);
    if (makespan < limit) best.offer(k, makespan);
  };
  for_each_sequence(orders.size() / events, threads, try_order, "order");
  return best.get();
}

}  // namespace tbsched
